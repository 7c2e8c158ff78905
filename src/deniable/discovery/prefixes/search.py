"""Beam search over prefixes: extend them character by character, and keep the likeliest.

A prefix carries its log-odds of being present, and weights over a grid of masses. The odds of a
child are the product of the probability that its parent is present (at most 1, so that a common
prefix gives its children no more than certainty), the probability by the character model, and the
likelihood ratio of the child's own evidence, averaged over masses. The mass of a child is that of
its parent with probability .92, and otherwise any lower one.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from deniable.compute.progress import report_progress
from deniable.discovery.shared.string_models import CharacterModel
from deniable.discovery.shared.strings import Rows, StringArrays
from deniable.discovery.shared.tables import ScoreTables, StringEvidence
from deniable.discovery.shared.tally import Tally
from deniable.inference.power.prefix_search import (
    EXPECTED_STRINGS,
    GRID_MASSES,
    MAX_CHILDREN,
    MAX_FINISHED,
    SearchLimits,
    beam_width,
    child_weights,
    grid_of_masses,
    least_odds,
)
from deniable.kernels.array_types import Floats, Int64s, Mask, Singles
from deniable.protocols.alphabet import PAD

ROUNDING_MARGIN = np.float32(1e-3)
SPELLING_MARGIN = 1.5
"""Log-odds by which a spelling may be less likely than a prefix, before its evidence."""
SAMPLED = 1 << 15
"""Prefixes whose odds say how many strings can be expected among those that are unlikely."""


@dataclass(frozen=True, eq=False)
class PrefixBeam(StringArrays):
    """Prefixes that a search follows, and how likely each is.

    odds : float32[n], log-odds; weight : float32[n, G] over masses, sum 1
    level : int64[n], index of the prefix length up to which each was followed
    """

    odds: Singles
    weight: Singles
    level: Int64s

    @classmethod
    def root(cls, max_length: int) -> PrefixBeam:
        """Return the empty prefix, which every string extends."""
        rows = np.full((1, max_length), PAD, np.uint8)
        weight = np.full((1, GRID_MASSES), 1 / GRID_MASSES, np.float32)
        odds = np.full(1, np.log(EXPECTED_STRINGS), np.float32)
        return cls(rows, odds, weight, np.zeros(1, np.int64))

    def log_probability(self, level: int) -> Singles:
        """Return log P(present); the root keeps the expected number of strings instead."""
        return self.odds if level == 0 else np.asarray(-np.logaddexp(0, -self.odds), np.float32)

    @cached_property
    def child_weight(self) -> Singles:
        """float32[n, G]: weights over the masses of a child."""
        return child_weights(self.weight).astype(np.float32)


@dataclass(frozen=True, eq=False)
class Extensions:
    """All prefixes of one length that extend those of the length before.

    rows : u8[n, M]; parent : int64[n], index into `parents`
    prior : float32[n], log-odds before the evidence at this length
    """

    evidence: StringEvidence
    level: int
    parents: PrefixBeam
    rows: Rows
    parent: Int64s
    prior: Singles

    @cached_property
    def sums(self) -> Singles:
        """float32[n]: the evidence at this length."""
        return self.evidence.sums(self.level, self.rows)

    @property
    def precision(self) -> float:
        """Precision of the evidence at this length."""
        return float(self.evidence.precision[self.level])

    @cached_property
    def bound(self) -> Singles:
        """float32[n]: upper bounds of the log-odds, whatever the weights over masses."""
        most = np.maximum(self.sums, 0) ** 2 / np.float32(2 * max(self.precision, 1e-30))
        return (self.prior + most + ROUNDING_MARGIN).astype(np.float32, copy=False)

    def odds(self, chosen: Int64s) -> Singles:
        """float32[n]: log-odds of the chosen prefixes, averaged over masses."""
        ratio = self.evidence.tally.kernels.log_mixtures(
            self.parents.child_weight,
            self.parent[chosen],
            self.sums[chosen],
            mass_grid(self.evidence.scores),
            self.precision,
        )
        return np.asarray(self.prior[chosen] + ratio)

    def beam(
        self, chosen: Int64s, odds: Singles, kind: type[np.floating] = np.float64
    ) -> PrefixBeam:
        """Return the chosen prefixes, with masses weighted by the evidence.

        kind : floating-point type of the computation
        """
        masses = mass_grid(self.evidence.scores)
        log = masses * self.sums[chosen, np.newaxis] - masses**2 * kind(self.precision / 2)
        weight = self.parents.child_weight[self.parent[chosen]]
        scaled = weight * np.exp(log - log.max(axis=1, keepdims=True)) + 1e-30
        weight = np.asarray(scaled / scaled.sum(axis=1, keepdims=True), np.float32)
        return PrefixBeam(self.rows[chosen], odds, weight, np.full(len(chosen), self.level))

    def likeliest(self, among: Int64s, count: int, unlikely: float) -> tuple[PrefixBeam, float]:
        """Return the `count` likeliest that are not too unlikely, and the least odds to be kept.

        Odds are computed only where the bound can reach them.
        """
        every = max(len(among) // SAMPLED, 1)
        least = least_odds(self.odds(among[::every]), every, unlikely)
        among = among[self.bound[among] >= least]
        best = self.evidence.tally.kernels.best
        if len(among) > count:
            pool = self.odds(among[best(self.bound[among], 2 * count)])
            among = among[self.bound[among] >= -np.partition(-pool, count - 1)[count - 1]]
        odds = self.odds(among)
        kept = best(odds, count)
        kept = kept[odds[kept] >= least]
        if len(kept) == count:
            least = float(odds[kept].min(initial=np.inf))
        return self.beam(among[kept], odds[kept]), least


def mass_grid(scores: ScoreTables) -> Singles:
    """float32[G]: the masses that a search with these scores considers."""
    return grid_of_masses(scores.standard_error).astype(np.float32)


def searched_levels(tally: Tally) -> Int64s:
    """Return the levels that a search follows: the first of each prefix length."""
    return np.unique(tally.lengths, return_index=True)[1]


def end_levels(tally: Tally, rows: Rows) -> Int64s:
    """int64[n]: the level at which a search sees that each string has ended."""
    levels = searched_levels(tally)
    after = np.searchsorted(tally.lengths[levels], (rows != PAD).sum(axis=1), side="right")
    return np.asarray(levels[np.minimum(after, len(levels) - 1)])


def search(
    evidence: StringEvidence, model: CharacterModel, width: int, unlikely: float
) -> tuple[PrefixBeam, SearchLimits]:
    """Return the likeliest finished strings, and what the search left out.

    width : prefixes kept per length; more at the first lengths
    unlikely : log-odds below which prefixes are not followed, see `least_odds`
    """
    tally = evidence.tally
    beam = PrefixBeam.root(tally.protocol.max_length)
    finished, length = [], 0
    levels = searched_levels(tally)
    limits = SearchLimits.none(tally.protocol.max_length, tally.levels)
    for step, level in enumerate(levels):
        report_progress(f"searching, width {width:,}", step / len(levels))
        goal = int(tally.lengths[level])
        extensions = _extended(evidence, model, beam, int(level), length, unlikely, limits)
        rows = extensions.rows
        limits.scored += len(rows)
        ended = (rows[:, goal - 1] == PAD) | (goal == rows.shape[1])
        whole, open_ended = np.flatnonzero(ended), np.flatnonzero(~ended)
        found, limits.finished[level] = extensions.likeliest(whole, MAX_FINISHED, unlikely)
        finished.append(found)
        most = beam_width(width, step)
        beam, limits.open[level] = extensions.likeliest(open_ended, most, unlikely)
        if not len(beam):
            break
        length = goal
    return PrefixBeam.joined(finished), limits


@dataclass(frozen=True, eq=False)
class _Spellings(StringArrays):
    """Prefixes between two lengths: log-probability, index of the parent, whether it has ended."""

    log_p: Singles
    parent: Int64s
    ended: Mask


def _extended(
    evidence: StringEvidence,
    model: CharacterModel,
    beam: PrefixBeam,
    level: int,
    length: int,
    unlikely: float,
    limits: SearchLimits,
) -> Extensions:
    """Extend prefixes of `length` symbols in every way to those of the next length.

    limits : records the least likely spellings that are kept
    """
    unlikely = unlikely - SPELLING_MARGIN if level else -np.inf
    none = np.zeros(len(beam), bool)
    spelled = _Spellings(beam.rows, np.zeros(len(beam), np.float32), np.arange(len(beam)), none)
    symbols = np.append(np.arange(model.symbols), PAD).astype(np.uint8)
    for at in range(length, int(evidence.tally.lengths[level])):
        open_ended = spelled.take(~spelled.ended)
        log_p = open_ended.log_p[:, np.newaxis] + model.next_symbol(open_ended.rows, at)
        prior = (log_p + np.minimum(beam.odds, 0)[open_ended.parent, np.newaxis]).ravel()
        every = max(len(prior) // SAMPLED, 1)
        least = least_odds(prior[::every], every, unlikely)
        best = np.flatnonzero(prior >= least)
        if len(best) > MAX_CHILDREN:
            best = best[evidence.tally.kernels.best(prior[best], MAX_CHILDREN)]
            least = float(prior[best].min())
        limits.spelled[at] = least
        place, symbol = np.divmod(best, len(symbols))
        rows = open_ended.rows[place]
        rows[:, at] = symbols[symbol]
        new = _Spellings(rows, log_p.ravel()[best], open_ended.parent[place], rows[:, at] == PAD)
        done = spelled.take(spelled.ended)
        spelled = _Spellings.joined((done, new)) if len(done) else new
    prior = beam.log_probability(level)[spelled.parent] + spelled.log_p
    return Extensions(evidence, level, beam, spelled.rows, spelled.parent, prior)


def followed(evidence: StringEvidence, rows: Rows, weight: Floats) -> tuple[Floats, Floats]:
    """Return log-odds and expected mass of these strings from the evidence of their prefixes.

    They are those of a search through these strings only, just before it sees the end of each.

    weight : float64[n], prior weights of the strings
    """
    tally, end = evidence.tally, end_levels(evidence.tally, rows)
    odds, mass = np.empty(len(rows)), np.empty(len(rows))
    beam, place = PrefixBeam.root(rows.shape[1]), np.zeros(len(rows), np.int64)
    below = np.array([weight.sum()])
    for level in searched_levels(tally):
        last, going = end == level, np.flatnonzero(end > level)
        prior = beam.log_probability(level) - np.log(below)
        odds[last] = prior[place[last]] + np.log(weight[last])
        mass[last] = beam.child_weight[place[last]] @ mass_grid(evidence.scores)
        if not len(going):
            break
        cut = rows[going].copy()
        cut[:, int(tally.lengths[level]) :] = PAD
        children, first, child = np.unique(cut, axis=0, return_index=True, return_inverse=True)
        parent, child = place[going[first]], child.ravel()
        below = np.bincount(child, weight[going])
        prior = prior[parent] + np.log(below)
        extensions = Extensions(evidence, int(level), beam, children, parent, prior)
        everything = np.arange(len(children))
        new_odds = extensions.odds(everything).astype(np.float32)
        beam = extensions.beam(everything, new_odds, np.float32)
        place[going] = child
    return odds, mass


def with_later(
    found: PrefixBeam, evidence: StringEvidence, masses: Singles
) -> tuple[Floats, Floats, Floats]:
    """Add the evidence after the end of finished strings.

    Returns log-odds, expected masses, and the variances of these.
    """
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
    mass = share @ f / total
    return found.odds + top[:, 0] + np.log(total), mass, share @ f**2 / total - mass**2
