"""How far grams at two positions go together beyond chance, for many grams at once.

For every two positions and every two grams a, b: the excess P(a, b) - P(a) P(b), by the score test
at independence. With u_k(a) the factor by which report k is more likely under a than under its
stratum's bit frequencies, less 1, the sum of u_k(a) u_k(b) has mean (excess) V and variance
V = sum of G(a) G(b), where G, the mean of u^2, is known from the bit frequencies. One matrix
product a batch: no fit, no iteration, and batches add up. Against sums that are linear in the bits
(co-occurrence counts), G is 1.54 times larger at p = .25, q = .75, h = 2, and 1.07 times at
q = .41: by the formula, the error of an excess is smaller by that factor.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deniable.columns import ReportBatch
from deniable.discovery.ngrams.positions import Position
from deniable.discovery.ngrams.state import GramReports
from deniable.inference.models.likelihood import distinct_first
from deniable.kernels.search.gram_coupling import excess_rows

Floats = NDArray[np.float64]
Single = NDArray[np.float32]
Pair = tuple[int, int]


@dataclass(frozen=True, eq=False)
class Scorer:
    """Factors of one position's grams.

    positions : int32[S, A, h]; one, zero : float32[S, k + 1]; gain : float32[S, A], mean of u^2;
    on, off : float64[S, k + 1], mean factor of a bit that the reported gram sets, or does not
    """

    position: Position
    positions: NDArray[np.int32]
    one: Single
    zero: Single
    gain: Single
    on: Floats
    off: Floats

    @classmethod
    def of(cls, position: Position, grams: NDArray[np.intp]) -> Scorer:
        """For some of the position's grams."""
        design = position.design.take(grams)
        total = np.maximum(position.counts.total, 1)[:, None]
        low, high = np.minimum(design.p, design.q)[:, None], np.maximum(design.p, design.q)[:, None]
        margin = 0.02 * (high - low)
        mu = np.clip(position.counts.ones / total, low - margin, high - margin)
        mu = np.clip(mu, 1e-6, 1 - 1e-6)
        p, q = design.p[:, None], design.q[:, None]
        spread = (q - mu) ** 2 / (mu * (1 - mu))
        ordered, distinct = distinct_first(design.positions)
        rank = np.arange(design.hashes)
        positions = np.where(rank < distinct[:, :, None], ordered, design.bits).astype(np.int32)
        padded = np.pad(1 + spread, ((0, 0), (0, 1)), constant_values=1.0)
        gain = np.prod(_gathered(padded, positions), axis=2) - 1
        return cls(
            position, positions, _padded(q / mu), _padded((1 - q) / (1 - mu)),
            gain.astype(np.float32), padded,
            np.pad(1 + (p - mu) * (q - mu) / (mu * (1 - mu)), ((0, 0), (0, 1))),
        )  # fmt: skip

    def response(self, bits: NDArray[np.int32]) -> Floats:
        """Mean of u / G over the cohorts where the reported gram sets these bits, float64[A, F].

        bits : int32[cohorts, F, h]. 1 for the gram itself; what shared bits make of the others.
        """
        kinds = self.one.shape[0] // bits.shape[0]
        where = np.concatenate([bits] * kinds)
        weight = self.position.counts.total.astype(np.float64)
        out = np.zeros((self.positions.shape[1], bits.shape[1]))
        for s in np.flatnonzero(weight):
            lift = np.repeat(self.off[s][None, :], bits.shape[1], axis=0)
            np.put_along_axis(lift, where[s], np.take(self.on[s], where[s]), axis=1)
            lift[:, -1] = 1.0
            factor = lift[:, self.positions[s]].prod(axis=2) - 1.0
            out += weight[s] * factor.T
        scale = weight @ self.gain
        return np.asarray(out / np.maximum(scale, 1e-9)[:, None])

    def excess(
        self,
        part: int,
        bits: NDArray[np.uint8],
        rows: NDArray[np.intp],
        cohort: NDArray[np.uint16],
    ) -> Single:
        """u of some reports: float32[R, A]."""
        stratum = self.position.stratum(part, cohort[rows])
        out = np.empty((len(rows), self.positions.shape[1]), np.float32)
        excess_rows(bits, rows.astype(np.int64), stratum, self.positions, self.one, self.zero, out)
        return out


@dataclass(frozen=True, eq=False)
class Coupling:
    """Of two positions' grams: excess, information : float64[A, B], its variance is 1/information;
    left, right : float64[A] and [B], means of u / G, which the excess leaves out"""

    excess: Floats
    information: Floats
    left: Floats
    right: Floats


