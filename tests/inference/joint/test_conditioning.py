"""Rates within a subgroup: Fieller's interval by inversion, and a step that leaves the boundary."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import norm

from deniable.inference.joint.conditioning import Rates, one_step
from deniable.inference.joint.evidence import gather
from deniable.inference.joint.solver import maximise
from deniable.inference.joint.uncertainty import covariance
from deniable.results.covariance import Covariance

Z95 = norm.isf(0.025)


def random_rates(rng: np.random.Generator, size: int = 4) -> Rates:
    root = rng.normal(size=(size, size)) / 60
    return Rates(Covariance(rng.dirichlet(np.ones(size)) * 0.3, root @ root.T))


def test_the_interval_holds_the_rates_that_are_not_rejected() -> None:
    """Another route: test a − r·b = 0 for every r of a fine grid."""
    rng = np.random.default_rng(1)
    grid = np.linspace(0, 1, 20_001)
    checked = 0
    for _ in range(30):
        rates = random_rates(rng)
        if not rates.known:
            continue
        found = rates.of(np.eye(4))
        table, matrix = rates.cells.table, rates.cells.matrix
        for i in range(4):
            contrast = np.eye(4)[i] - grid[:, None]
            error = np.sqrt(np.einsum("gm,mn,gn->g", contrast, matrix, contrast))
            accepted = grid[np.abs(contrast @ table) <= Z95 * error]
            ends = (accepted.min(), accepted.max()) if accepted.size else (0.0, 0.0)
            assert (found.low[i], found.high[i]) == pytest.approx(ends, abs=1e-4)
            checked += 1
    assert checked > 40


def test_rates_of_everything_are_one_without_an_error() -> None:
    rates = random_rates(np.random.default_rng(2))
    whole = rates.of(np.ones((1, 4)))
    assert whole.estimate == pytest.approx([1.0]) and whole.standard_error[0] == 0


def test_a_subgroup_that_may_be_empty_has_no_rates() -> None:
    rates = Rates(Covariance(np.array([0.004, 0.001]), 1e-5 * np.eye(2)))
    assert not rates.known
    found = rates.of(np.eye(2))
    assert np.isnan(found.estimate).all() and np.isinf(found.standard_error).all()
    assert found.low.tolist() == [0, 0] and found.high.tolist() == [1, 1]


def stepped(ones: int, reports: int = 1000, p: float = 0.25, q: float = 0.75) -> Covariance:
    """The table of one bit, of which `ones` reports are set: categories yes and no."""
    rows = np.array([[1, p / q]] * ones + [[(1 - q) / (1 - p), 1]] * (reports - ones), np.float32)
    evidence = gather([(rows,)], (2,))
    fit = maximise(evidence, nats=1e-6)
    return one_step(evidence, covariance(evidence, fit.table))


def test_inside_the_simplex_the_step_changes_nothing() -> None:
    assert stepped(400).table == pytest.approx([0.3, 0.7], abs=1e-4)


def test_from_the_boundary_the_step_leads_to_the_unconstrained_estimate() -> None:
    """Fewer ones than noise alone makes: the closed form is (220/1000 − p) / (q − p) = −.06."""
    found = stepped(220).table
    assert found == pytest.approx([-0.06, 1.06], abs=0.006)
    assert found.sum() == pytest.approx(1)
