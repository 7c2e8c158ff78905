"""Pieces: some reports' likelihood rows, and everything that is ever done to them.

All of evidence is pieces that stay where they were made (`compute.backend.Held`), so what is done
to reports is done here, and only its sums travel. `Piece` is what is asked of one; `Blocks` is the
one for processors, made by `lay_out`. Another kind of memory brings a `Piece` of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from deniable.errors import InputError
from deniable.kernels.likelihood.mixture_pass import BLOCK, expect, to_blocks

Floats = npt.NDArray[np.float64]
Rows = npt.NDArray[np.float32]
Integers = npt.NDArray[np.integer[Any]]
Indices = npt.NDArray[np.intp]
Shard = tuple[npt.NDArray[Any], ...]
"""One float32[N, m] per variable, each row's largest entry 1; then, optionally, weights [N]."""

_CHUNK = 2048
# Squared reciprocals must stay inside float32; at an optimum d_k is never below w_k / N.
_SMALLEST = 1e-15


class Piece(Protocol):
    """Reports that are worked on together, N of them in rows, perhaps with weights and strata."""

    @property
    def rows(self) -> tuple[Rows, ...]:
        """Likelihood rows as given: one float32[N, m] a variable, in this process's memory."""
        ...

    @property
    def weights(self) -> Floats | None:
        """How many reports each row stands for, float64[N]; None means one each."""
        ...

    @property
    def strata(self) -> Integers | None:
        """What is known in the clear of each row, integers[N]; None where nothing is."""
        ...

    @property
    def count(self) -> int:
        """Number of rows, N."""
        ...

    @property
    def weight(self) -> float:
        """Number of reports, counting weights."""
        ...

    def evaluate(self, table: npt.NDArray[np.floating[Any]]) -> tuple[float, Floats]:
        """Σ w log d and its gradient Σ w v / d, float64[m, n], in the table's own precision."""
        ...

    def pair_sums(self, table: Floats) -> Floats:
        """Σ w (a_i a_i′)(b_j b_j′) / d² over unordered pairs, float64[m(m+1)/2, n(n+1)/2]."""
        ...

    def group_scores(self, table: Floats, order: Indices, edges: Indices) -> Floats:
        """Σ w v / d over the rows of each group, and their reports: float64[S, cells + 1].

        order, edges : intp[N] and intp[S + 1], group s is the rows order[edges[s] : edges[s + 1]]
        """
        ...

    def only(self, variables: Sequence[int]) -> Piece:
        """The same reports' rows of some of the variables."""
        ...

    def mixed(self, mixing: Sequence[Rows]) -> Piece:
        """Rows over new categories: each variable's rows times its float32[m, m′], rescaled."""
        ...

    def drawn(self, count: int, seed: int) -> Piece:
        """Reports drawn with replacement, `count` of them; each is a row."""
        ...

    def weighted(self, weights: Floats) -> Piece:
        """The same rows with other weights float64[N], without those of weight 0."""
        ...

    def stratified(self, strata: Integers) -> Piece:
        """The same rows, of these strata, integers[N]."""
        ...


