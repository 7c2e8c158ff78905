"""Likelihood ratios of reports, and the sums over them that the score test needs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from deniable.errors import InputError
from deniable.kernels.array_types import Floats, Integers, Singles

ROWS_PER_PRODUCT = 2048
"""Rows that are copied to double precision at a time."""


@dataclass(frozen=True, eq=False)
class StratumTotals:
    """Sums per stratum.

    labels : integers[S], ascending; weight : float64[S], reports; x, y : float64[S, m] and
    float64[S, n], Σ w x and Σ w y; whole : whether all weights are whole numbers.
    """

    labels: Integers
    weight: Floats
    x: Floats
    y: Floats
    whole: bool

    def __add__(self, other: StratumTotals) -> StratumTotals:
        labels = np.union1d(self.labels, other.labels)

        def added(left: Floats, right: Floats) -> Floats:
            sums = np.zeros((len(labels), *left.shape[1:]))
            sums[np.searchsorted(labels, self.labels)] += left
            sums[np.searchsorted(labels, other.labels)] += right
            return sums

        pairs = ((self.weight, other.weight), (self.x, other.x), (self.y, other.y))
        weight, x, y = (added(left, right) for left, right in pairs)
        return StratumTotals(labels, weight, x, y, self.whole and other.whole)

    def means(self) -> StratumTotals:
        """Return means instead of sums, for strata of more than one report.

        The only report of a stratum has no other to be shuffled with.
        """
        kept = self.weight > 1
        if not kept.any():
            raise InputError("every stratum has only one report; pass coarser strata")
        share, weight = 1.0 / self.weight[kept, None], self.weight[kept]
        x, y = self.x[kept] * share, self.y[kept] * share
        return StratumTotals(self.labels[kept], weight, x, y, self.whole)


@dataclass(frozen=True, eq=False)
class Scatters:
    """Second moments of centred ratios.

    x, y : float64[S, m, m] and float64[S, n, n], Σ w x xᵀ and Σ w y yᵀ per stratum;
    score : float64[m, n], Σ w x yᵀ.
    """

    x: Floats
    y: Floats
    score: Floats

    def __add__(self, other: Scatters) -> Scatters:
        return Scatters(self.x + other.x, self.y + other.y, self.score + other.score)


@dataclass(frozen=True, eq=False)
class LikelihoodRatios:
    """Likelihood ratios less 1 of two variables, float32[N, m] and float32[N, n], by stratum.

    weights : float64[N]; labels : strata of the rows, ascending; edges : first row of each stratum,
    then N.
    """

    x: Singles
    y: Singles
    weights: Floats
    labels: Integers
    edges: Integers

    def __sizeof__(self) -> int:
        """Return the bytes of the ratios; a cluster's scheduler leaves large results in place."""
        return self.x.nbytes + self.y.nbytes

    def totals(self) -> StratumTotals:
        """Return the sums of each stratum."""
        weight, x, y = [], [], []
        for _, rows in self._strata():
            w = self.weights[rows, None]
            weight.append(float(w.sum()))
            x.append(weighted_product(w, self.x[rows])[0])
            y.append(weighted_product(w, self.y[rows])[0])
        sums = (np.array(x).reshape(-1, self.x.shape[1]), np.array(y).reshape(-1, self.y.shape[1]))
        whole = bool((self.weights == self.weights.round()).all())
        return StratumTotals(self.labels, np.array(weight), *sums, whole)

    def centred(self, means: StratumTotals) -> LikelihoodRatios:
        """Return deviations from the means; labels become indices into the strata of `means`.

        Reports of strata without means are left out.
        """
        places = np.minimum(np.searchsorted(means.labels, self.labels), len(means.labels) - 1)
        kept = means.labels[places] == self.labels
        sizes = np.diff(self.edges)
        chosen = np.flatnonzero(np.repeat(kept, sizes))
        stratum = np.repeat(places[kept], sizes[kept])
        x, y = (
            side[chosen] - mean.astype(np.float32)[stratum]
            for side, mean in ((self.x, means.x), (self.y, means.y))
        )
        edges = np.append(0, np.cumsum(sizes[kept]))
        return replace(
            self, x=x, y=y, weights=self.weights[chosen], labels=places[kept], edges=edges
        )

    def scatters(self, strata: int) -> Scatters:
        """Return second moments of centred ratios; strata : number of strata."""
        m, n = self.x.shape[1], self.y.shape[1]
        xx, yy, xy = np.zeros((strata, m, m)), np.zeros((strata, n, n)), np.zeros((m, n))
        for place, rows in self._strata():
            x, y, w = self.x[rows], self.y[rows], self.weights[rows, None]
            xx[place] += weighted_product(x, x, w)
            yy[place] += weighted_product(y, y, w)
            xy += weighted_product(x, y, w)
        return Scatters(xx, yy, xy)

    def fourth_powers(self, roots: Sequence[Singles]) -> Floats:
        """Return Σ w |x|⁴ and Σ w |y|⁴ of whitened rows, float64[2]."""
        sums = []
        for side, root in zip((self.x, self.y), roots, strict=True):
            lengths = ((side @ root) ** 2).sum(1)
            sums.append(float((self.weights * lengths**2).sum()))
        return np.array(sums)

    def shuffled(self, seed: int, shuffles: int) -> Singles:
        """Return Σ x yᵀ for random shuffles within strata, float32[shuffles, mn].

        Weights are whole numbers; each row is repeated as often as its weight says.
        """
        rng = np.random.default_rng(seed)
        repeated = [
            [
                np.repeat(side[rows], self.weights[rows].astype(np.int64), axis=0)
                for side in (self.x, self.y)
            ]
            for _, rows in self._strata()
        ]
        scores = np.zeros((shuffles, self.x.shape[1] * self.y.shape[1]), np.float32)
        for score in scores:
            parts = (x.T @ y[rng.permutation(len(y))] for x, y in repeated)
            score[:] = sum(parts, np.zeros(())).ravel()
        return scores

    def _strata(self) -> Iterator[tuple[int, slice]]:
        """Yield the label and the rows of each stratum."""
        for label, first, last in zip(self.labels, self.edges, self.edges[1:], strict=False):
            yield int(label), slice(int(first), int(last))


def concatenated(parts: Sequence[LikelihoodRatios]) -> LikelihoodRatios:
    """Return the rows of all parts as one."""
    labels = np.concatenate([np.repeat(part.labels, np.diff(part.edges)) for part in parts])
    order, unique, edges = by_stratum(labels)
    x, y, weights = (
        np.concatenate(each)[order]
        for each in zip(*((part.x, part.y, part.weights) for part in parts), strict=True)
    )
    return LikelihoodRatios(x, y, weights, unique, edges)


def by_stratum(strata: Integers) -> tuple[Integers, Integers, Integers]:
    """Return the order that sorts rows by stratum, the strata, and the first row of each and N."""
    order = np.argsort(strata, kind="stable")
    labels, starts = np.unique(strata[order], return_index=True)
    return order, labels, np.append(starts, len(strata))


def weighted_product(x: Singles | Floats, y: Singles, weights: Floats | None = None) -> Floats:
    """Return Σ_k w_k x_k y_kᵀ in float64, chunk by chunk; weights : [N, 1].

    In float32, rounding errors would look like a direction in which ratios vary.
    """
    product = np.zeros((x.shape[1], y.shape[1]))
    for start in range(0, len(x), ROWS_PER_PRODUCT):
        chunk = slice(start, start + ROWS_PER_PRODUCT)
        left = x[chunk] if weights is None else x[chunk] * weights[chunk]
        product += left.T @ y[chunk].astype(np.float64)
    return product
