"""What each piece of evidence adds to the score test (`score`); see `ratios` for how."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from deniable.compute.cpu.pieces import Floats, Integers, Rows
from deniable.compute.cpu.ratios import HostRatios, LikelihoodRatios
from deniable.errors import InputError


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


@dataclass(frozen=True, eq=False)
class Scatters:
    """Σ w x xᵀ and Σ w y yᵀ per stratum, float64[S, m, m] and [S, n, n]; score Σ w x yᵀ."""

    x: Floats
    y: Floats
    score: Floats

    def __add__(self, other: Scatters) -> Scatters:
        return Scatters(self.x + other.x, self.y + other.y, self.score + other.score)


# --- what is asked of each piece's ratios: module-level functions, which can be sent -------------


def totals(ratios: LikelihoodRatios) -> Totals:
    """Sums of a piece's ratios."""
    return Totals(*ratios.totals())


def centred(means: Totals, ratios: LikelihoodRatios) -> LikelihoodRatios:
    """Deviations from the strata's means; labels become the strata's places among them."""
    return ratios.centred(means.labels, means.x, means.y)


def scatters(strata: int, centred: LikelihoodRatios) -> Scatters:
    """Products of a piece's deviations."""
    return Scatters(*centred.scatters(strata))


def fourth_powers(roots: Sequence[Rows], centred: LikelihoodRatios) -> Floats:
    """Σ w |x|⁴ and Σ w |y|⁴ of whitened rows, float64[2]."""
    return centred.fourth_powers(roots)


def seeded(shuffles: int, centred: LikelihoodRatios, seed: int) -> Rows:
    """The score over random shuffles within strata, float32[shuffles, mn]."""
    return centred.shuffled(shuffles, seed)


def itself(centred: LikelihoodRatios) -> HostRatios:
    """The ratios themselves, in this process's memory."""
    return HostRatios(*centred.on_host())


def together(parts: Sequence[HostRatios]) -> HostRatios:
    """All pieces' rows as one piece's."""
    labels = np.concatenate([np.repeat(part.labels, np.diff(part.edges)) for part in parts])
    order = np.argsort(labels, kind="stable")
    unique, starts = np.unique(labels[order], return_index=True)
    return HostRatios(
        np.concatenate([part.x for part in parts])[order],
        np.concatenate([part.y for part in parts])[order],
        np.concatenate([part.weights for part in parts])[order],
        unique, np.append(starts, len(labels)),
    )  # fmt: skip
