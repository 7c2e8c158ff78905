"""Likelihood rows in a device's memory, and the passes over them.

A GPU is kept busy by much work at once, so the rows of all shards are joined to one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from deniable.compute.arrays import ArrayKernels
from deniable.compute.gpu import expectation
from deniable.compute.gpu.tensors import Tensor, on_host, torch
from deniable.compute.rows import LikelihoodRows, scaling_error
from deniable.kernels.array_types import Floats, Indices, RowArrays, Strata, Table, Weights


@dataclass(frozen=True, eq=False)
class TensorRows(LikelihoodRows):
    """Rows as tensors."""

    def evaluate(self, table: Table) -> Floats:
        """One pass; see `expectation.expect`, or `fused_expectation.expect` where that serves."""
        total, gradient = self._pass(self.arrays.placed(table))
        return np.append(on_host(gradient), float(total))

    def pair_sums(self, table: Floats) -> Floats:
        """All in float64; see `expectation.pair_sums`."""
        sums = expectation.pair_sums(self.rows, self._placed_weights, self.arrays.placed(table))
        return on_host(sums)

    def _score(self, table: Floats, chosen: Indices) -> Floats:
        weights = None if self.weights is None else self.weights[chosen]
        return self._chosen(chosen, weights).evaluate(table)[:-1]

    @cached_property
    def _placed_weights(self) -> Tensor | None:
        return None if self.weights is None else self.arrays.placed(self.weights)

    def _pass(self, table: Tensor) -> tuple[Tensor, Tensor]:
        if len(self.rows) == 2 and self.count and self.rows[0].is_cuda:
            from deniable.compute.gpu import fused_expectation as fused

            a, b = self.rows
            if fused.fits(a.shape[1], b.shape[1]):
                return fused.expect(a, b, self._placed_weights, table)
        return expectation.expect(self.rows, self._placed_weights, table)


def lay_out(arrays: ArrayKernels, rows: RowArrays, weights: Weights, strata: Strata) -> TensorRows:
    """Keep rows in the memory where they are, and check that each row's largest entry is 1."""
    held = tuple(arrays.placed(array).to(torch().float32).contiguous() for array in rows)
    for array in held:
        if len(array):
            low, high = (float(x) for x in array.aminmax())
            worst = float((array.amax(dim=1) - 1).abs().max())
            if not (low >= 0 and high < np.inf and worst <= 1e-5):
                raise scaling_error(max(worst, -low))
    kept = None if weights is None else np.asarray(weights, np.float64)
    return TensorRows(held, kept, strata, arrays)


def joined(parts: Sequence[TensorRows]) -> TensorRows:
    """All reports of these parts, in order, as one."""
    if len(parts) == 1:
        return parts[0]
    rows = tuple(torch().cat(each) for each in zip(*(part.rows for part in parts), strict=True))
    weights = strata = None
    if any(part.weights is not None for part in parts):
        weights = np.concatenate(
            [np.ones(part.count) if part.weights is None else part.weights for part in parts]
        )
    if all(part.strata is not None for part in parts):
        strata = np.concatenate([part.strata for part in parts if part.strata is not None])
    return TensorRows(rows, weights, strata, parts[0].arrays)
