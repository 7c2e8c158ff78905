"""Likelihood rows in the memory of a device, and the passes over them.

The rows of all shards are joined, because a GPU needs much work at a time to be busy.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from deniable.compute.arrays import ArrayKernels
from deniable.compute.gpu import expectation
from deniable.compute.gpu.tensors import Tensor, to_numpy, torch
from deniable.compute.rows import LikelihoodRows, scaling_error
from deniable.kernels.array_types import Floats, Indices, RowArrays, Strata, Table, Weights


@dataclass(frozen=True, eq=False)
class TensorRows(LikelihoodRows):
    """Likelihood rows as tensors."""

    def evaluate(self, table: Table) -> Floats:
        """Return gradient and log-likelihood; see `expectation.expect`.

        `fused_expectation.expect` is used where it can be.
        """
        total, gradient = self._pass(self.arrays.to_device(table))
        return np.append(to_numpy(gradient), float(total))

    def pair_sums(self, table: Floats) -> Floats:
        """Return sums over pairs; see `expectation.pair_sums`."""
        sums = expectation.pair_sums(self.rows, self._device_weights, self.arrays.to_device(table))
        return to_numpy(sums)

    def _score(self, table: Floats, chosen: Indices) -> Floats:
        """Return Σ w v / d over the chosen rows, float64[mn]."""
        weights = None if self.weights is None else self.weights[chosen]
        return self._chosen(chosen, weights).evaluate(table)[:-1]

    @cached_property
    def _device_weights(self) -> Tensor | None:
        """Weights in the memory of the device."""
        return None if self.weights is None else self.arrays.to_device(self.weights)

    def _pass(self, table: Tensor) -> tuple[Tensor, Tensor]:
        """Return log-likelihood and gradient of one pass."""
        if len(self.rows) == 2 and self.count and self.rows[0].is_cuda:
            from deniable.compute.gpu import fused_expectation as fused

            a, b = self.rows
            if fused.fits(a.shape[1], b.shape[1]):
                return fused.expect(a, b, self._device_weights, table)
        return expectation.expect(self.rows, self._device_weights, table)


def lay_out(arrays: ArrayKernels, rows: RowArrays, weights: Weights, strata: Strata) -> TensorRows:
    """Store rows on the device, and check that the largest entry of each row is 1."""
    tensors = tuple(arrays.to_device(array).to(torch().float32).contiguous() for array in rows)
    for tensor in tensors:
        if len(tensor):
            low, high = (float(x) for x in tensor.aminmax())
            worst = float((tensor.amax(dim=1) - 1).abs().max())
            if not (low >= 0 and high < np.inf and worst <= 1e-5):
                raise scaling_error(max(worst, -low))
    own_weights = None if weights is None else np.asarray(weights, np.float64)
    return TensorRows(tensors, own_weights, strata, arrays)


def joined(parts: Sequence[TensorRows]) -> TensorRows:
    """Return the rows of all parts, in order, as one."""
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
