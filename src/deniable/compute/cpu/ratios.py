"""Likelihood ratios of a piece's reports, and the sums over them that the score test needs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from deniable.compute.cpu.pieces import Floats, Integers, Piece, Rows

_CHUNK = 2048


class LikelihoodRatios(Protocol):
    """What is asked of a piece's ratios; a piece that keeps its rows elsewhere brings its own by a
    method `ratios(margins)`."""

    def totals(self) -> tuple[Integers, Floats, Floats, Floats, bool]:
        """Labels, reports, Σ w x and Σ w y per stratum; whether weights are whole."""
        ...

    def centred(self, labels: Integers, x: Floats, y: Floats) -> LikelihoodRatios:
        """Deviations from these strata's means; labels become the strata's places among them."""
        ...

    def scatters(self, strata: int) -> tuple[Floats, Floats, Floats]:
        """Of centred ratios: Σ w x xᵀ and Σ w y yᵀ per stratum, and Σ w x yᵀ of all."""
        ...

    def fourth_powers(self, roots: Sequence[Rows]) -> Floats:
        """Σ w |x|⁴ and Σ w |y|⁴ of whitened rows, float64[2]."""
        ...

    def shuffled(self, shuffles: int, seed: int) -> Rows:
        """The score over random shuffles within strata, float32[shuffles, mn]."""
        ...

    def on_host(self) -> tuple[Rows, Rows, Floats, Integers, Integers]:
        """What `HostRatios` holds."""
        ...


@dataclass(frozen=True, eq=False)
class HostRatios:
    """α − 1 and β − 1 of a piece's rows, float32[N, m] and float32[N, n], ordered by stratum.

    weights : float64[N]; labels : the strata among them, ascending; edges : where each begins,
    and N.
    """

    x: Rows
    y: Rows
    weights: Floats
    labels: Integers
    edges: Integers

    def layers(self) -> Iterable[tuple[int, slice]]:
        """Each stratum's label and rows."""
        for i, label in enumerate(self.labels):
            yield int(label), slice(int(self.edges[i]), int(self.edges[i + 1]))

    def totals(self) -> tuple[Integers, Floats, Floats, Floats, bool]:
        """Stratum by stratum."""
        weight, x, y = [], [], []
        for _, rows in self.layers():
            w = self.weights[rows]
            weight.append(w.sum())
            x.append(w @ self.x[rows].astype(np.float64))
            y.append(w @ self.y[rows].astype(np.float64))
        return (
            self.labels,
            np.array(weight, np.float64),
            np.array(x, np.float64).reshape(-1, self.x.shape[1]),
            np.array(y, np.float64).reshape(-1, self.y.shape[1]),
            bool(np.all(self.weights == np.round(self.weights))),
        )

    def centred(self, labels: Integers, x: Floats, y: Floats) -> HostRatios:
        """Deviations; reports of other strata are left out."""
        xs, ys, weights, places, sizes = [self.x[:0]], [self.y[:0]], [self.weights[:0]], [], [0]
        for label, rows in self.layers():
            place = int(np.searchsorted(labels, label))
            if place < len(labels) and labels[place] == label:
                xs.append(self.x[rows] - x[place].astype(np.float32))
                ys.append(self.y[rows] - y[place].astype(np.float32))
                weights.append(self.weights[rows])
                places.append(place)
                sizes.append(len(weights[-1]))
        return HostRatios(
            np.concatenate(xs), np.concatenate(ys), np.concatenate(weights),
            np.array(places, np.intp), np.cumsum(sizes),
        )  # fmt: skip

    def scatters(self, strata: int) -> tuple[Floats, Floats, Floats]:
        """Stratum by stratum."""
        m, n = self.x.shape[1], self.y.shape[1]
        xx, yy, xy = np.zeros((strata, m, m)), np.zeros((strata, n, n)), np.zeros((m, n))
        for place, rows in self.layers():
            x, y, w = self.x[rows], self.y[rows], self.weights[rows]
            xx[place] += _product(x, x, w)
            yy[place] += _product(y, y, w)
            xy += _product(x, y, w)
        return xx, yy, xy

    def fourth_powers(self, roots: Sequence[Rows]) -> Floats:
        """Of all rows together."""
        lengths = [
            np.sum((rows @ root) ** 2, axis=1)
            for rows, root in zip((self.x, self.y), roots, strict=True)
        ]
        return np.array([self.weights @ length**2 for length in lengths], np.float64)

    def shuffled(self, shuffles: int, seed: int) -> Rows:
        """Each report as often as its weight says."""
        rng = np.random.default_rng(seed)
        whole = [
            [
                np.repeat(rows[layer], self.weights[layer].astype(np.int64), axis=0)
                for rows in (self.x, self.y)
            ]
            for _, layer in self.layers()
        ]
        scores = np.zeros((shuffles, self.x.shape[1] * self.y.shape[1]), np.float32)
        for shuffle in range(shuffles):
            score = sum((x.T @ y[rng.permutation(len(y))] for x, y in whole), np.zeros(()))
            scores[shuffle] = score.ravel()
        return scores

    def on_host(self) -> tuple[Rows, Rows, Floats, Integers, Integers]:
        """As they are."""
        return self.x, self.y, self.weights, self.labels, self.edges


def ratios_of(margins: Sequence[Rows], piece: Piece) -> LikelihoodRatios:
    """At the two maximum-likelihood margins, float32[m] and float32[n]."""
    if own := getattr(piece, "ratios", None):
        found: LikelihoodRatios = own(margins)
        return found
    strata = np.zeros(piece.count, np.intp) if piece.strata is None else piece.strata
    weights = np.ones(piece.count) if piece.weights is None else piece.weights
    order = np.argsort(strata, kind="stable")
    labels, starts = np.unique(strata[order], return_index=True)
    x, y = (
        rows[order] / np.maximum(rows[order] @ margin, np.float32(1e-30))[:, None] - np.float32(1)
        for rows, margin in zip(piece.rows, margins, strict=True)
    )
    return HostRatios(x, y, weights[order], labels, np.append(starts, piece.count))


def _product(x: Rows, y: Rows, weights: Floats) -> Floats:
    """Σ_k w_k x_k y_kᵀ in float64, so that rounding does not pass for a direction."""
    total = np.zeros((x.shape[1], y.shape[1]))
    for start in range(0, len(x), _CHUNK):
        chunk = slice(start, start + _CHUNK)
        total += (x[chunk] * weights[chunk, None]).T @ y[chunk].astype(np.float64)
    return total
