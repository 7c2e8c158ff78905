"""Likelihood rows in the memory of this process, and the passes over them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from deniable.compute.arrays import ArrayKernels
from deniable.compute.rows import (
    MIN_MIXTURE_LIKELIHOOD,
    LikelihoodRows,
    multiply_out,
    scaling_error,
)
from deniable.kernels.array_types import Floats, Indices, RowArrays, Singles, Strata, Table, Weights
from deniable.kernels.likelihood.mixture_pass import BLOCK, expect, to_blocks

ROWS_PER_PRODUCT = 2048
"""Rows whose products of pairs are in memory at a time."""


@dataclass(frozen=True, eq=False)
class RowBlocks(LikelihoodRows):
    """Likelihood rows, also stored as blocks of 256 (`kernels.likelihood.mixture_pass`).

    first : float32[B, m, 256], blocks of the first variable;
    others : float32[B, Σ n_v, 256], blocks of the other variables, stacked;
    block_weights : float64[B, 256], or float64[B, 0] without weights.
    """

    first: Singles
    others: Singles
    block_weights: Floats

    def evaluate(self, table: Table) -> Floats:
        """Return gradient and log-likelihood; see `kernels.likelihood.mixture_pass.expect`."""
        sizes = np.array([rows.shape[1] for rows in self.rows[1:]] or [1])
        gradient = np.zeros(table.shape)
        total = expect(
            self.first, self.others, sizes, self.block_weights, self.count, table, gradient
        )
        return np.append(gradient, total)

    def pair_sums(self, table: Floats) -> Floats:
        """Return sums over pairs, in float32 within chunks of reports, in float64 over chunks."""
        m, n = table.shape
        total = np.zeros((m * (m + 1) // 2, n * (n + 1) // 2))
        single = table.astype(np.float32)
        left = np.empty((len(total), ROWS_PER_PRODUCT), np.float32)
        right = np.empty((total.shape[1], ROWS_PER_PRODUCT), np.float32)
        for start in range(0, self.count, ROWS_PER_PRODUCT):
            chunk = slice(start, min(start + ROWS_PER_PRODUCT, self.count))
            a, b = self._two_sides(chunk)
            d = np.maximum(np.einsum("kj,kj->k", a @ single, b), MIN_MIXTURE_LIKELIHOOD)
            scaled = np.ascontiguousarray((a / d[:, None]).T)
            size = scaled.shape[1]
            _pairs(scaled, left[:, :size])
            _pairs(np.ascontiguousarray(b.T), right[:, :size])
            if self.weights is not None:
                right[:, :size] *= self.weights[chunk].astype(np.float32)
            total += left[:, :size] @ right[:, :size].T
        return total

    def _score(self, table: Floats, chosen: Indices) -> Floats:
        """Return Σ w v / d over the chosen rows, float64[mn]."""
        a, b = self._two_sides(chosen)
        d = np.maximum(
            np.einsum("kj,kj->k", a @ table.astype(np.float32), b), MIN_MIXTURE_LIKELIHOOD
        )
        weights = np.ones(len(chosen)) if self.weights is None else self.weights[chosen]
        score: Singles = ((a * (weights / d).astype(np.float32)[:, None]).T @ b).ravel()
        return score.astype(np.float64)

    def _two_sides(self, chosen: slice | Indices) -> tuple[Singles, Singles]:
        """Return rows of the first variable, and products of rows of all others."""
        first = self.rows[0][chosen]
        if len(self.rows) == 1:
            return first, np.ones((len(first), 1), np.float32)
        return first, multiply_out([rows[chosen] for rows in self.rows[1:]])


def lay_out(arrays: ArrayKernels, rows: RowArrays, weights: Weights, strata: Strata) -> RowBlocks:
    """Store rows as blocks, and check that the largest entry of each row is 1."""
    contiguous = tuple(np.ascontiguousarray(array, np.float32) for array in rows)
    count = len(contiguous[0])
    blocks = -(-count // BLOCK)
    by_variable = [_blocks(array, blocks) for array in contiguous]
    others = by_variable[1:] or [np.ones((blocks, 1, BLOCK), np.float32)]
    own_weights = None if weights is None else np.ascontiguousarray(weights, np.float64)
    block_weights = np.zeros((blocks, 0 if own_weights is None else BLOCK))
    if own_weights is not None:
        block_weights.ravel()[:count] = own_weights
    stacked = others[0] if len(others) == 1 else np.concatenate(others, axis=1)
    first = by_variable[0]
    return RowBlocks(contiguous, own_weights, strata, arrays, first, stacked, block_weights)


def _blocks(rows: Singles, blocks: int) -> Singles:
    """Return rows float32[N, m] as blocks float32[B, m, 256]."""
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
