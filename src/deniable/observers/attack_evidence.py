"""Log-likelihoods of values, given some reports of one client: exact, or drawn at random."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

MAX_EXACT_OPTIONS = 500
Floats = NDArray[np.float64]


class AttackEvidence(ABC):
    """What reports of one mechanism say about a client's value."""

    def best_guess(self, weights: Floats) -> float | None:
        """Return how often the most likely value is the client's; None if it must be simulated."""
        return None

    @abstractmethod
    def scores(self, truth: NDArray[np.int64], values: int, rng: np.random.Generator) -> Floats:
        """Return log-likelihoods of all values for clients with these values, as f64[C, values]."""


@dataclass(frozen=True, eq=False)
class _BitEvidence(AttackEvidence):
    """Bits with counts of ones in f64[T + 1]: their probabilities if a bit is set or not.

    width, hashes : number of bits, and how many of them a value sets
    own_bit : each value has its own bit; two values of one bit are yes and no
    """

    if_set: Floats
    if_clear: Floats
    width: int
    hashes: int
    own_bit: bool

    @property
    def ratios(self) -> Floats:
        """Log-likelihood ratio of each count: set against clear."""
        tiny = 1e-300
        return np.log(np.maximum(self.if_set, tiny)) - np.log(np.maximum(self.if_clear, tiny))

    def best_guess(self, weights: Floats) -> float | None:
        """Return the exact probability, unless strings share bits or there are many options."""
        if not self.own_bit or len(weights) > MAX_EXACT_OPTIONS:
            return None
        if self.width == 1:  # yes and no
            return float(np.maximum(weights[0] * self.if_set, weights[1] * self.if_clear).sum())
        with np.errstate(divide="ignore"):
            levels = np.log(weights)[:, None] + self.ratios  # f64[values, T + 1]
        order = np.argsort(self.ratios)
        sorted_levels = levels[:, order]
        below = np.concatenate([[0.0], np.cumsum(self.if_clear[order])])
        total = 0.0
        for x, weight in enumerate(weights):
            chance = self.if_set.copy()
            for y in range(len(weights)):
                if y != x:
                    # Ties go to the value that comes first.
                    side = "right" if x < y else "left"
                    margins = levels[x] * (1 + 1e-12 * np.sign(levels[x]) * (1 if x < y else -1))
                    chance *= below[np.searchsorted(sorted_levels[y], margins, side)]  # type: ignore[call-overload]
            total += weight * float(chance.sum())
        return total

    def scores(self, truth: NDArray[np.int64], values: int, rng: np.random.Generator) -> Floats:
        clients = len(truth)
        shape = (clients, values, self.hashes)
        if self.own_bit:
            cells = np.broadcast_to(np.arange(values)[None, :, None], shape)
        else:
            cells = rng.integers(self.width, size=shape)
        counts = _drawn(self.if_clear, (clients, self.width), rng)
        rows = np.arange(clients)[:, None]
        own = cells[np.arange(clients), truth]
        counts[rows, own] = _drawn(self.if_set, own.shape, rng)
        ratios = self.ratios[counts]
        return np.asarray(ratios[rows[:, :, None], cells].sum(axis=2), np.float64)


def _drawn(
    probabilities: Floats, shape: tuple[int, ...], rng: np.random.Generator
) -> NDArray[np.int64]:
    """Return random counts with these probabilities."""
    edges = np.cumsum(probabilities)[:-1]
    return np.searchsorted(edges, rng.random(shape), side="right")


@dataclass(frozen=True, eq=False)
class NumberEvidence(AttackEvidence):
    """Numbers below `bound`, with permanent and fresh noise.

    p, q : fresh noise sends each other number, or the kept one
    flip, keep : permanent noise keeps each other number, or the true one; 0 and 1 without it
    """

    p: float
    q: float
    reports: int
    bound: int
    flip: float = 0.0
    keep: float = 1.0

    def scores(self, truth: NDArray[np.int64], values: int, rng: np.random.Generator) -> Floats:
        """Return log-likelihoods of all values: hash functions and reports are drawn."""
        clients = len(truth)
        cells = rng.integers(self.bound, size=(clients, values))
        own = cells[np.arange(clients), truth]
        changed = rng.random(clients) >= self.keep
        kept = np.where(changed, own + rng.integers(1, self.bound, clients), own) % self.bound
        chances = np.full(self.bound, self.p)
        chances[0] = self.q
        drawn = rng.multinomial(self.reports, chances / chances.sum(), size=clients)
        rows = np.arange(clients)
        # Exchange the first number with the kept one.
        drawn[rows, kept], drawn[rows, 0] = drawn[rows, 0].copy(), drawn[rows, kept].copy()
        log_odds = drawn * math.log(self.q / self.p)
        most = log_odds.max(axis=1, keepdims=True)
        odds = np.exp(log_odds - most)
        others = self.flip * odds.sum(axis=1, keepdims=True)
        likelihood = others + (self.keep - self.flip) * odds[rows[:, None], cells]
        return np.asarray(np.log(np.maximum(likelihood, 1e-300)), np.float64)


@dataclass(frozen=True, eq=False)
class SubsetEvidence(AttackEvidence):
    """A random subset of the options and "none", which contains the client's option with `own`.

    members : number of members of the subset
    epsilon : log-likelihood ratio of the options in it, against those that are not
    """

    own: float
    members: int
    epsilon: float

    def scores(self, truth: NDArray[np.int64], values: int, rng: np.random.Generator) -> Floats:
        """Return log-likelihoods of all values, up to a constant per client."""
        rows = np.arange(len(truth))
        order = rng.random((len(truth), values + 1))  # "none" is the last category
        # The own category is the first of all, or the last; the members are the first ones.
        order[rows, truth] = np.where(rng.random(len(truth)) < self.own, -1.0, 2.0)
        last = np.partition(order, self.members - 1, axis=1)[:, self.members - 1 : self.members]
        return np.asarray(self.epsilon * (order[:, :-1] <= last), np.float64)


def bit_evidence(
    fresh: tuple[float, float],
    effective: tuple[float, float],
    reports: int,
    layout: tuple[int, int, bool],
) -> AttackEvidence:
    """Return the evidence of bits with permanent and fresh noise.

    fresh : P(1) of a bit that is not set, or set, after permanent noise
    effective : P(1) of a bit that the value does not set, or sets
    layout : number of bits, of bits per value, and whether each value has its own bit
    """
    p, q = fresh
    by_permanent = np.array([[_binomial(reports, t, x) for t in range(reports + 1)] for x in fresh])
    # Permanent noise leaves a bit set with such a probability that P(1) is the effective one.
    clear, kept = ((x - p) / (q - p) for x in effective)
    if_clear = (1 - clear) * by_permanent[0] + clear * by_permanent[1]
    if_set = (1 - kept) * by_permanent[0] + kept * by_permanent[1]
    return _BitEvidence(if_set, if_clear, *layout)


def _binomial(n: int, k: int, p: float) -> float:
    """Return the probability of k successes in n trials, also for large n."""
    if p in (0.0, 1.0):
        return float(k == n * p)
    log_choose = math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1)
    return math.exp(log_choose + k * math.log(p) + (n - k) * math.log1p(-p))
