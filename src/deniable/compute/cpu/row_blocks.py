"""Likelihood rows in this process's memory, and the passes over them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from deniable.compute.arrays import ArrayKernels
from deniable.compute.rows import SMALLEST, LikelihoodRows, multiply_out, scaling_error
from deniable.kernels.array_types import Floats, Indices, RowArrays, Singles, Strata, Table, Weights
from deniable.kernels.likelihood.mixture_pass import BLOCK, expect, to_blocks

ROWS_PER_PRODUCT = 2048
"""Rows whose products of pairs exist together."""


@dataclass(frozen=True, eq=False)
class RowBlocks(LikelihoodRows):
    """Rows as given, and the same rows as blocks of 256 (`kernels.likelihood.mixture_pass`).

    first : float32[B, m, 256], the first variable's; others : float32[B, Σ n_v, 256], the others'
    stacked; block_weights : float64[B, 256], or float64[B, 0] without weights.
    """

    first: Singles
    others: Singles
    block_weights: Floats

    def evaluate(self, table: Table) -> Floats:
        """One pass; see `kernels.likelihood.mixture_pass.expect`."""
        sizes = np.array([rows.shape[1] for rows in self.rows[1:]] or [1])
        gradient = np.zeros(table.shape)
        total = expect(
            self.first, self.others, sizes, self.block_weights, self.count, table, gradient
        )
        return np.append(gradient, total)

    def pair_sums(self, table: Floats) -> Floats:
        """In float32 over chunks of reports, which are added up in float64."""
        m, n = table.shape
        total = np.zeros((m * (m + 1) // 2, n * (n + 1) // 2))
        single = table.astype(np.float32)
        left = np.empty((len(total), ROWS_PER_PRODUCT), np.float32)
        right = np.empty((total.shape[1], ROWS_PER_PRODUCT), np.float32)
        for start in range(0, self.count, ROWS_PER_PRODUCT):
            chunk = slice(start, min(start + ROWS_PER_PRODUCT, self.count))
            a, b = self._two_sides(chunk)
            d = np.maximum(np.einsum("kj,kj->k", a @ single, b), SMALLEST)
            scaled = np.ascontiguousarray((a / d[:, None]).T)
            size = scaled.shape[1]
            _pairs(scaled, left[:, :size])
            _pairs(np.ascontiguousarray(b.T), right[:, :size])
            if self.weights is not None:
                right[:, :size] *= self.weights[chunk].astype(np.float32)
            total += left[:, :size] @ right[:, :size].T
        return total

    def _score(self, table: Floats, chosen: Indices) -> Floats:
        a, b = self._two_sides(chosen)
        d = np.maximum(np.einsum("kj,kj->k", a @ table.astype(np.float32), b), SMALLEST)
        weights = np.ones(len(chosen)) if self.weights is None else self.weights[chosen]
        score: Singles = ((a * (weights / d).astype(np.float32)[:, None]).T @ b).ravel()
        return score.astype(np.float64)

    def _two_sides(self, chosen: slice | Indices) -> tuple[Singles, Singles]:
        first = self.rows[0][chosen]
        if len(self.rows) == 1:
            return first, np.ones((len(first), 1), np.float32)
        return first, multiply_out([rows[chosen] for rows in self.rows[1:]])


def lay_out(arrays: ArrayKernels, rows: RowArrays, weights: Weights, strata: Strata) -> RowBlocks:
    """Lay rows out as blocks, and check that each row's largest entry is 1."""
    given = tuple(np.ascontiguousarray(array, np.float32) for array in rows)
    count = len(given[0])
    blocks = -(-count // BLOCK)
    laid = [_blocks(array, blocks) for array in given]
    others = laid[1:] or [np.ones((blocks, 1, BLOCK), np.float32)]
    kept = None if weights is None else np.ascontiguousarray(weights, np.float64)
    block_weights = np.zeros((blocks, 0 if kept is None else BLOCK))
    if kept is not None:
        block_weights.ravel()[:count] = kept
    stacked = others[0] if len(others) == 1 else np.concatenate(others, axis=1)
    return RowBlocks(given, kept, strata, arrays, laid[0], stacked, block_weights)


def _blocks(rows: Singles, blocks: int) -> Singles:
    out = np.empty((blocks, rows.shape[1], BLOCK), np.float32)
    worst = to_blocks(rows, out)
    if not worst <= 1e-5:
        raise scaling_error(worst)
    return out


def _pairs(rows: Singles, out: Singles) -> None:
    """Fill out[m(m+1)/2, N] with the products of every unordered pair of rows float32[m, N]."""
    start = 0
    for i in range(len(rows)):
        stop = start + len(rows) - i
        np.multiply(rows[i:], rows[i], out=out[start:stop])
        start = stop