@dataclass(frozen=True, eq=False)
class Blocks:
    """A piece for processors: rows as given, and the same rows as blocks of 256
    (`kernels.likelihood.mixture_pass`).

    first : float32[B, m, 256], the first variable's; rest : float32[B, Σ n_v, 256], the others'
    stacked; block_weights : float64[B, 256], or float64[B, 0] without weights.
    """

    rows: tuple[Rows, ...]
    weights: Floats | None
    strata: Integers | None
    first: Rows
    rest: Rows
    block_weights: Floats

    @property
    def count(self) -> int:
        """Number of rows."""
        return len(self.rows[0])

    @property
    def weight(self) -> float:
        """Number of reports, counting weights."""
        return float(self.count if self.weights is None else self.weights.sum())

    def evaluate(self, table: npt.NDArray[np.floating[Any]]) -> tuple[float, Floats]:
        """One pass; see `kernels.likelihood.mixture_pass.expect`."""
        sizes = np.array([rows.shape[1] for rows in self.rows[1:]] or [1])
        gradient = np.zeros(table.shape)
        total = expect(
            self.first, self.rest, sizes, self.block_weights, self.count, table, gradient
        )
        return float(total), gradient

    def pair_sums(self, table: Floats) -> Floats:
        """In float32 over chunks of 2,048 reports, which are added up in float64."""
        m, n = table.shape
        total = np.zeros((m * (m + 1) // 2, n * (n + 1) // 2))
        single = table.astype(np.float32)
        left = np.empty((len(total), _CHUNK), np.float32)
        right = np.empty((total.shape[1], _CHUNK), np.float32)
        for start in range(0, self.count, _CHUNK):
            chunk = slice(start, min(start + _CHUNK, self.count))
            a, b = self._two_sides(chunk)
            d = np.maximum(np.einsum("kj,kj->k", a @ single, b), _SMALLEST)
            scaled = np.ascontiguousarray((a / d[:, None]).T)
            size = scaled.shape[1]
            _pairs(scaled, left[:, :size])
            _pairs(np.ascontiguousarray(b.T), right[:, :size])
            if self.weights is not None:
                right[:, :size] *= self.weights[chunk].astype(np.float32)
            total += left[:, :size] @ right[:, :size].T
        return total

    def group_scores(self, table: Floats, order: Indices, edges: Indices) -> Floats:
        """In float32 over each group's rows."""
        scores, single = np.zeros((len(edges) - 1, table.size + 1)), table.astype(np.float32)
        for s in np.flatnonzero(np.diff(edges)):
            chosen = order[edges[s] : edges[s + 1]]
            a, b = self._two_sides(chosen)
            d = np.maximum(np.einsum("kj,kj->k", a @ single, b), _SMALLEST)
            weights = np.ones(len(chosen)) if self.weights is None else self.weights[chosen]
            scores[s, :-1] = ((a * (weights / d).astype(np.float32)[:, None]).T @ b).ravel()
            scores[s, -1] = weights.sum()
        return scores

    def _two_sides(self, chosen: slice | Indices) -> tuple[Rows, Rows]:
        first = self.rows[0][chosen]
        if len(self.rows) == 1:
            return first, np.ones((len(first), 1), np.float32)
        return first, multiply_out([rows[chosen] for rows in self.rows[1:]])

    def only(self, variables: Sequence[int]) -> Blocks:
        """The same reports' rows of some of the variables."""
        return lay_out([self.rows[v] for v in variables], self.weights, self.strata)

    def mixed(self, mixing: Sequence[Rows]) -> Blocks:
        """Rows over new categories."""
        new = [rows @ matrix for rows, matrix in zip(self.rows, mixing, strict=True)]
        scaled = [rows / rows.max(axis=1, keepdims=True) for rows in new]
        return lay_out(scaled, self.weights, self.strata)

    def drawn(self, count: int, seed: int) -> Blocks:
        """Reports drawn with replacement."""
        positions = np.sort(np.random.default_rng(seed).random(count)) * self.weight
        if self.weights is None:
            chosen = positions.astype(np.intp)
        else:
            chosen = np.searchsorted(np.cumsum(self.weights), positions, side="right")
        return self._chosen(np.minimum(chosen, self.count - 1), None)

    def weighted(self, weights: Floats) -> Blocks:
        """The same rows with other weights."""
        kept = np.flatnonzero(weights > 0)
        return self._chosen(kept, weights[kept])

    def stratified(self, strata: Integers) -> Blocks:
        """The same rows, of these strata."""
        return replace(self, strata=strata)

    def _chosen(self, rows: npt.NDArray[np.intp], weights: Floats | None) -> Blocks:
        strata = None if self.strata is None else self.strata[rows]
        return lay_out([array[rows] for array in self.rows], weights, strata)


def lay_out(
    rows: Sequence[npt.NDArray[Any]], weights: npt.NDArray[Any] | None, strata: Integers | None
) -> Blocks:
    """Lay rows out as blocks, and check that each row's largest entry is 1."""
    given = tuple(np.ascontiguousarray(array, np.float32) for array in rows)
    count = len(given[0])
    blocks = -(-count // BLOCK)
    laid = [_blocks(array, blocks) for array in given]
    rest = laid[1:] or [np.ones((blocks, 1, BLOCK), np.float32)]
    block_weights = np.empty((blocks, 0))
    if weights is not None:
        weights = np.ascontiguousarray(weights, np.float64)
        block_weights = np.zeros((blocks, BLOCK))
        block_weights.ravel()[:count] = weights
    stacked = rest[0] if len(rest) == 1 else np.concatenate(rest, axis=1)
    return Blocks(given, weights, strata, laid[0], stacked, block_weights)


def multiply_out(rows: Sequence[Rows]) -> Rows:
    """Return [N, Π n_v]: for each report the products of one entry from each variable's row."""
    if not rows:
        raise InputError("rows of at least one variable are needed, got none")
    out = rows[0]
    for more in rows[1:]:
        out = (out[:, :, None] * more[:, None, :]).reshape(len(out), -1)
    return out


def _blocks(rows: Rows, blocks: int) -> Rows:
    out = np.empty((blocks, rows.shape[1], BLOCK), np.float32)
    worst = to_blocks(rows, out)
    if not worst <= 1e-5:
        raise InputError(
            "likelihood rows must be at least 0 with largest entry 1 in each row "
            f"(off by up to {worst:.3g}); divide each row by its largest entry"
        )
    return out


def _pairs(rows: Rows, out: Rows) -> None:
    """Fill out[m(m+1)/2, N] with the products of every unordered pair of rows float32[m, N]."""
    start = 0
    for i in range(len(rows)):
        stop = start + len(rows) - i
        np.multiply(rows[i:], rows[i], out=out[start:stop])
        start = stop
