"""Likelihood rows that are held for many passes, with all operations on them.

Rows stay with the worker that computed them (`compute.executors.Held`). So every operation on them
is a method, and only sums are sent.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from deniable.compute.ratios import LikelihoodRatios, by_stratum
from deniable.errors import InputError
from deniable.kernels.array_types import (
    Floats,
    Indices,
    Int64s,
    Integers,
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
class LikelihoodRows:
    """Likelihood rows of N reports, also stored as blocks of 256 for passes.

    rows : one float32[N, m] per variable; the largest entry of each row is 1;
    weights : float64[N], number of reports that each row stands for, or None for one each;
    strata : integers[N], stratum of each row, or None where strata are unknown.
    """

    rows: tuple[Singles, ...]
    weights: Weights = None
    strata: Strata = None

    @classmethod
    def laid_out(
        cls, rows: Sequence[Table], weights: Table | None = None, strata: Strata = None
    ) -> LikelihoodRows:
        """Store rows as blocks; raise InputError if the largest entry of a row is not 1."""
        contiguous = tuple(np.ascontiguousarray(array, np.float32) for array in rows)
        own_weights = None if weights is None else np.ascontiguousarray(weights, np.float64)
        made = cls(contiguous, own_weights, strata)
        _ = made.blocks  # made now, because making them checks the rows
        return made

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
        """Return the gradient Σ w v / d, row by row, then Σ w log d: float64[mn + 1].

        One pass over the rows, in the precision of the table; see `mixture_pass.expect`.
        """
        gradient, (first, others, weights) = np.zeros(table.shape), self.blocks
        total = expect(first, others, self._other_sizes, weights, self.count, table, gradient)
        return np.append(gradient, total)

    def pair_sums(self, table: Floats) -> Floats:
        """Return Σ w (a_i a_i′)(b_j b_j′) / d² for unordered pairs, float64[m(m+1)/2, n(n+1)/2].

        Sums are float32 within chunks of reports, and float64 over chunks.
        """
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
        a = self.rows[0][chosen]
        others = [rows[chosen] for rows in self.rows[1:]]
        b = multiply_out(others) if others else np.ones((len(a), 1), np.float32)
        d = np.maximum(
            np.einsum("kj,kj->k", a @ table.astype(np.float32), b), MIN_MIXTURE_LIKELIHOOD
        )
        weights = np.ones(len(chosen)) if self.weights is None else self.weights[chosen]
        score: Singles = ((a * (weights / d).astype(np.float32)[:, None]).T @ b).ravel()
        return score.astype(np.float64)

    def __sizeof__(self) -> int:
        """Return the bytes of the rows; a cluster's scheduler leaves large results in place."""
        return sum(rows.nbytes for rows in self.rows)

    @property
    def count(self) -> int:
        """Number of rows, N."""
        return len(self.rows[0])

    @property
    def weight(self) -> float:
        """Number of reports: the sum of the weights."""
        return float(self.count if self.weights is None else self.weights.sum())

    def size(self) -> tuple[int, float]:
        """Return the numbers of rows and of reports."""
        return self.count, self.weight

    def stratum_scores(self, table: Floats, groups: int) -> Floats:
        """Return Σ w v / d and the number of reports per group of strata, float64[groups, mn + 1].

        Stratum s belongs to group s modulo groups. Without strata everything is 0.
        """
        scores = np.zeros((groups, table.size + 1))
        if self.strata is None:
            return scores
        group = self.strata % groups
        order = np.argsort(group, kind="stable")
        edges = np.searchsorted(group[order], np.arange(groups + 1))
        for s in np.flatnonzero(np.diff(edges)):
            chosen = order[edges[s] : edges[s + 1]]
            scores[s, :-1] = self._score(table, chosen)
            scores[s, -1] = len(chosen) if self.weights is None else self.weights[chosen].sum()
        return scores

    def only(self, variables: Sequence[int]) -> LikelihoodRows:
        """Return the rows of some of the variables."""
        return replace(self, rows=tuple(self.rows[v] for v in variables))

    def drawn(self, count: int, seed: int) -> LikelihoodRows:
        """Return `count` reports drawn with replacement, one row each."""
        positions = np.sort(np.random.default_rng(seed).random(count)) * self.weight
        if self.weights is None:
            chosen = positions.astype(np.intp)
        else:
            chosen = np.searchsorted(np.cumsum(self.weights), positions, side="right")
        chosen = np.minimum(chosen, self.count - 1)
        strata = None if self.strata is None else self.strata[chosen]
        return LikelihoodRows(tuple(rows[chosen] for rows in self.rows), None, strata)

    def stratified(self, strata: Integers) -> LikelihoodRows:
        """Return the rows with these strata, integers[N]."""
        return replace(self, strata=strata)

    def ratios(self, margins: Sequence[Singles]) -> LikelihoodRatios:
        """Return likelihood ratios for the score test, at one margin float32[m] per variable.

        There may be more variables than margins. x is about all variables with margins but the
        last one, as if they were one variable with a category per cell, and y about the last one.
        """
        rows, weights = self.rows, np.ones(self.count) if self.weights is None else self.weights
        labels: Integers = np.zeros(1, np.intp)
        edges: Integers = np.array([0, self.count])
        if self.strata is not None:
            order, labels, edges = by_stratum(self.strata)
            rows, weights = tuple(each[order] for each in rows), weights[order]
        *others, last = (
            each / (each @ margin).clip(1e-30)[:, None]
            for each, margin in zip(rows, margins, strict=False)
        )
        x, y = multiply_out(others) - 1, last - 1
        return LikelihoodRatios(x, y, weights, labels, edges)

    def mixed(self, mixing: Sequence[Singles]) -> LikelihoodRows:
        """Return rows over new categories: rows times float32[m, m′] per variable, rescaled."""
        mixed = [rows @ matrix for rows, matrix in zip(self.rows, mixing, strict=True)]
        return replace(self, rows=tuple(rows / rows.max(axis=1, keepdims=True) for rows in mixed))


def multiply_out(rows: Sequence[Singles]) -> Singles:
    """Return [N, Π n_v]: for each report the products of one entry from each variable's row."""
    out = rows[0]
    for more in rows[1:]:
        out = (out[:, :, None] * more[:, None, :]).reshape(len(out), -1)
    return out


def _blocks(rows: Singles, blocks: int) -> Singles:
    """Return rows float32[N, m] as blocks float32[B, m, 256]."""
    out = np.empty((blocks, rows.shape[1], BLOCK), np.float32)
    worst = to_blocks(rows, out)
    if not worst <= 1e-5:
        raise InputError(
            "likelihood rows must be at least 0 with largest entry 1 in each row "
            f"(off by up to {worst:.3g}); divide each row by its largest entry"
        )
    return out
