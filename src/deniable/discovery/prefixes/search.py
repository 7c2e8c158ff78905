"""Beam search over prefixes: extend them character by character, and keep the likeliest.

A prefix carries its log-odds of being present, and weights over a grid of masses. The odds of a
child are the product of the probability that its parent is present (at most 1, so that a common
prefix gives its children no more than certainty), the probability by the character model, and the
likelihood ratio of the child's own evidence, averaged over masses. The mass of a child is that of
its parent with probability .92, and otherwise any lower one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from math import gcd
from typing import TypeVar

import numpy as np

from deniable.compute.progress import report_progress
from deniable.discovery.shared.screening import largest, log_mixtures
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
from deniable.kernels.chunks import split_range
from deniable.protocols.alphabet import PAD

T = TypeVar("T")

ROUNDING_MARGIN = np.float32(1e-3)
SPELLING_MARGIN = 1.5
"""Log-odds by which a spelling may fall below the limit before its evidence is known."""
PREFIXES_PER_CHUNK = 1 << 12
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
        ratio = log_mixtures(
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
        masses, before = mass_grid(self.evidence.scores), self.parents.child_weight

        def part(start: int, stop: int) -> PrefixBeam:
            some = chosen[start:stop]
            log = masses * self.sums[some, np.newaxis] - masses**2 * kind(self.precision / 2)
            scaled = before[self.parent[some]] * np.exp(log - log.max(axis=1, keepdims=True))
            scaled += 1e-30
            weight = np.asarray(scaled / scaled.sum(axis=1, keepdims=True), np.float32)
            level = np.full(len(some), self.level)
            return PrefixBeam(self.rows[some], odds[start:stop], weight, level)

        return PrefixBeam.joined(in_chunks(part, len(chosen)))

    def likeliest(self, among: Int64s, count: int, unlikely: float) -> tuple[PrefixBeam, float]:
        """Return the `count` likeliest that are not too unlikely, and the least odds to be kept.

        Odds are computed only where the bound can reach them.
        """
        every = max(len(among) // SAMPLED, 1)
        least = least_odds(self.odds(among[::every]), every, unlikely)
        among = among[self.bound[among] >= least]
        if len(among) > count:
            pool = self.odds(among[largest(self.bound[among], 2 * count)])
            among = among[self.bound[among] >= -np.partition(-pool, count - 1)[count - 1]]
        odds = self.odds(among)
        kept = largest(odds, count)
        kept = kept[odds[kept] >= least]
        if len(kept) == count:
            least = float(odds[kept].min(initial=np.inf))
        return self.beam(among[kept], odds[kept]), least


def in_chunks(part: Callable[[int, int], T], count: int) -> list[T]:
    """Return part(start, stop) for ranges of 0 to `count` whose arrays fit a processor's cache.

    Threads would not help: NumPy would spend the time that they save on waiting for each other.
    """
    ranges = split_range(count, -(-count // PREFIXES_PER_CHUNK)) or [(0, 0)]
    return [part(start, stop) for start, stop in ranges]


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


@dataclass(frozen=True, eq=False)
class _Children:
    """All prefixes that are one symbol longer than some others, numbered prefix by prefix.

    before : the prefixes, none of which has ended; odds : float32[n], added to log-probabilities
    at : number of symbols of those prefixes
    """

    model: CharacterModel
    before: _Spellings
    odds: Singles
    at: int

    def __len__(self) -> int:
        return len(self.before) * (self.model.symbols + 1)

    def sample(self, every: int) -> Singles:
        """float32[n]: log-odds of every n-th child."""
        place, symbol = np.divmod(np.arange(0, len(self), every), self.model.symbols + 1)
        following = self.model.next_symbol(self.before.rows[place], self.at)
        log_p = self.before.log_p[place] + following[np.arange(len(place)), symbol]
        return np.asarray(log_p + self.odds[place])

    def likely(self, least: float) -> tuple[Int64s, Singles, Singles]:
        """Return number, log-probability and log-odds of the children with at least these odds."""
        width = self.model.symbols + 1

        def part(start: int, stop: int) -> tuple[Int64s, Singles, Singles]:
            following = self.model.next_symbol(self.before.rows[start:stop], self.at)
            log_p = self.before.log_p[start:stop, np.newaxis] + following
            odds = (log_p + self.odds[start:stop, np.newaxis]).ravel()
            chosen = np.flatnonzero(odds >= least)
            return chosen + start * width, log_p.ravel()[chosen], odds[chosen]

        parts = in_chunks(part, len(self.before))
        number, log_p, odds = map(np.concatenate, zip(*parts, strict=True))
        return number, log_p, odds

    def take(self, numbers: Int64s, log_p: Singles) -> _Spellings:
        """Return the children of these numbers, which have these log-probabilities."""
        symbols = np.append(np.arange(self.model.symbols), PAD).astype(np.uint8)
        rows = np.empty((len(numbers), self.before.rows.shape[1]), np.uint8)
        parent, ended = np.empty(len(numbers), np.int64), np.empty(len(numbers), bool)

        def part(start: int, stop: int) -> None:
            place, symbol = np.divmod(numbers[start:stop], len(symbols))
            rows[start:stop] = self.before.rows[place]
            rows[start:stop, self.at] = symbols[symbol]
            parent[start:stop] = self.before.parent[place]
            ended[start:stop] = symbol == self.model.symbols

        in_chunks(part, len(numbers))
        return _Spellings(rows, log_p, parent, ended)


def sampling_stride(children: int, symbols: int) -> int:
    """Return every how many children to sample, so that each of their symbols is sampled.

    Children are numbered prefix by prefix: a stride with a factor of the number of symbols would
    leave some symbols out.
    """
    every = max(children // SAMPLED, 1)
    while gcd(every, symbols) > 1:
        every += 1
    return every


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
    odds, finished = np.minimum(beam.odds, 0), list[_Spellings]()
    for at in range(length, int(evidence.tally.lengths[level])):
        if spelled.ended.any():
            finished.append(spelled.take(spelled.ended))
            spelled = spelled.take(~spelled.ended)
        children = _Children(model, spelled, odds[spelled.parent], at)
        every = sampling_stride(len(children), model.symbols + 1)
        least = least_odds(children.sample(every), every, unlikely)
        numbers, log_p, likely = children.likely(least)
        if len(numbers) > MAX_CHILDREN:
            best = largest(likely, MAX_CHILDREN)
            least = float(likely[best].min())
            numbers, log_p = numbers[best], log_p[best]
        limits.spelled[at] = least
        spelled = children.take(numbers, log_p)
    spelled = _Spellings.joined([*finished, spelled])
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
