"""Likelihood rows that are held for many passes, with all operations on them.

Rows stay with the worker that computed them (`compute.backend.Held`). So every operation on them is
a method, and only sums are sent. `LikelihoodRows` has the methods that are the same for all kinds
of memory; `compute.cpu.row_blocks` and `compute.gpu.tensor_rows` add the passes.
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


@dataclass(frozen=True, eq=False)
class LikelihoodRows(ABC):
    """Likelihood rows of N reports.

    rows : one float32[N, m] per variable; the largest entry of each row is 1;
    weights : float64[N], number of reports that each row stands for, or None for one each;
    strata : integers[N], stratum of each row, or None where strata are unknown;
    arrays : kernels of the memory of the rows. Weights and strata are NumPy arrays.
    """

    rows: tuple[DeviceArray, ...]
    weights: Weights
    strata: Strata
    arrays: ArrayKernels

    # --- implemented per kind of memory ----------------------------------------------------------

    @abstractmethod
    def evaluate(self, table: Table) -> Floats:
        """Return the gradient Σ w v / d, row by row, then Σ w log d: float64[mn + 1].

        One pass over the rows, in the precision of the table.
        """

    @abstractmethod
    def pair_sums(self, table: Floats) -> Floats:
        """Return Σ w (a_i a_i′)(b_j b_j′) / d² for unordered pairs, float64[m(m+1)/2, n(n+1)/2]."""

    @abstractmethod
    def _score(self, table: Floats, chosen: Indices) -> Floats:
        """Return Σ w v / d over the chosen rows, float64[mn]."""

    # --- the same for all kinds of memory --------------------------------------------------------

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
        return self.arrays.lay_out([self.rows[v] for v in variables], self.weights, self.strata)

    def drawn(self, count: int, seed: int) -> LikelihoodRows:
        """Return `count` reports drawn with replacement, one row each."""
        positions = np.sort(np.random.default_rng(seed).random(count)) * self.weight
        if self.weights is None:
            chosen = positions.astype(np.intp)
        else:
            chosen = np.searchsorted(np.cumsum(self.weights), positions, side="right")
        return self._chosen(np.minimum(chosen, self.count - 1), None)

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
            at, weights = self.arrays.to_device(order), weights[order]
            rows = tuple(each[at] for each in rows)
        *others, last = (
            each / (each @ self.arrays.to_device(margin)).clip(1e-30)[:, None]
            for each, margin in zip(rows, margins, strict=False)
        )
        x, y = multiply_out(others) - 1, last - 1
        return LikelihoodRatios(x, y, self.arrays.to_device(weights), labels, edges, self.arrays)

    def mixed(self, mixing: Sequence[Singles]) -> LikelihoodRows:
        """Return rows over new categories: rows times float32[m, m′] per variable, rescaled."""
        matrices = [self.arrays.to_device(matrix) for matrix in mixing]
        mixed = [rows @ matrix for rows, matrix in zip(self.rows, matrices, strict=True)]
        scaled = [rows / self.arrays.row_maxima(rows) for rows in mixed]
        return self.arrays.lay_out(scaled, self.weights, self.strata)

    def _chosen(self, chosen: Indices, weights: Weights) -> LikelihoodRows:
        """Return the chosen rows, with these weights."""
        at = self.arrays.to_device(chosen)
        strata = None if self.strata is None else self.strata[chosen]
        return self.arrays.lay_out([rows[at] for rows in self.rows], weights, strata)


def multiply_out(rows: Sequence[DeviceArray]) -> DeviceArray:
    """Return [N, Π n_v]: for each report the products of one entry from each variable's row."""
    out = rows[0]
    for more in rows[1:]:
        out = (out[:, :, None] * more[:, None, :]).reshape(len(out), -1)
    return out


def scaling_error(worst: float) -> InputError:
    """Return the error for rows whose largest entries differ from 1 by up to `worst`."""
    return InputError(
        "likelihood rows must be at least 0 with largest entry 1 in each row "
        f"(off by up to {worst:.3g}); divide each row by its largest entry"
    )
