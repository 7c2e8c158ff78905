"""Family-wise error rate of detections in small crowds.

At a rate of .05, more than 17 of 120 crowds with a false detection occur with probability 3e-5 per
setting. The twin, the regression's p-values, has a rate of about .4 at ten reports and fails
with probability above 1 - 1e-3. `python -m experiments.small_crowds` is the full version.
"""

import numpy as np
import pytest
from experiments.direct_counts import bit_counts, random_positions, values_by_stratum

from deniable import decode, simulate
from deniable.inference.marginal import estimate
from deniable.inference.marginal.bit_counts import BitCounts
from deniable.inference.marginal.design import BloomDesign
from deniable.inference.marginal.detection import rejection_cutoff
from deniable.inference.marginal.estimate import estimate_marginal
from deniable.inference.marginal.randomisation import log_exact_p_values
from experiments import small_crowds

SHARES = np.r_[0.3, 0.2, 0.1, np.full(40, 0.01)]
LISTED, FALSE = 3, 200
DESIGNS = {"h = 2, 64 cohorts": (32, 2, 64, 0.05, 0.6), "h = 1, 4 cohorts": (128, 1, 4, 0.05, 0.5)}


def crowd(reports: int, name: str, rng: np.random.Generator) -> tuple[BitCounts, BloomDesign]:
    k, h, strata, p, q = DESIGNS[name]
    positions = random_positions(SHARES.size, rng, strata=strata, k=k, h=h)
    values = values_by_stratum(SHARES, reports, strata, rng)
    absent = random_positions(FALSE, rng, strata=strata, k=k, h=h)
    listed = np.concatenate([positions[:, :LISTED], absent], axis=1)
    return bit_counts(values, positions, k, p, q, rng), BloomDesign(listed, k, p, q)


@pytest.mark.parametrize("name", DESIGNS)
@pytest.mark.parametrize("reports", [1, 3, 30, 300])
def test_absent_strings_are_rarely_detected(reports, name):
    rng = np.random.default_rng(reports)
    wrong = 0
    for _ in range(120):
        p_value = np.exp(log_exact_p_values(*crowd(reports, name, rng), 0.05))
        wrong += bool((p_value[LISTED:] <= rejection_cutoff(p_value, 0.05, "holm")).any())
    assert wrong <= 17


@pytest.mark.parametrize("small", [False, True])
def test_the_regression_alone_would_detect_absent_strings(monkeypatch, small):
    monkeypatch.setattr(estimate, "SMALL_CROWD", 1_000 if small else 0)
    rng = np.random.default_rng(5)
    crowds = [crowd(10, "h = 2, 64 cohorts", rng) for _ in range(60)]
    wrong = sum(
        bool(estimate_marginal(*each, correction="holm").detected[LISTED:].any()) for each in crowds
    )
    assert wrong <= 11 if small else wrong > 11


def test_three_hundred_reports_are_enough_for_common_strings():
    """Power: the string of 30% is detected in more than half of the crowds."""
    rng = np.random.default_rng(6)
    crowds = [crowd(300, "h = 2, 64 cohorts", rng) for _ in range(20)]
    assert sum(bool(estimate_marginal(*each).detected[0]) for each in crowds) > 10


def test_a_report_that_holds_no_whole_string_is_no_error():
    """Of six reports by prefixes some hold a prefix only; one alone gives an empty result."""
    survey = small_crowds.survey_of(x={**small_crowds.QUESTIONS["prefixes"], "epsilon": 4.0})
    empty = 0
    for seed in range(6):
        found = decode(survey, simulate(survey, {"x": ["abcd"]}, rng=seed), "x", ["abcd", "efgh"])
        empty += found.reports == 0
        assert not found.detected[1] and (found.reports > 0 or not found.identified.any())
    assert empty > 0


def test_discoveries_in_ten_reports_stay_finite():
    """Overflows of the joint fit, caused by strings that share all cells, are errors in tests."""
    task = small_crowds.Task(small_crowds.searched, "prefixes", 4.0, 10, 3, 9)
    assert task.measure(task)[0] <= 1


def test_days_without_whole_strings_are_days_without_detections(monkeypatch):
    """A trend of one report per day, most of which hold a prefix only, and of one such day."""
    task = small_crowds.Task(small_crowds.by_day, "prefixes", 4.0, 1, 4, 1)
    for days in (1, 3):
        monkeypatch.setattr(small_crowds, "DAYS", days)
        assert task.measure(task) == (0, 0)
