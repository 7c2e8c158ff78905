"""Search: prefixes extended character by character, the likeliest kept at every level.

A prefix carries its log-odds of being present and weights over a grid of masses. A child's odds are
its parent's probability of being present (at most 1, so that a heavy prefix lends its children no
more than certainty) × the character model's probability × the likelihood ratio of its own evidence,
averaged over masses. A child's mass is its parent's with probability .92, and otherwise any lower.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from deniable.compute.progress import report_progress
from deniable.discovery.shared.lexicon import SpellingModel
from deniable.discovery.shared.strings import Floats, Rows, StringArrays
from deniable.discovery.shared.tables import ScoreTables, Singles, StringEvidence
from deniable.discovery.shared.tally import Tally
from deniable.protocols.alphabet import PAD

EXPECTED = 100.0
"""Strings that one expects before looking; the odds move by its logarithm."""
STAYS = 0.92
MASSES = 15
MOST_CHILDREN = 3_000_000
"""Prefixes scored at a level, the likeliest by the character model."""
EARLY_WIDTHS = (20, 16, 10, 6, 4, 2, 1)
"""How much wider the beam is at the first levels, where one unlucky level can lose a string."""
SLACK = np.float32(1e-3)
MOST_FINISHED = 20_000
"""Finished strings kept at each level."""

Indices = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class PrefixBeam(StringArrays):
    """Prefixes that a search follows, and how likely each is.

    odds : float32[n], log; weight : float32[n, G] over masses, sum 1; level : int64[n], the level
    up to which they were followed
    """

    odds: Singles
    weight: Singles
    level: Indices

    @classmethod
    def root(cls, max_length: int) -> PrefixBeam:
        """Return the empty prefix, of which every string is an extension."""
        rows = np.full((1, max_length), PAD, np.uint8)
        weight = np.full((1, MASSES), 1 / MASSES, np.float32)
        return cls(rows, np.full(1, np.log(EXPECTED), np.float32), weight, np.zeros(1, np.int64))

    def log_probability(self, level: int) -> Singles:
        """log P(present); the root, which is no prefix, keeps its expected number of strings."""
        return self.odds if level == 0 else np.asarray(-np.logaddexp(0, -self.odds), np.float32)

    @cached_property
    def child_weight(self) -> Singles:
        """float32[n, G]: of a child's masses: its parent's, or any lower one."""
        lower = self.weight / np.maximum(np.arange(MASSES), 1)
        above = lower[:, ::-1].cumsum(axis=1)[:, ::-1] - lower
        return np.asarray(STAYS * self.weight + (1 - STAYS) * above, np.float32)


@dataclass(frozen=True, eq=False)
class Extensions:
    """Prefixes of one level, before it is decided which of them are kept.

    rows : u8[n, M]; parent : int64[n], index into `parents`; prior : float32[n], log-odds before
    this level's evidence is looked at
    """

    evidence: StringEvidence
    level: int
    parents: PrefixBeam
    rows: Rows
    parent: Indices
    prior: Singles

    @cached_property
    def sums(self) -> Singles:
        """float32[n]: the evidence at this level."""
        return self.evidence.sums(self.level, self.rows)

    @property
    def precision(self) -> float:
        return float(self.evidence.precision[self.level])

    @cached_property
    def bound(self) -> Singles:
        """float32[n]: log-odds that no choice of masses exceeds."""
        most = np.maximum(self.sums, 0) ** 2 / np.float32(2 * max(self.precision, 1e-30))
        return (self.prior + most + SLACK).astype(np.float32, copy=False)

    def odds(self, some: Indices) -> Singles:
        """float32[n]: log-odds of being present, averaged over masses."""
        ratio = self.evidence.tally.kernels.log_mixtures(
            self.parents.child_weight,
            self.parent[some],
            self.sums[some],
            mass_grid(self.evidence.scores),
            self.precision,
        )
        return np.asarray(self.prior[some] + ratio)

    def beam(
        self, some: Indices, odds: Singles, kind: type[np.floating] = np.float64
    ) -> PrefixBeam:
        """Return these of them, with their masses as the evidence has them.

        kind : floating-point type in which masses are weighed
        """
        masses = mass_grid(self.evidence.scores)
        log = masses * self.sums[some, np.newaxis] - masses**2 * kind(self.precision / 2)
        weight = self.parents.child_weight[self.parent[some]]
        scaled = weight * np.exp(log - log.max(axis=1, keepdims=True)) + 1e-30
        weight = np.asarray(scaled / scaled.sum(axis=1, keepdims=True), np.float32)
        return PrefixBeam(self.rows[some], odds, weight, np.full(len(some), self.level))

    def likeliest(self, among: Indices, count: int) -> PrefixBeam:
        """Return the `count` likeliest of some; odds are computed where the bound leaves a hope."""
        best = self.evidence.tally.kernels.best
        if len(among) > count:
            pool = self.odds(among[best(self.bound[among], 2 * count)])
            among = among[self.bound[among] >= -np.partition(-pool, count - 1)[count - 1]]
        odds = self.odds(among)
        kept = best(odds, count)
        return self.beam(among[kept], odds[kept])


def mass_grid(scores: ScoreTables) -> Singles:
    """float32[G]: masses from twice the standard error of all reports, each 1.5 times the last."""
    least = 2 * scores.standard_error
    return np.asarray(least * 1.5 ** np.arange(MASSES), np.float32)


def searched(tally: Tally) -> list[int]:
    """Return the levels that a search follows: of those with one length, the first."""
    lengths = tally.lengths
    return [i for i in range(tally.levels) if i == 0 or lengths[i] != lengths[i - 1]]


def end_levels(tally: Tally, rows: Rows) -> Indices:
    """int64[n]: the level where a search sees that each string has ended."""
    levels = np.array(searched(tally))
    after = np.searchsorted(tally.lengths[levels], (rows != PAD).sum(axis=1), side="right")
    return np.asarray(levels[np.minimum(after, len(levels) - 1)])


def search(evidence: StringEvidence, model: SpellingModel, width: int) -> tuple[PrefixBeam, int]:
    """Return the likeliest finished strings, and how many prefixes were looked at."""
    tally = evidence.tally
    alive = PrefixBeam.root(tally.protocol.max_length)
    finished, looked_at, length = [], 0, 0
    levels = searched(tally)
    for step, level in enumerate(levels):
        report_progress(f"searching, width {width:,}", step / len(levels))
        goal = int(tally.lengths[level])
        extensions = _extended(evidence, model, alive, level, length)
        rows = extensions.rows
        looked_at += len(rows)
        ended = (rows[:, goal - 1] == PAD) | (goal == rows.shape[1])
        finished.append(extensions.likeliest(np.flatnonzero(ended), MOST_FINISHED))
        wide = width * EARLY_WIDTHS[min(step, len(EARLY_WIDTHS) - 1)]
        alive = extensions.likeliest(np.flatnonzero(~ended), wide)
        length = goal
    return PrefixBeam.joined(finished), looked_at


@dataclass(frozen=True, eq=False)
class _Spelled(StringArrays):
    """Prefixes on the way from one level to the next: log-probability and index of the parent."""

    log_p: Singles
    parent: Indices
    ended: NDArray[np.bool_]


def _extended(
    evidence: StringEvidence, model: SpellingModel, alive: PrefixBeam, level: int, length: int
) -> Extensions:
    """Extend prefixes of `length` symbols in every way to those of the next level."""
    none = np.zeros(len(alive), bool)
    spelled = _Spelled(alive.rows, np.zeros(len(alive), np.float32), np.arange(len(alive)), none)
    symbols = np.append(np.arange(model.symbols), PAD).astype(np.uint8)
    for at in range(length, int(evidence.tally.lengths[level])):
        going = spelled.take(~spelled.ended)
        log_p = going.log_p[:, np.newaxis] + model.of(going.rows, at)
        prior = (log_p + np.minimum(alive.odds, 0)[going.parent, np.newaxis]).ravel()
        best = evidence.tally.kernels.best(prior, MOST_CHILDREN)
        place, symbol = np.divmod(best, len(symbols))
        rows = going.rows[place]
        rows[:, at] = symbols[symbol]
        new = _Spelled(rows, log_p.ravel()[best], going.parent[place], rows[:, at] == PAD)
        done = spelled.take(spelled.ended)
        spelled = _Spelled.joined((done, new)) if len(done) else new
    prior = alive.log_probability(level)[spelled.parent] + spelled.log_p
    return Extensions(evidence, level, alive, spelled.rows, spelled.parent, prior)


def followed(evidence: StringEvidence, rows: Rows, weight: Floats) -> tuple[Floats, Floats]:
    """Return log-odds and expected mass of these strings by their prefixes alone, as a search that
    went through no others would have them just before it sees each end.

    weight : float64[n], how likely each was beforehand against the others
    """
    tally, end = evidence.tally, end_levels(evidence.tally, rows)
    odds, mass = np.empty(len(rows)), np.empty(len(rows))
    alive, place = PrefixBeam.root(rows.shape[1]), np.zeros(len(rows), np.int64)
    below = np.array([weight.sum()])
    for level in searched(tally):
        last, going = end == level, np.flatnonzero(end > level)
        prior = alive.log_probability(level) - np.log(below)
        odds[last] = prior[place[last]] + np.log(weight[last])
        mass[last] = alive.child_weight[place[last]] @ mass_grid(evidence.scores)
        if not len(going):
            break
        cut = rows[going].copy()
        cut[:, int(tally.lengths[level]) :] = PAD
        children, first, child = np.unique(cut, axis=0, return_index=True, return_inverse=True)
        parent, child = place[going[first]], child.ravel()
        below = np.bincount(child, weight[going])
        prior = prior[parent] + np.log(below)
        extensions = Extensions(evidence, level, alive, children, parent, prior)
        everything = np.arange(len(children))
        odds_here = extensions.odds(everything).astype(np.float32)
        alive = extensions.beam(everything, odds_here, np.float32)
        place[going] = child
    return odds, mass


def with_later(
    found: PrefixBeam, evidence: StringEvidence, masses: Singles
) -> tuple[Floats, Floats]:
    """Return log-odds and expected mass of finished strings, with all later levels' evidence."""
    sums, precision = np.zeros(len(found)), np.zeros(len(found))
    for level in range(evidence.tally.levels):
        later = np.flatnonzero(found.level < level)
        if len(later):
            sums[later] += evidence.sums(level, found.rows[later])
            precision[later] += evidence.precision[level]
    f = masses.astype(np.float64)
    log = np.log(found.weight + 1e-30) + f * sums[:, None] - f**2 * precision[:, None] / 2
    top = log.max(axis=1, keepdims=True)
    share = np.exp(log - top)
    total = share.sum(axis=1)
    return found.odds + top[:, 0] + np.log(total), share @ f / total
