"""Likelihood rows in the memory of this process, and the passes over them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from deniable.compute.arrays import ArrayKernels
from deniable.compute.rows import (
    LikelihoodRows,
    multiply_out,
    scaling_error,
)
from deniable.kernels.array_types import (
    Floats,
    Indices,
    Int64s,
    RowArrays,
    Singles,
    Strata,
    Table,
    Weights,
)
from deniable.kernels.likelihood.mixture_pass import (
    BLOCK,
    MIN_MIXTURE_LIKELIHOOD,
    expect,
    to_blocks,
)

REPORTS_PER_SUM = 2048
"""Reports whose products of pairs are added up in float32."""


@dataclass(frozen=True, eq=False)
class RowBlocks(LikelihoodRows):
    """Likelihood rows, also stored as blocks of 256 (`kernels.likelihood.mixture_pass`)."""

    @cached_property
    def blocks(self) -> tuple[Singles, Singles, Floats]:
        """Blocks of the first variable, of all others, and of weights, for passes.

        They are float32[B, m, 256]; float32[B, Σ n_v, 256], stacked; and float64[B, 256], or
        float64[B, 0] without weights.
        """
        count = -(-self.count // BLOCK)
        first, *others = (_blocks(array, count) for array in self.rows)
        others = others or [np.ones((count, 1, BLOCK), np.float32)]
        weights = np.zeros((count, 0 if self.weights is None else BLOCK))
        if self.weights is not None:
            weights.ravel()[: self.count] = self.weights
        return first, others[0] if len(others) == 1 else np.concatenate(others, axis=1), weights

    @property
    def _other_sizes(self) -> Int64s:
        """Numbers of categories of all variables but the first, or 1."""
        return np.array([rows.shape[1] for rows in self.rows[1:]] or [1], np.int64)

    def evaluate(self, table: Table) -> Floats:
        """Return gradient and log-likelihood; see `kernels.likelihood.mixture_pass.expect`."""
        gradient, (first, others, weights) = np.zeros(table.shape), self.blocks
        total = expect(first, others, self._other_sizes, weights, self.count, table, gradient)
        return np.append(gradient, total)

    def _chosen(self, chosen: Indices, weights: Weights) -> RowBlocks:
        """Return the chosen rows, with these weights; their blocks are made by the first pass."""
        strata = None if self.strata is None else self.strata[chosen]
        rows = tuple(each[chosen] for each in self.rows)
        return RowBlocks(rows, weights, strata, self.arrays)

    def pair_sums(self, table: Floats) -> Floats:
        """Return sums over pairs, in float32 within chunks of reports, in float64 over chunks."""
        from deniable.kernels.likelihood import pair_sums

        first, others, weights = self.blocks
        shared = pair_sums.shares_background(self.rows[0][:BLOCK])
        sums, single = pair_sums.empty_sums(*table.shape), table.astype(np.float32)
        total = np.zeros(sums.shape)
        for start in range(0, self.count, REPORTS_PER_SUM):
            chunk = slice(start // BLOCK, (start + REPORTS_PER_SUM) // BLOCK)
            blocks = first[chunk], others[chunk], self._other_sizes, weights[chunk]
            sums[:] = 0.0
            pair_sums.add_pair_sums(*blocks, self.count - start, single, shared, sums)
            total += sums
        return pair_sums.without_background(total, shared, table.shape[1])

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
    own_weights = None if weights is None else np.ascontiguousarray(weights, np.float64)
    made = RowBlocks(contiguous, own_weights, strata, arrays)
    _ = made.blocks  # made now, because making them checks the rows
    return made


def _blocks(rows: Singles, blocks: int) -> Singles:
    """Return rows float32[N, m] as blocks float32[B, m, 256]."""
    out = np.empty((blocks, rows.shape[1], BLOCK), np.float32)
    worst = to_blocks(rows, out)
    if not worst <= 1e-5:
        raise scaling_error(worst)
    return out
