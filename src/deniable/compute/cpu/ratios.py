"""Likelihood ratios in this process's memory, for the score test."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from deniable.compute.array_types import Floats, Rows
from deniable.compute.ratios import LikelihoodRatios, by_stratum

ROWS_PER_PRODUCT = 2048
"""Rows whose copies in double precision exist together."""


class CpuRatios(LikelihoodRatios):
    """Ratios as NumPy arrays."""

    def _placed(self, array: Rows) -> Rows:
        return array

    def _product(self, x: Rows, y: Rows, weights: Floats | None = None) -> Floats:
        product = np.zeros((x.shape[1], y.shape[1]))
        for start in range(0, len(x), ROWS_PER_PRODUCT):
            chunk = slice(start, start + ROWS_PER_PRODUCT)
            left = x[chunk] if weights is None else x[chunk] * weights[chunk]
            product += left.T @ y[chunk].astype(np.float64)
        return product

    def shuffled(self, shuffles: int, seed: int) -> Rows:
        rng = np.random.default_rng(seed)
        times = self.weights.astype(np.int64)
        whole = [
            [np.repeat(side[rows], times[rows], axis=0) for side in (self.x, self.y)]
            for _, rows in self._strata()
        ]
        scores = np.zeros((shuffles, self.x.shape[1] * self.y.shape[1]), np.float32)
        for shuffle in range(shuffles):
            score = sum((x.T @ y[rng.permutation(len(y))] for x, y in whole), np.zeros(()))
            scores[shuffle] = score.ravel()
        return scores

    def on_host(self) -> CpuRatios:
        return self


def concatenated(parts: Sequence[LikelihoodRatios]) -> CpuRatios:
    """All parts' rows as one."""
    labels = np.concatenate([np.repeat(part.labels, np.diff(part.edges)) for part in parts])
    order, unique, edges = by_stratum(labels)
    x, y, weights = (
        np.concatenate([getattr(part, name) for part in parts])[order]
        for name in ("x", "y", "weights")
    )
    return CpuRatios(x, y, weights, unique, edges)
