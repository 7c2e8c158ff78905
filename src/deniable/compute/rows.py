"""Likelihood rows that are kept for many passes, and everything that is ever done to them.

Evidence about a table stays where it was made (`compute.backend.Held`), so what is done to reports
is a method here, and only its sums travel. `LikelihoodRows` holds what every kind of memory does
alike; `compute.cpu.row_blocks` and `compute.gpu.tensor_rows` add the passes.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from deniable.compute.ratios import LikelihoodRatios, by_stratum
from deniable.errors import InputError
from deniable.kernels.array_types import (
    DeviceArray,
    Floats,
    Indices,
    Integers,
    Singles,
    Strata,
    Table,
    Weights,
)

if TYPE_CHECKING:
    from deniable.compute.arrays import ArrayKernels

SMALLEST = 1e-15
"""Squared reciprocals must stay inside float32; at an optimum d_k is never below w_k / N."""


@dataclass(frozen=True, eq=False)
class LikelihoodRows(ABC):
    """Reports that are worked on together, N of them in rows.

    rows : one float32[N, m] per variable, each row's largest entry 1;
    weights : float64[N], how many reports each row stands for, or None for one each;
    strata : integers[N], what is known in the clear of each row, or None where nothing is.
    Weights and strata are in this process's memory, rows in that of the kernels `arrays`.
    """

    rows: tuple[DeviceArray, ...]
    weights: Weights
    strata: Strata
    arrays: ArrayKernels

    # --- what differs with the memory ------------------------------------------------------------

    @abstractmethod
    def evaluate(self, table: Table) -> Floats:
        """One pass in the table's own precision: float64[mn + 1], the gradient Σ w v / d row by
        row, then Σ w log d."""

    @abstractmethod
    def pair_sums(self, table: Floats) -> Floats:
        """Σ w (a_i a_i′)(b_j b_j′) / d² over unordered pairs, float64[m(m+1)/2, n(n+1)/2]."""

    @abstractmethod
    def _score(self, table: Floats, chosen: Indices) -> Floats:
        """Σ w v / d over some rows, float64[mn]."""

    # --- what all memory does alike --------------------------------------------------------------

    @property
    def count(self) -> int:
        """Number of rows, N."""
        return len(self.rows[0])

    @property
    def weight(self) -> float:
        """Number of reports, counting weights."""
        return float(self.count if self.weights is None else self.weights.sum())

    def size(self) -> tuple[int, float]:
        """Number of rows, and of reports."""
        return self.count, self.weight

    def stratum_scores(self, table: Floats, groups: int) -> Floats:
        """Σ w v / d over each group of strata, and its reports: float64[groups, mn + 1].

        Strata are dealt to groups in turn; where none are known everything is 0.
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
        """The same reports' rows of some of the variables."""
        return self.arrays.lay_out([self.rows[v] for v in variables], self.weights, self.strata)

    def drawn(self, count: int, seed: int) -> LikelihoodRows:
        """Reports drawn with replacement, `count` of them; each is a row."""
        positions = np.sort(np.random.default_rng(seed).random(count)) * self.weight
        if self.weights is None:
            chosen = positions.astype(np.intp)
        else:
            chosen = np.searchsorted(np.cumsum(self.weights), positions, side="right")
        return self._chosen(np.minimum(chosen, self.count - 1), None)

    def weighted(self, weights: Floats) -> LikelihoodRows:
        """The same rows with other weights float64[N], without those of weight 0."""
        kept = np.flatnonzero(weights > 0)
        return self._chosen(kept, weights[kept])

    def stratified(self, strata: Integers) -> LikelihoodRows:
        """The same rows, of these strata, integers[N]."""
        return replace(self, strata=strata)

    def ratios(self, margins: Sequence[Singles]) -> LikelihoodRatios:
        """Likelihood ratios at two margins, float32[m] and float32[n], for the score test."""
        rows, weights = self.rows, np.ones(self.count) if self.weights is None else self.weights
        labels: Integers = np.zeros(1, np.intp)
        edges: Integers = np.array([0, self.count])
        if self.strata is not None:
            order, labels, edges = by_stratum(self.strata)
            at, weights = self.arrays.placed(order), weights[order]
            rows = tuple(each[at] for each in rows)
        x, y = (
            each / (each @ self.arrays.placed(margin)).clip(1e-30)[:, None] - 1
            for each, margin in zip(rows, margins, strict=True)
        )
        return LikelihoodRatios(x, y, self.arrays.placed(weights), labels, edges, self.arrays)

    def mixed(self, mixing: Sequence[Singles]) -> LikelihoodRows:
        """Rows over new categories: each variable's rows times its float32[m, m′], rescaled."""
        placed = [self.arrays.placed(each) for each in mixing]
        new = [rows @ each for rows, each in zip(self.rows, placed, strict=True)]
        scaled = [rows / self.arrays.row_maxima(rows) for rows in new]
        return self.arrays.lay_out(scaled, self.weights, self.strata)

    def _chosen(self, chosen: Indices, weights: Weights) -> LikelihoodRows:
        """Some of the rows, with these weights."""
        at = self.arrays.placed(chosen)
        strata = None if self.strata is None else self.strata[chosen]
        return self.arrays.lay_out([rows[at] for rows in self.rows], weights, strata)


def multiply_out(rows: Sequence[DeviceArray]) -> DeviceArray:
    """[N, Π n_v]: for each report the products of one entry from each variable's row."""
    out = rows[0]
    for more in rows[1:]:
        out = (out[:, :, None] * more[:, None, :]).reshape(len(out), -1)
    return out


def scaling_error(worst: float) -> InputError:
    """What is wrong with rows whose largest entries are off by so much."""
    return InputError(
        "likelihood rows must be at least 0 with largest entry 1 in each row "
        f"(off by up to {worst:.3g}); divide each row by its largest entry"
    )
