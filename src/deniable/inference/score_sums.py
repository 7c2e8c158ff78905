"""What each piece of evidence adds to the score test (`score`), and how it shuffles its reports."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from deniable.errors import InputError
from deniable.inference.piece import Floats, Integers, Piece, Rows

_CHUNK = 2048


@dataclass(frozen=True, eq=False)
class Ratios:
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


def ratios_of(margins: Sequence[Rows], piece: Piece) -> Ratios:
    """At the two maximum-likelihood margins, float32[m] and float32[n]."""
    strata = np.zeros(piece.count, np.intp) if piece.strata is None else piece.strata
    weights = np.ones(piece.count) if piece.weights is None else piece.weights
    order = np.argsort(strata, kind="stable")
    labels, starts = np.unique(strata[order], return_index=True)
    x, y = (
        rows[order] / np.maximum(rows[order] @ margin, np.float32(1e-30))[:, None] - np.float32(1)
        for rows, margin in zip(piece.rows, margins, strict=True)
    )
    return Ratios(x, y, weights[order], labels, np.append(starts, piece.count))


@dataclass(frozen=True, eq=False)
class Totals:
    """Per stratum: labels, reports float64[S], Σ w x and Σ w y; whether weights are whole."""

    labels: Integers
    weight: Floats
    x: Floats
    y: Floats
    whole: bool

    def __add__(self, other: Totals) -> Totals:
        labels = np.union1d(self.labels, other.labels)
        parts = []
        for mine, its in ((self.weight, other.weight), (self.x, other.x), (self.y, other.y)):
            total = np.zeros((len(labels), *mine.shape[1:]))
            total[np.searchsorted(labels, self.labels)] += mine
            total[np.searchsorted(labels, other.labels)] += its
            parts.append(total)
        return Totals(labels, parts[0], parts[1], parts[2], self.whole and other.whole)

    def means(self) -> Totals:
        """Means instead of sums, of the strata that hold more than a report: one has no other to
        be shuffled with."""
        kept = self.weight > 1
        if not kept.any():
            raise InputError("every stratum holds a single report; pass coarser strata")
        share = 1.0 / self.weight[kept, None]
        return Totals(
            self.labels[kept], self.weight[kept], self.x[kept] * share, self.y[kept] * share,
            self.whole,
        )  # fmt: skip


def totals(ratios: Ratios) -> Totals:
    weight, x, y = [], [], []
    for _, rows in ratios.layers():
        w = ratios.weights[rows]
        weight.append(w.sum())
        x.append(w @ ratios.x[rows].astype(np.float64))
        y.append(w @ ratios.y[rows].astype(np.float64))
    return Totals(
        ratios.labels,
        np.array(weight, np.float64),
        np.array(x, np.float64).reshape(-1, ratios.x.shape[1]),
        np.array(y, np.float64).reshape(-1, ratios.y.shape[1]),
        bool(np.all(ratios.weights == np.round(ratios.weights))),
    )


def centred(means: Totals, ratios: Ratios) -> Ratios:
    """Deviations from the strata's means; labels become the strata's places among them."""
    x, y, weights, labels, sizes = [ratios.x[:0]], [ratios.y[:0]], [ratios.weights[:0]], [], [0]
    for label, rows in ratios.layers():
        place = int(np.searchsorted(means.labels, label))
        if place < len(means.labels) and means.labels[place] == label:
            x.append(ratios.x[rows] - means.x[place].astype(np.float32))
            y.append(ratios.y[rows] - means.y[place].astype(np.float32))
            weights.append(ratios.weights[rows])
            labels.append(place)
            sizes.append(len(weights[-1]))
    return Ratios(
        np.concatenate(x), np.concatenate(y), np.concatenate(weights),
        np.array(labels, np.intp), np.cumsum(sizes),
    )  # fmt: skip


@dataclass(frozen=True, eq=False)
class Scatters:
    """Σ w x xᵀ and Σ w y yᵀ per stratum, float64[S, m, m] and [S, n, n]; score Σ w x yᵀ."""

    x: Floats
    y: Floats
    score: Floats

    def __add__(self, other: Scatters) -> Scatters:
        return Scatters(self.x + other.x, self.y + other.y, self.score + other.score)


def scatters(strata: int, centred: Ratios) -> Scatters:
    m, n = centred.x.shape[1], centred.y.shape[1]
    found = Scatters(np.zeros((strata, m, m)), np.zeros((strata, n, n)), np.zeros((m, n)))
    for place, rows in centred.layers():
        x, y, w = centred.x[rows], centred.y[rows], centred.weights[rows]
        found.x[place] += _product(x, x, w)
        found.y[place] += _product(y, y, w)
        found.score[...] += _product(x, y, w)
    return found


def _product(x: Rows, y: Rows, weights: Floats) -> Floats:
    """Σ_k w_k x_k y_kᵀ in float64, so that rounding does not pass for a direction in `range_of`."""
    total = np.zeros((x.shape[1], y.shape[1]))
    for start in range(0, len(x), _CHUNK):
        chunk = slice(start, start + _CHUNK)
        total += (x[chunk] * weights[chunk, None]).T @ y[chunk].astype(np.float64)
    return total


def fourth_powers(roots: Sequence[Rows], centred: Ratios) -> Floats:
    """Σ w |x|⁴ and Σ w |y|⁴ of whitened rows, float64[2]."""
    lengths = [
        np.sum((rows @ root) ** 2, axis=1)
        for rows, root in zip((centred.x, centred.y), roots, strict=True)
    ]
    return np.array([centred.weights @ length**2 for length in lengths], np.float64)


def itself(centred: Ratios) -> Ratios:
    return centred


def together(parts: Sequence[Ratios]) -> Ratios:
    """All pieces' rows as one piece's."""
    labels = np.concatenate([np.repeat(part.labels, np.diff(part.edges)) for part in parts])
    order = np.argsort(labels, kind="stable")
    unique, starts = np.unique(labels[order], return_index=True)
    return Ratios(
        np.concatenate([part.x for part in parts])[order],
        np.concatenate([part.y for part in parts])[order],
        np.concatenate([part.weights for part in parts])[order],
        unique, np.append(starts, len(labels)),
    )  # fmt: skip


def seeded(shuffles: int, centred: Ratios, seed: int) -> Rows:
    return shuffled(shuffles, centred, np.random.default_rng(seed))


def shuffled(shuffles: int, centred: Ratios, rng: np.random.Generator) -> Rows:
    """The score over random shuffles within strata, float32[shuffles, mn]."""
    whole = [
        [
            np.repeat(rows[layer], centred.weights[layer].astype(np.int64), axis=0)
            for rows in (centred.x, centred.y)
        ]
        for _, layer in centred.layers()
    ]
    scores = np.zeros((shuffles, centred.x.shape[1] * centred.y.shape[1]), np.float32)
    for shuffle in range(shuffles):
        score = sum((x.T @ y[rng.permutation(len(y))] for x, y in whole), np.zeros(()))
        scores[shuffle] = score.ravel()
    return scores
