"""Likelihood ratios of reports, and the sums over them that the score test needs.

Products in double precision and shuffles are the array kernels' (`compute.arrays.ArrayKernels`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from deniable.errors import InputError
from deniable.kernels.array_types import DeviceArray, Floats, Integers, Singles

if TYPE_CHECKING:
    from deniable.compute.arrays import ArrayKernels


@dataclass(frozen=True, eq=False)
class StratumTotals:
    """Per stratum: labels, reports float64[S], Σ w x and Σ w y; whether weights are whole."""

    labels: Integers
    weight: Floats
    x: Floats
    y: Floats
    whole: bool

    def __add__(self, other: StratumTotals) -> StratumTotals:
        labels = np.union1d(self.labels, other.labels)

        def both(mine: Floats, its: Floats) -> Floats:
            sums = np.zeros((len(labels), *mine.shape[1:]))
            sums[np.searchsorted(labels, self.labels)] += mine
            sums[np.searchsorted(labels, other.labels)] += its
            return sums

        return StratumTotals(
            labels,
            both(self.weight, other.weight),
            both(self.x, other.x),
            both(self.y, other.y),
            self.whole and other.whole,
        )

    def means(self) -> StratumTotals:
        """Means instead of sums, of the strata that hold more than a report: one has no other to
        be shuffled with."""
        kept = self.weight > 1
        if not kept.any():
            raise InputError("every stratum holds a single report; pass coarser strata")
        share, weight = 1.0 / self.weight[kept, None], self.weight[kept]
        x, y = self.x[kept] * share, self.y[kept] * share
        return StratumTotals(self.labels[kept], weight, x, y, self.whole)


@dataclass(frozen=True, eq=False)
class Scatters:
    """Σ w x xᵀ and Σ w y yᵀ per stratum, float64[S, m, m] and [S, n, n]; score Σ w x yᵀ."""

    x: Floats
    y: Floats
    score: Floats

    def __add__(self, other: Scatters) -> Scatters:
        return Scatters(self.x + other.x, self.y + other.y, self.score + other.score)


@dataclass(frozen=True, eq=False)
class LikelihoodRatios:
    """α − 1 and β − 1 of reports, float32[N, m] and float32[N, n], ordered by stratum.

    weights : float64[N]; labels : the strata among them, ascending; edges : where each begins,
    and N; arrays : the kernels of the memory that x, y and the weights are in.
    """

    x: DeviceArray
    y: DeviceArray
    weights: DeviceArray
    labels: Integers
    edges: Integers
    arrays: ArrayKernels

    def totals(self) -> StratumTotals:
        """Sums of each stratum."""
        weight, x, y = [], [], []
        for _, rows in self._strata():
            w = self.weights[rows, None]
            weight.append(float(w.sum()))
            x.append(self.arrays.product(w, self.x[rows])[0])
            y.append(self.arrays.product(w, self.y[rows])[0])
        sums = (np.array(x).reshape(-1, self.x.shape[1]), np.array(y).reshape(-1, self.y.shape[1]))
        whole = bool((self.weights == self.weights.round()).all())
        return StratumTotals(self.labels, np.array(weight), *sums, whole)

    def centred(self, means: StratumTotals) -> LikelihoodRatios:
        """Deviations from the means; labels become the strata's places among them.

        Reports of strata without means are left out.
        """
        places = np.minimum(np.searchsorted(means.labels, self.labels), len(means.labels) - 1)
        kept = means.labels[places] == self.labels
        sizes = np.diff(self.edges)
        chosen = self.arrays.placed(np.flatnonzero(np.repeat(kept, sizes)))
        stratum = self.arrays.placed(np.repeat(places[kept], sizes[kept]))
        x, y = (
            side[chosen] - self.arrays.placed(mean.astype(np.float32))[stratum]
            for side, mean in ((self.x, means.x), (self.y, means.y))
        )
        edges = np.append(0, np.cumsum(sizes[kept]))
        return replace(
            self, x=x, y=y, weights=self.weights[chosen], labels=places[kept], edges=edges
        )

    def scatters(self, strata: int) -> Scatters:
        """Products of centred ratios, of so many strata."""
        m, n = self.x.shape[1], self.y.shape[1]
        xx, yy, xy = np.zeros((strata, m, m)), np.zeros((strata, n, n)), np.zeros((m, n))
        for place, rows in self._strata():
            x, y, w = self.x[rows], self.y[rows], self.weights[rows, None]
            xx[place] += self.arrays.product(x, x, w)
            yy[place] += self.arrays.product(y, y, w)
            xy += self.arrays.product(x, y, w)
        return Scatters(xx, yy, xy)

    def fourth_powers(self, roots: Sequence[Singles]) -> Floats:
        """Σ w |x|⁴ and Σ w |y|⁴ of whitened rows, float64[2]."""
        sums = []
        for side, root in zip((self.x, self.y), roots, strict=True):
            lengths = ((side @ self.arrays.placed(root)) ** 2).sum(1)
            sums.append(float((self.weights * lengths**2).sum()))
        return np.array(sums)

    def shuffled(self, shuffles: int, seed: int) -> Singles:
        """Σ x yᵀ over random shuffles within strata, float32[shuffles, mn].

        Each report counts as often as its weight says; weights are whole numbers.
        """
        strata = [(self.x[rows], self.y[rows], self.weights[rows]) for _, rows in self._strata()]
        shape = (shuffles, self.x.shape[1] * self.y.shape[1])
        scores = np.zeros(shape, np.float32)
        self.arrays.shuffle(strata, seed, scores)
        return scores

    def moved(self, arrays: ArrayKernels) -> LikelihoodRatios:
        """The same in the memory of other kernels."""
        x, y, weights = (
            arrays.placed(self.arrays.on_host(each)) for each in (self.x, self.y, self.weights)
        )
        return replace(self, x=x, y=y, weights=weights, arrays=arrays)

    def _strata(self) -> Iterator[tuple[int, slice]]:
        """Each stratum's label and rows."""
        for label, first, last in zip(self.labels, self.edges, self.edges[1:], strict=False):
            yield int(label), slice(int(first), int(last))


def concatenated(parts: Sequence[LikelihoodRatios]) -> LikelihoodRatios:
    """All parts' rows as one; the parts are in this process's memory."""
    labels = np.concatenate([np.repeat(part.labels, np.diff(part.edges)) for part in parts])
    order, unique, edges = by_stratum(labels)
    x, y, weights = (
        np.concatenate(each)[order]
        for each in zip(*((part.x, part.y, part.weights) for part in parts), strict=True)
    )
    return LikelihoodRatios(x, y, weights, unique, edges, parts[0].arrays)


def by_stratum(strata: Integers) -> tuple[Integers, Integers, Integers]:
    """The order that sorts rows by stratum, the strata among them, and where each begins, and N."""
    order = np.argsort(strata, kind="stable")
    labels, starts = np.unique(strata[order], return_index=True)
    return order, labels, np.append(starts, len(strata))