@dataclass(frozen=True, eq=False)
class Coupled:
    """All pairs, and what is needed to say what a known string adds to each."""

    scorers: tuple[Scorer, ...]
    pairs: dict[Pair, Coupling]


@dataclass(eq=False)
class Sums:
    """What one pair of positions adds up, for reports of one pair of gram parts.

    product : float[A, B], sum of u u^T; left, right : float[cohorts, A or B], sums of u by cohort;
    count : float64[cohorts], reports
    """

    product: NDArray[np.floating[Any]]
    left: NDArray[np.floating[Any]]
    right: NDArray[np.floating[Any]]
    count: Floats

    def add(self, other: Sums) -> None:
        self.product = self.product + other.product
        self.left, self.right = self.left + other.left, self.right + other.right
        self.count = self.count + other.count

    def centred(self) -> Floats:
        """Sum of products of deviations from the cohort's own means."""
        share = 1.0 / np.maximum(self.count, 1.0)
        means = (self.left * share[:, None]).T @ self.right
        return np.asarray(self.product - means, np.float64)


Key = tuple[Pair, Pair]


def couple(evidence: GramReports, chosen: Sequence[NDArray[np.intp]]) -> Coupled:
    """Excess of every two positions, for the chosen grams of each."""
    scorers = [Scorer.of(p, c) for p, c in zip(evidence.positions, chosen, strict=True)]
    sums: dict[Key, Sums] = {}
    task = partial(_batch, evidence.question, scorers)
    for found in evidence.source.map(evidence.executor, task):
        for key, more in found.items():
            if key in sums:
                sums[key].add(more)
            else:
                sums[key] = more
    result: dict[Pair, Coupling] = {}
    for pair in sorted({pair for pair, _ in sums}):
        result[pair] = _coupled(scorers, pair, {k[1]: v for k, v in sums.items() if k[0] == pair})
    return Coupled(tuple(scorers), result)


def _coupled(scorers: Sequence[Scorer], pair: Pair, sums: dict[Pair, Sums]) -> Coupling:
    """Add up the parts' sums of one pair of positions, and scale them."""
    g, h = pair
    score: Any = 0.0
    information: Any = 0.0
    means: list[Any] = [0.0, 0.0]
    gains: list[Any] = [0.0, 0.0]
    for (i, j), added in sums.items():
        left = _stratum_gain(scorers[g], i, len(added.count))
        right = _stratum_gain(scorers[h], j, len(added.count))
        information = information + (left * added.count[:, None]).T @ right
        score = score + added.centred()
        for side, (total, gain) in enumerate(((added.left, left), (added.right, right))):
            means[side] = means[side] + total.sum(axis=0)
            gains[side] = gains[side] + added.count @ gain
    information = np.maximum(information, 1e-9)
    left, right = (np.asarray(m / np.maximum(v, 1e-9)) for m, v in zip(means, gains, strict=True))
    return Coupling(score / information, information, left, right)


def _batch(question: str, scorers: Sequence[Scorer], batch: ReportBatch) -> dict[Key, Sums]:
    """Sums of one batch, by pair of positions and pair of parts."""
    parts = len(batch.survey.question(question).protocol.parts) - 1
    columns = [batch.column(question, i + 1) for i in range(parts)]
    cohorts = columns[0].mechanism.cohorts
    found: dict[Key, Sums] = {}
    for i, j in combinations(range(parts), 2):
        for g, h in combinations(range(len(scorers)), 2):
            both = np.flatnonzero((columns[i].slot == g) & (columns[j].slot == h))
            if both.size == 0:
                continue
            left = scorers[g].excess(i, columns[i].bits, both, columns[i].cohort)
            right = scorers[h].excess(j, columns[j].bits, both, columns[j].cohort)
            cohort = columns[i].cohort[both]
            member = np.zeros((cohorts, both.size), np.float32)
            member[cohort, np.arange(both.size)] = 1.0
            count = np.bincount(cohort, minlength=cohorts).astype(np.float64)
            found[(g, h), (i, j)] = Sums(left.T @ right, member @ left, member @ right, count)
    return found


def _stratum_gain(scorer: Scorer, part: int, cohorts: int) -> Floats:
    """G of each cohort for reports of one part, float64[cohorts, A]."""
    stratum = scorer.position.stratum(part, np.arange(cohorts, dtype=np.uint16))
    return scorer.gain[stratum].astype(np.float64)


def _gathered(table: Floats, positions: NDArray[np.int32]) -> Floats:
    """table[s, positions[s, a, j]]."""
    return np.stack([row[where] for row, where in zip(table, positions, strict=True)])


def _padded(table: Floats) -> Single:
    return np.pad(table, ((0, 0), (0, 1)), constant_values=1.0).astype(np.float32)
