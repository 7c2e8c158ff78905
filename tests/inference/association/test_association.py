"""Association tests: values worked out another way, invariances, refusals."""

import numpy as np
import pytest
from experiments.direct_rows import basic_rows, dependent_table, draw_cells

from deniable import associate, simulate
from deniable.errors import InputError
from deniable.inference.association import independence as association
from deniable.inference.association.effect_size import cramers_v
from deniable.inference.association.independence import score_test
from deniable.inference.joint.evidence import Evidence, gather
from deniable.inference.joint.solver import maximise
from deniable.inference.joint.uncertainty import covariance
from tests.surveys import make_survey


def clear(table: np.ndarray) -> Evidence:
    """Reports seen without noise: a table of counts, one weighted row per cell."""
    cells = np.unravel_index(np.arange(table.size), table.shape)
    rows = tuple(
        np.eye(size, dtype=np.float32)[c] for size, c in zip(table.shape, cells, strict=True)
    )
    return gather([(*rows, table.ravel())], table.shape)


def simulated(
    strength: float, count: int, seed: int, shape: tuple[int, int] = (3, 4)
) -> tuple[np.ndarray, ...]:
    rng = np.random.default_rng(seed)
    values = draw_cells(dependent_table(*shape, strength=strength), count, rng)
    return tuple(basic_rows(v, size, rng=rng) for v, size in zip(values, shape, strict=True))


COUNTS = np.array([[620, 310, 470], [540, 390, 600], [250, 180, 340]])


def test_without_noise_every_test_is_the_textbooks() -> None:
    # R: chisq.test(matrix(c(620,540,250,310,390,180,470,600,340), 3))
    expected = np.outer(COUNTS.sum(axis=1), COUNTS.sum(axis=0)) / COUNTS.sum()
    pearson = ((COUNTS - expected) ** 2 / expected).sum()
    neyman = ((COUNTS - expected) ** 2 / COUNTS).sum()
    deviance = 2 * (COUNTS * np.log(COUNTS / expected)).sum()
    evidence = clear(COUNTS)
    found = {
        method: association.association_test(evidence, method=method)
        for method in ("score", "paper", "lrt")
    }
    total = COUNTS.sum()
    assert found["score"].statistic == pytest.approx(pearson * (total - 1) / total, rel=1e-3)
    assert found["paper"].statistic == pytest.approx(neyman, rel=1e-3)
    assert found["lrt"].statistic == pytest.approx(deviance, abs=0.1)
    assert {test.degrees_of_freedom for test in found.values()} == {4}


def test_without_noise_cramers_v_is_the_textbooks() -> None:
    evidence = clear(COUNTS * 100)
    expected = np.outer(COUNTS.sum(axis=1), COUNTS.sum(axis=0)) / COUNTS.sum()
    v = np.sqrt(((COUNTS - expected) ** 2 / expected).sum() / COUNTS.sum() / 2)
    effect = cramers_v(evidence, covariance(evidence, maximise(evidence).table))
    assert effect.estimate == pytest.approx(v, rel=0.01)
    assert effect.low < v < effect.high


def test_the_score_does_not_care_how_categories_are_ordered_or_shards_cut() -> None:
    a, b = simulated(0.1, 4000, 1)
    plain = score_test(gather([(a, b)], (3, 4)))
    turned = score_test(gather([(b[:900, ::-1], a[:900]), (b[900:, ::-1], a[900:])], (4, 3)))
    assert turned.statistic == pytest.approx(plain.statistic, rel=1e-3)
    assert turned.degrees_of_freedom == plain.degrees_of_freedom == 6


def test_categories_that_cannot_be_told_apart_cost_degrees_of_freedom() -> None:
    a, b = simulated(0.1, 4000, 2)
    doubled = np.concatenate([a, a[:, :1]], axis=1)
    found = score_test(gather([(doubled, b)], (4, 4)))
    assert found.degrees_of_freedom == 6
    assert found.statistic == pytest.approx(
        score_test(gather([(a, b)], (3, 4))).statistic, rel=1e-2
    )


@pytest.mark.parametrize("seed", range(12))
def test_rounding_adds_no_degree_of_freedom(seed: int) -> None:
    rows = simulated(0.0, 10_000, seed, (5, 5))
    assert score_test(gather([rows], (5, 5))).degrees_of_freedom == 16


