"""Heavy unlisted strings neither look like candidates nor spoil intervals, with 8 cohorts or more.

Seeds are fixed. Under a fresh seed, a family-wise error rate of .05 or a coverage of .95 breaks a
bound of this file with probability below .01. Each broken twin, the estimator without what it does
about heavy strings, must break it.
"""

from unittest.mock import patch

import numpy as np
from experiments.few_cohorts import Decoded, Setting, Task, measure_decode
from scipy import stats

from deniable.inference.marginal import heavy_unlisted
from experiments import few_cohorts

CROWDS = 100
LIMIT = stats.binom.isf(0.01, CROWDS, 0.05) / CROWDS


def decoded(setting: Setting, *, broken: bool = False) -> Decoded:
    with (
        patch.object(heavy_unlisted, "SHAPED_BELOW", 0 if broken else heavy_unlisted.SHAPED_BELOW),
        patch.object(heavy_unlisted, "HEAVY_SKEWNESS", np.inf if broken else 1.0),
    ):
        return measure_decode(Task(setting, CROWDS, 1))


def test_one_unlisted_string_makes_no_false_detections() -> None:
    setting = Setting(cohorts=8, hashes=1, bits=256, absent=1000)
    assert decoded(setting).fwer <= LIMIT
    assert decoded(setting, broken=True).fwer > LIMIT


def test_intervals_reach_as_far_as_an_unlisted_string_misleads() -> None:
    setting = Setting(cohorts=8, hashes=1, bits=32, absent=200)
    fixed, broken = decoded(setting), decoded(setting, broken=True)
    # The intervals of a crowd depend on each other about as if there were a third of them.
    least = 0.95 - 2.4 * np.sqrt(0.95 * 0.05 / (10 * CROWDS / 3))
    assert min(fixed.coverage, fixed.present) > least > max(broken.coverage, broken.present)


def test_intervals_reach_as_far_in_a_million_reports_of_forty_cohorts() -> None:
    setting = Setting(cohorts=40, hashes=1, bits=256)
    with patch.object(few_cohorts, "REPORTS", 10**6):
        fixed, broken = decoded(setting), decoded(setting, broken=True)
    least = 0.95 - 2.4 * np.sqrt(0.95 * 0.05 / (10 * CROWDS / 3))
    assert min(fixed.coverage, fixed.present) > least > max(broken.coverage, broken.present)


def test_little_is_lost_if_all_strings_are_listed() -> None:
    assert decoded(Setting(cohorts=8, unlisted=0.0)).found > 9
