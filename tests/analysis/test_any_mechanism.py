"""Any mechanism: k-ary randomised response, defined here alone, gets everything an analyst needs.

A client reports its own category with probability e^ε/(e^ε+k−1), else one of the others. All that
the decoder asks for is P(report | category).
"""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from deniable.analysis import associate_likelihoods
from deniable.simulation import contingency, correlated, uniform, zipf


class KaryResponse:
    """k-ary randomised response."""

    def __init__(self, k: int, epsilon: float) -> None:
        self.k = k
        self.keep = np.exp(epsilon) / (np.exp(epsilon) + k - 1)

    def report(self, values: NDArray[np.int32], rng: np.random.Generator) -> NDArray[np.int32]:
        others = (values + rng.integers(1, self.k, len(values))) % self.k
        return np.where(rng.random(len(values)) < self.keep, values, others).astype(np.int32)

    def likelihood(self, reports: NDArray[np.int32]) -> NDArray[np.float64]:
        rows = np.full((len(reports), self.k), (1 - self.keep) / (self.k - 1))
        rows[np.arange(len(reports)), reports] = self.keep
        return rows


def test_marginal_joint_and_association() -> None:
    rng = np.random.default_rng(4)
    x, y = KaryResponse(5, 1.5), KaryResponse(3, 1.0)
    table = correlated(zipf(5), uniform(3), strength=0.5)
    drawn = contingency(table, x=range(5), y=range(3)).draw(50_000, rng)
    a = x.likelihood(x.report(drawn["x"].codes, rng))
    b = y.likelihood(y.report(drawn["y"].codes, rng))
    labels = [[f"x{i}" for i in range(5)], [f"y{i}" for i in range(3)]]
    marginal = associate_likelihoods([a], labels[:1])
    assert (np.abs(marginal.table - zipf(5)) / marginal.standard_error).max() < 4
    joint = associate_likelihoods([a, b], labels, questions=("x", "y"))
    assert (np.abs(joint.table - table) / joint.standard_error).max() < 4
    assert joint.test().p_value < 1e-6
    shuffled = associate_likelihoods([a, rng.permutation(b)], labels)
    assert shuffled.test().p_value == pytest.approx(0.5, abs=0.49)