def test_a_single_category_leaves_nothing_to_test() -> None:
    a, b = simulated(0.0, 500, 3)
    found = score_test(gather([(np.ones_like(a[:, :1]), b)], (1, 4)))
    assert (found.degrees_of_freedom, found.p_value) == (0, 1.0)


def test_few_reports_are_shuffled_and_weights_expand() -> None:
    a, b = simulated(0.9, 300, 4)
    plain = score_test(gather([(a, b)], (3, 4)), rng=np.random.default_rng(1))
    assert plain.reference == "shuffles"
    assert plain.p_value == pytest.approx(1 / 1000)
    doubled = score_test(gather([(a, b, np.full(300, 2))], (3, 4)), shuffles=99)
    repeated = score_test(gather([(np.tile(a, (2, 1)), np.tile(b, (2, 1)))], (3, 4)), shuffles=99)
    assert doubled.statistic == pytest.approx(repeated.statistic, rel=1e-3)
    assert doubled.p_value == repeated.p_value == 0.01


def test_strata_remove_what_cohorts_alone_would_cause() -> None:
    rng = np.random.default_rng(5)
    cohort = rng.integers(2, size=6000)
    # Both variables follow the cohort and are otherwise unrelated.
    values = [np.where(rng.random(6000) < 0.6, cohort, rng.integers(2, size=6000)) for _ in "xy"]
    rows = tuple(basic_rows(v, 2, rng=rng) for v in values)
    evidence = gather([rows], (2, 2))
    assert score_test(evidence).p_value < 1e-6
    assert score_test(evidence, strata=cohort).p_value > 0.01


def test_three_variables_that_depend_on_each_other() -> None:
    rng = np.random.default_rng(6)
    z = rng.integers(2, size=30_000)
    x, y = ((z + (rng.random(30_000) < 0.3)) % 2 for _ in "xy")
    rows = tuple(basic_rows(v, 2, rng=rng) for v in (x, y, z))
    evidence = gather([rows], (2, 2, 2))
    assert association.mutual_independence(evidence).p_value < 1e-10
    assert association.mutual_independence(evidence).degrees_of_freedom == 4


def test_mutual_independence_without_noise_is_the_textbooks() -> None:
    shares = np.multiply.outer(np.outer([0.5, 0.3, 0.2], [0.6, 0.4]), [0.4, 0.3, 0.2, 0.1])
    counts = np.random.default_rng(12).multinomial(40_000, shares.ravel()).reshape(shares.shape)
    margins = [counts.sum(axis=axes) / 40_000 for axes in ((1, 2), (0, 2), (0, 1))]
    expected = 40_000 * np.multiply.outer(np.outer(*margins[:2]), margins[2])
    pearson = ((counts - expected) ** 2 / expected).sum()
    found = association.mutual_independence(clear(counts))
    # The parts of Pearson's statistic are whitened with observed moments: equal up to 1/√N.
    assert found.statistic == pytest.approx(pearson, rel=0.05)
    assert found.degrees_of_freedom == 3 * 2 * 4 - 1 - 2 - 1 - 3
    turned = association.mutual_independence(clear(counts.transpose(2, 0, 1)))
    assert turned.statistic == pytest.approx(found.statistic, rel=1e-3)


def test_refusals_say_what_to_do() -> None:
    evidence = gather([simulated(0.0, 50, 11)], (3, 4))
    with pytest.raises(InputError, match="'score', 'paper' or 'lrt'"):
        association.association_test(evidence, method="chi2")
    with pytest.raises(InputError, match="one integer for each of the 50 rows"):
        score_test(evidence, strata=[1, 2])
    with pytest.raises(InputError, match="two variables"):
        association.association_test(evidence.only(0))


def test_an_option_that_nobody_has_leaves_the_strength_of_the_others() -> None:
    """An empty category used to divide by next to nothing: V came out 0, between 0 and 1."""
    survey = make_survey(
        """
[questions.a]
kind = "choice"
options = ["x", "y", "nobody"]
epsilon = 2.0
[questions.b]
kind = "boolean"
epsilon = 2.0
""",
        name="empty",
    )
    rng = np.random.default_rng(11)
    first = rng.random(60_000) < 0.5
    second = rng.random(60_000) < np.where(first, 0.7, 0.3)  # V = .4
    answers = {"a": np.where(first, "x", "y").tolist(), "b": second.tolist()}
    effect = associate(survey, simulate(survey, answers, rng=rng), ["a", "b"]).cramers_v()
    assert abs(effect.estimate - 0.4) < 0.05  # more than four standard deviations
    assert effect.high - effect.low < 0.1
