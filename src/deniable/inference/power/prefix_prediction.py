"""Predict where the limits of a search by prefixes will lie, before there are reports.

Hardly any of the prefixes that a search keeps belongs to a string: the others look likely because
of noise. So the limits follow from noise alone. A few thousand prefixes, each of which stands for
many, go through the same search as in `prefix_search`. Masses are in units of the standard error
of all reports, so that the result does not depend on ε or on the number of clients.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import TypeVar

import numpy as np

from deniable.inference.power.cutoffs import cutoff_height
from deniable.inference.power.prefix_search import (
    EXPECTED_STRINGS,
    FOLLOWED,
    GRID_MASSES,
    MAX_CANDIDATES,
    MAX_CHILDREN,
    MAX_FINISHED,
    SEARCH_WIDTH,
    PrefixSearch,
    SearchLimits,
    Spelled,
    beam_width,
    child_weights,
    grid_of_masses,
    likelihood_ratio,
)
from deniable.kernels.array_types import Floats, Int64s, Mask

NEAR_MISSES = 1.0
"""Height that strings with the beginning of a true one add to the cut-offs; measured."""
MAX_PARTICLES = 20_000
"""Prefixes that stand for all prefixes of a length."""


@dataclass(frozen=True)
class PrefixPlan:
    """A search that is planned.

    lengths : prefix lengths, ascending; shares : of the clients that report each
    learning : share of the families of hash functions that help to choose
    symbols : size of the alphabet
    nats : entropy of a symbol, given those before
    length : length of a typical string
    alpha : significance level of the tests
    """

    lengths: tuple[int, ...]
    shares: tuple[float, ...]
    learning: float
    symbols: int
    nats: float
    length: float
    alpha: float


@dataclass(frozen=True, eq=False)
class _Particles:
    """Prefixes, each of which stands for `count` of them.

    odds : float64[n]; weight : float64[n, G], over masses; count : float64[n]
    level : int64[n], index of the prefix length
    """

    odds: Floats
    weight: Floats
    count: Floats
    level: Int64s

    def take(self, chosen: Int64s | Mask) -> _Particles:
        """Return some of the prefixes."""
        return _Particles(*(each[chosen] for each in vars(self).values()))

    def likeliest(self, number: int) -> tuple[_Particles, float]:
        """Return those that stand for the `number` likeliest, and a bound of their log-odds."""
        order = np.argsort(-self.odds)
        kept = int((np.cumsum(self.count[order]) <= number).sum())
        bound = float(self.odds[order[kept]]) if kept < len(order) else -np.inf
        return self.take(order[:kept]), bound


@dataclass(frozen=True, eq=False)
class _Children:
    """Prefixes of the next length before their evidence.

    log_p : float64[n], log-probability given the parent; parent : int64[n], its index
    count : float64[n]; ended : bool[n], whether the string has ended
    """

    log_p: Floats
    parent: Int64s
    count: Floats
    ended: Mask


Record = TypeVar("Record", _Particles, _Children)


def _joined(parts: Sequence[Record]) -> Record:
    """Return the prefixes of all parts."""
    names = vars(parts[0])
    return type(parts[0])(*(np.concatenate([vars(p)[name] for p in parts]) for name in names))


@cache
def threshold_in_errors(plan: PrefixPlan) -> float:
    """Return the mass at which half of the strings are found, in standard errors."""
    rng = np.random.default_rng(0)
    log_p = _symbol_log_p(plan)
    return _search(plan, log_p, rng).threshold(_typical_strings(plan, log_p, rng))


def _symbol_log_p(plan: PrefixPlan) -> Floats:
    """float64[A + 1]: log-probabilities of the symbols, and of the end, by their ranks.

    They fall with a power of the rank, such that their entropy is as planned.
    """
    rank = np.arange(1, plan.symbols + 1)
    low, high = 0.0, 20.0
    for _ in range(40):
        power = (low + high) / 2
        p = rank**-power / (rank**-power).sum()
        too_even = -(p * np.log(p + 1e-300)).sum() > plan.nats
        low, high = (power, high) if too_even else (low, power)
    end = 1 / (plan.length + 1)
    return np.asarray(np.log(np.append(p * (1 - end), end) + 1e-300))


def _typical_strings(plan: PrefixPlan, log_p: Floats, rng: np.random.Generator) -> Spelled:
    """Return strings of the typical length, with characters of these probabilities."""
    max_length = plan.lengths[-1]
    length = np.floor(plan.length + (np.arange(FOLLOWED) + 0.5) / FOLLOWED).astype(np.int64)
    length = np.clip(length, 0, max_length)
    p = np.exp(log_p[:-1])
    symbols = rng.choice(plan.symbols, (FOLLOWED, max_length), p=p / p.sum())
    at = np.arange(max_length)
    spelled = np.where(at < length[:, np.newaxis], log_p[symbols], 0.0)
    return Spelled(np.where(at == length[:, np.newaxis], log_p[-1], spelled), length)


def _search(plan: PrefixPlan, log_p: Floats, rng: np.random.Generator) -> PrefixSearch:
    """Search in noise."""
    lengths, precision = np.array(plan.lengths), np.array(plan.shares)
    limits, grid = SearchLimits.none(plan.lengths[-1], len(lengths)), grid_of_masses(1.0)
    even = np.full((1, GRID_MASSES), 1 / GRID_MASSES)
    beam = _Particles(np.log([EXPECTED_STRINGS]), even, np.ones(1), np.zeros(1, np.int64))
    finished: list[_Particles] = []
    start = 0
    for step, level in enumerate(np.unique(lengths, return_index=True)[1]):
        goal = int(lengths[level])
        children = _extended(beam, log_p, range(start, goal), limits, rng)
        ended = children.ended | (goal == plan.lengths[-1])
        prior = beam.odds if level == 0 else -np.logaddexp(0, -beam.odds)
        sums = np.sqrt(precision[level]) * rng.standard_normal(len(ended))
        weight = child_weights(beam.weight)[children.parent]
        ratio, weight = likelihood_ratio(weight, grid, sums, precision[level])
        odds = prior[children.parent] + children.log_p + ratio
        new = _Particles(odds, weight, children.count, np.full(len(odds), level))
        kept, limits.finished[level] = new.take(ended).likeliest(MAX_FINISHED)
        finished.append(kept)
        beam, limits.open[level] = new.take(~ended).likeliest(beam_width(SEARCH_WIDTH, step))
        start = goal
    learning = precision * plan.learning
    one, none = np.ones(len(lengths)), np.zeros(len(lengths))
    search = PrefixSearch(lengths, precision, learning, one, none, grid, grid, limits, height=0.0)
    found, limits.candidate = _joined(finished).likeliest(MAX_CANDIDATES)
    noise = rng.standard_normal((len(lengths), len(found.odds)))
    odds, z = search.chosen(found.odds, found.weight, found.level, 0.0, noise)
    height = cutoff_height(odds, z, plan.alpha, found.count) + NEAR_MISSES
    return replace(search, height=height)


def _extended(
    beam: _Particles, log_p: Floats, places: range, limits: SearchLimits, rng: np.random.Generator
) -> _Children:
    """Extend prefixes by symbols at these places, in every way.

    Prefixes that have not ended all have the same count.
    """
    log_q, parent, count = np.zeros(len(beam.odds)), np.arange(len(beam.odds)), beam.count[0]
    done: list[_Children] = []
    for at in places:
        every = len(parent) * len(log_p)
        number = min(MAX_PARTICLES, round(count * every))
        child = np.arange(every) if number == every else rng.integers(every, size=number)
        place, symbol = np.divmod(child, len(log_p))
        log_q, parent = log_q[place] + log_p[symbol], parent[place]
        count *= every / number
        if count * number > MAX_CHILDREN:
            spelled = log_q + np.minimum(beam.odds, 0)[parent]
            best = np.argsort(-spelled)[: int(MAX_CHILDREN / count)]
            limits.spelled[at] = spelled[best[-1]]
            log_q, parent, symbol = log_q[best], parent[best], symbol[best]
        ends = symbol == len(log_p) - 1
        done.append(_Children(log_q[ends], parent[ends], np.full(ends.sum(), count), ends[ends]))
        log_q, parent = log_q[~ends], parent[~ends]
    still = np.zeros(len(parent), bool)
    return _joined([*done, _Children(log_q, parent, np.full(len(parent), count), still)])
