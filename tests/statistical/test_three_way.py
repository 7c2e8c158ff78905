"""Do the tests of mutual and conditional independence reject as often as they should? Fixed seeds.

`python -m experiments.three_way` measures sizes and power in full.
"""

from collections.abc import Callable

import numpy as np
from experiments.three_way import (
    Task,
    conditional_power,
    conditional_table,
    held,
    likelihoods,
    measured,
    mutual_table,
)
from scipy.stats import chi2, kstest, norm

from deniable.inference.association.conditional import efficient_score_test, fit_conditional
from deniable.inference.association.independence import (
    conditional_independence,
    mutual_independence,
    score_test,
)
from deniable.inference.joint.evidence import Evidence
from deniable.inference.joint.solver import maximise

RARE = 3.0


def mutual_score(evidence: Evidence) -> float:
    return score_test(evidence, shuffles=99).p_value


def conditional_score(evidence: Evidence) -> float:
    null = fit_conditional(evidence, maximise(evidence).table, (0, 1))
    return efficient_score_test(evidence, null, (0, 1), draws=39).p_value


def mutual_ratio(evidence: Evidence) -> float:
    return mutual_independence(evidence, method="lrt").p_value


def conditional_ratio(evidence: Evidence) -> float:
    return conditional_independence(evidence, method="lrt").p_value


def uniform(test: Callable[[Evidence], float], table: np.ndarray, trials: int) -> bool:
    """Kolmogorov–Smirnov at .001: at most one false alarm in 1,000 fresh seeds.

    The hypothesis is true; the last of four options has a share of .013.
    """
    rng = np.random.default_rng(41)
    found = [test(held(likelihoods(table, 2000, rng, "basic"))) for _ in range(trials)]
    return bool(kstest(found, "uniform").pvalue > 0.001)


def test_mutual_independence_with_rare_categories() -> None:
    # p-values of the likelihood ratio, the twin, are nearly all above .5.
    assert uniform(mutual_score, mutual_table(RARE), 40)
    assert not uniform(mutual_ratio, mutual_table(RARE), 40)


def test_conditional_independence_with_rare_categories() -> None:
    table = conditional_table((4, 4, 2), RARE)
    assert uniform(conditional_score, table, 40)
    assert not uniform(conditional_ratio, table, 40)


def test_conditional_independence_is_as_powerful_as_two_way_tests() -> None:
    # The same reports, so the difference of the powers has a standard error of about .02.
    task = Task(conditional_power, "conditional", "even", 10_000, 0.1, 30, (42, 0, 0))
    power, two_way = (measured(task) <= 0.05).mean(axis=0)
    assert two_way > 0.5
    assert power >= 0.9 * two_way


def test_weights_add_power_to_mutual_independence() -> None:
    """Equal weights, the twin, hide associations among directions that the noise hides.

    p-values of the same reports are compared as normal scores: a mean gain of three standard errors
    is required, which equal weights reach in about 6 of 1,000 fresh seeds.
    """
    rng, gains = np.random.default_rng(44), []
    for _ in range(12):
        x, y, z = likelihoods(mutual_table(RARE, 0.05), 100_000, rng, "basic")
        xy = (x[:, :, None] * y[:, None, :]).reshape(len(x), -1)
        parts = score_test(held([xy, z])), score_test(held([x, y]))
        freedom = sum(part.degrees_of_freedom for part in parts)
        twin = chi2.sf(sum(part.statistic for part in parts), freedom)
        gains.append(norm.isf(score_test(held([x, y, z])).p_value) - norm.isf(twin))
    assert np.mean(gains) > 3 * np.std(gains, ddof=1) / len(gains) ** 0.5


def test_redrawn_reports_keep_their_cohort() -> None:
    """Cohorts hash differently, so that some tell categories apart better than others.

    Mixed cohorts, the twin, made the statistic too small by 4% with 64 cohorts and Other.
    """
    cohort = np.arange(3000) % 3
    marks = np.stack([np.ones(3000), (1 + cohort) / 4], axis=1).astype(np.float32)
    evidence = held([marks, marks, marks])
    table, margins = np.full((2, 2, 2), 1 / 8), [np.full(2, 0.5)] * 3
    rng = np.random.default_rng(1)
    for strata, kept in ((cohort, True), (np.zeros(3000, int), False)):
        redrawn = next(evidence.stratified(strata).redrawn(table, margins, rng))
        for part in redrawn.rows.map(lambda rows: rows.rows):
            x, y, z = (np.asarray(each)[:, 1] for each in part)
            assert ((x == y) & (y == z)).all() == kept
