"""Fitting more categories than are shown: which, how many, and tests of what is shown."""

import numpy as np
import pytest
from experiments.direct_rows import basic_rows, dependent_table, draw_cells
from experiments.paper.trials import bloom, boolean, pair, survey_of

import deniable
from deniable.inference.association.effect_size import cramers_v
from deniable.inference.joint.collapse import collapse_evidence, how_many_to_fit
from deniable.inference.joint.evidence import gather
from deniable.inference.joint.solver import maximise
from deniable.inference.joint.uncertainty import covariance
from deniable.simulation import geometric, simulate

TABLE = dependent_table(6, 4, strength=0.3)


def evidence_of(count: int, seed: int, **weights: np.ndarray):
    rng = np.random.default_rng(seed)
    values = draw_cells(TABLE, count, rng)
    rows = tuple(basic_rows(v, n, rng=rng) for v, n in zip(values, TABLE.shape, strict=True))
    return gather([(*rows, *weights.values())], TABLE.shape)


def test_adding_up_nothing_changes_nothing() -> None:
    evidence = evidence_of(500, 1)
    assert collapse_evidence(evidence, TABLE, [np.arange(6), np.arange(4)]) is evidence


def test_the_margin_of_collapsed_evidence_is_the_collapsed_margin() -> None:
    """Averaged by their own fitted margin, likelihoods keep the fit of one variable."""
    weights = np.random.default_rng(2).integers(1, 4, 20_000).astype(float)
    evidence = evidence_of(20_000, 3, weights=weights)
    first = evidence.only(0)
    fit = maximise(first, nats=1e-4)
    group = np.array([0, 1, 1, 1, 1, 0])
    collapsed = collapse_evidence(first, fit.table, [group])
    found = maximise(collapsed, nats=1e-4).table
    np.testing.assert_allclose(found, np.bincount(group, fit.table), atol=2e-4)
    # The twin: averaged evenly, the rare ones weigh too much, and the margin moves.
    evenly = collapse_evidence(first, np.full(6, 1 / 6), [group])
    wrong = maximise(evenly, nats=1e-4).table
    assert np.abs(wrong - np.bincount(group, fit.table)).max() > 2e-3
    assert collapsed.weight == weights.sum()


def test_cramers_v_of_a_collapsed_table_is_that_tables() -> None:
    evidence = evidence_of(200_000, 4)
    groups = [np.array([0, 1, 2, 2, 2, 2]), np.arange(4)]
    found = cramers_v(evidence, covariance(evidence, maximise(evidence).table),
                      groups=groups)  # fmt: skip
    truth = np.stack([TABLE[0], TABLE[1], TABLE[2:].sum(axis=0)])
    expected = np.outer(truth.sum(axis=1), truth.sum(axis=0))
    v = np.sqrt(((truth - expected) ** 2 / expected).sum() / 2)
    assert found.low <= v <= found.high
    assert found.high - found.low < 0.05


def test_about_twice_the_shown_are_fitted_while_cells_are_few() -> None:
    assert how_many_to_fit(10, 2, 1) == 22
    assert how_many_to_fit(5, 1, 31) == 12
    assert how_many_to_fit(40, 2, 1) == 40
    for strings in (2, 3, 4):
        fitted = how_many_to_fit(3, strings, 2)
        assert fitted == 3 or 2 * (fitted + 1) ** strings <= 600


@pytest.mark.slow
def test_tests_speak_of_the_table_that_is_shown() -> None:
    crowd = pair(geometric(20), geometric(20), strength=0.3)
    survey = survey_of(x=bloom(), y=bloom(), z=boolean())
    rng = np.random.default_rng(5)
    values = crowd.draw(40_000, rng)
    reports = simulate(survey, {**values, "z": [True] * 40_000}, rng=rng)
    for fitted in (None, 3, 8):
        joint = deniable.associate(
            survey, reports, ["x", "y"], candidates=crowd.values, top=3, fitted=fitted
        )
        assert joint.table.shape == (4, 4)
        for method in ("score", "paper", "lrt"):
            assert joint.test(method).degrees_of_freedom == 9
        assert joint.cramers_v().low > 0.1
    three = deniable.associate(
        survey, reports, ["x", "y", "z"], candidates=crowd.values, top=3, fitted=5
    )
    assert three.table.shape == (4, 4, 2)
    assert three.mutual_independence().degrees_of_freedom == 4 * 4 * 2 - 1 - 3 - 3 - 1
