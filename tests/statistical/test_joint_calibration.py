"""Do p-values, intervals and effect sizes hold what they promise? Short versions, fixed seeds.

Each check says how often a right implementation would fail it on a fresh seed, and is paired with a
twin, a plausible mistake, that must fail the same check.
"""

from collections.abc import Callable

import numpy as np
import pytest
from experiments.direct_rows import basic_rows, bloom_rows, dependent_table, draw_cells
from scipy.stats import binomtest, chi2, kstest

from deniable.inference.association import independence as association
from deniable.inference.association.effect_size import cramers_v
from deniable.inference.association.independence import score_test
from deniable.inference.joint.evidence import Evidence, gather
from deniable.inference.joint.solver import maximise
from deniable.inference.joint.uncertainty import covariance, invert_on_simplex
from deniable.results.covariance import Interval

TRIALS = 200


def drawn(
    table: np.ndarray, count: int, rng: np.random.Generator, encoding: str, q: float = 0.75
) -> Evidence:
    values = draw_cells(table, count, rng)
    cohorts = rng.integers(8, size=count)
    rows = tuple(
        basic_rows(v, size, rng=rng, q=q)
        if encoding == "basic"
        else bloom_rows(v, size, rng=rng, cohorts=cohorts, k=32, q=q)
        for v, size in zip(values, table.shape, strict=True)
    )
    return gather([rows], table.shape)


def p_values(
    encoding: str,
    count: int,
    exponent: float,
    test: Callable[[Evidence], float],
    shape: tuple[int, int] = (4, 4),
) -> np.ndarray:
    rng = np.random.default_rng(31)
    table = dependent_table(*shape, strength=0.0, exponent=exponent)
    return np.array([test(drawn(table, count, rng, encoding)) for _ in range(TRIALS)])


def uniform(found: np.ndarray) -> bool:
    """Kolmogorov–Smirnov at .001: one false alarm in 1,000 fresh seeds."""
    return bool(kstest(found, "uniform").pvalue > 0.001)


@pytest.mark.parametrize(
    ("encoding", "count", "exponent"),
    [
        ("basic", 4000, 1.0),
        ("basic", 300, 1.0),
        ("bloom", 4000, 1.0),
        ("bloom", 3000, 3.0),
    ],
)
def test_score_p_values_are_uniform_under_independence(
    encoding: str, count: int, exponent: float
) -> None:
    rng = np.random.default_rng(32)
    found = p_values(
        encoding, count, exponent, lambda e: score_test(e, shuffles=199, rng=rng).p_value
    )
    assert uniform(found)


def test_twins_of_the_score_test_are_caught() -> None:
    def one_freedom_per_cell(evidence: Evidence) -> float:
        return float(chi2.sf(score_test(evidence, shuffles=1).statistic, 4 * 4 - 1))

    def papers(evidence: Evidence) -> float:
        return association.association_test(evidence, method="paper").p_value

    assert not uniform(p_values("basic", 4000, 1.0, one_freedom_per_cell))
    # With rare categories cells sit at 0, and the paper's T is far from χ².
    assert not uniform(p_values("bloom", 3000, 3.0, papers))


def test_the_papers_t_and_the_likelihood_ratio_are_uniform_while_cells_stay_off_zero() -> None:
    def papers(evidence: Evidence) -> float:
        return association.association_test(evidence, method="paper").p_value

    def ratio(evidence: Evidence) -> float:
        return association.association_test(evidence, method="lrt").p_value

    assert uniform(p_values("basic", 20_000, 0.3, papers, (3, 3)))
    assert uniform(p_values("basic", 20_000, 0.3, ratio, (3, 3)))


def coverage(make: Callable[[Evidence], Interval]) -> float:
    """Share of 40 × 25 cells of a 5 × 5 table, 13% estimated at 0, that lie in their intervals."""
    rng = np.random.default_rng(33)
    truth = dependent_table(5, 5, strength=0.3, exponent=2.0)
    inside = []
    for _ in range(40):
        found = make(drawn(truth, 3000, rng, "bloom"))
        inside.append((found.low <= truth) & (truth <= found.high))
    return float(np.mean(inside))


def fitted_intervals(evidence: Evidence) -> Interval:
    return covariance(evidence, maximise(evidence).table).intervals()


def test_intervals_cover() -> None:
    # Clipping at 0 only adds coverage. 1,000 cells, about independent: below .93 in 1 of 500 seeds.
    assert coverage(fitted_intervals) >= 0.93


def test_intervals_without_the_cells_at_zero_do_not_cover() -> None:
    def kept_cells_only(evidence: Evidence) -> Interval:
        table = maximise(evidence).table
        kept = np.flatnonzero(table > 0)
        observed = evidence.information(table)[np.ix_(kept, kept)]
        errors = np.zeros(table.size)
        errors[kept] = np.sqrt(np.diagonal(invert_on_simplex(observed)))
        reach = 1.96 * errors.reshape(table.shape)
        return Interval(table, reach, table - reach, table + reach)

    # Measured .84, against .97 with all cells.
    assert coverage(kept_cells_only) < 0.93


def test_conditional_rates_cover() -> None:
    rng = np.random.default_rng(34)
    truth = dependent_table(4, 3, strength=0.4)
    rates = truth / truth.sum(axis=1, keepdims=True)
    inside = []
    for _ in range(40):
        evidence = drawn(truth, 8000, rng, "basic")
        found = covariance(evidence, maximise(evidence).table).conditional(0)
        inside.append((found.low <= rates) & (rates <= found.high))
    # 480 rates in 40 independent trials: below .91 in about 1 of 200 seeds.
    assert np.mean(inside) >= 0.91


@pytest.mark.parametrize(
    ("strength", "q"), [(0.0, 0.75), (0.1, 0.75), (0.4, 0.75), (0.0, 0.41), (0.5, 0.41)]
)
def test_cramers_v_covers(strength: float, q: float) -> None:
    rng = np.random.default_rng(35)
    truth = dependent_table(4, 4, strength=strength)
    independent = np.outer(truth.sum(axis=1), truth.sum(axis=0))
    v = np.sqrt(((truth - independent) ** 2 / independent).sum() / 3)
    hits = 0
    for _ in range(100):
        evidence = drawn(truth, 6000, rng, "basic", q)
        effect = cramers_v(evidence, covariance(evidence, maximise(evidence).table))
        hits += effect.low - 1e-9 <= v <= effect.high + 1e-9
    # Fails for a coverage of .95 in 1 of 1,000 seeds.
    assert binomtest(hits, 100, 0.95, "less").pvalue > 0.001


def test_plugging_the_estimate_into_cramers_v_overstates_it() -> None:
    rng = np.random.default_rng(36)
    truth = dependent_table(4, 4, strength=0.0)
    plain, corrected = [], []
    for _ in range(30):
        evidence = drawn(truth, 6000, rng, "basic")
        table = maximise(evidence).table
        independent = np.outer(table.sum(axis=1), table.sum(axis=0))
        plain.append(np.sqrt(((table - independent) ** 2 / independent).sum() / 3))
        corrected.append(cramers_v(evidence, covariance(evidence, table)).estimate)
    assert np.mean(corrected) < 0.6 * np.mean(plain)
