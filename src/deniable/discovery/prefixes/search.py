"""Search: prefixes extended character by character, the likeliest kept at every level.

A prefix carries its log-odds of being present and weights over a grid of masses. A child's odds are
its parent's probability of being present (at most 1, so that a heavy prefix lends its children no
more than certainty) × the character model's probability × the likelihood ratio of its own evidence,
averaged over masses. A child's mass is its parent's with probability .92, and otherwise any lower.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deniable.compute.progress import report_progress
from deniable.compute.screening import ScreeningKernels
from deniable.discovery.shared.evidence import ScoreTables
from deniable.discovery.shared.lexicon import StringModel
from deniable.discovery.shared.tables import MassTables, Rows
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


@dataclass(frozen=True, eq=False)
class PrefixBeam:
    """rows : u8[n, M]; odds : float32[n], log; weight : float32[n, G] over masses, sum 1;
    level : int64[n], the level up to which they were followed."""

    rows: Rows
    odds: NDArray[np.float32]
    weight: NDArray[np.float32]
    level: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.rows)

    def some(self, chosen: NDArray[np.int64] | NDArray[np.bool_]) -> PrefixBeam:
        """These of them."""
        return PrefixBeam(
            self.rows[chosen], self.odds[chosen], self.weight[chosen], self.level[chosen]
        )


def grid(tables: MassTables) -> NDArray[np.float32]:
    """float32[G]: masses from twice the standard error of all reports, each 1.5 times the last."""
    least = 2 * np.sqrt(tables.noise / max(int(tables.count.sum()), 1))
    return np.asarray(least * 1.5 ** np.arange(MASSES), np.float32)


def searched(tables: MassTables) -> list[int]:
    """The levels that a search follows: of those with one length, the first."""
    lengths = tables.lengths
    return [i for i in range(tables.levels) if i == 0 or lengths[i] != lengths[i - 1]]


def search(evidence: ScoreTables, model: StringModel, width: int) -> tuple[PrefixBeam, int]:
    """The likeliest finished strings, and how many prefixes were looked at."""
    tables, loops = evidence.tables, evidence.tables.loops
    masses = grid(tables)
    alive = _root(tables, len(masses))
    finished, looked, length = [], 0, 0
    levels = searched(tables)
    for step, level in enumerate(levels):
        report_progress(f"searching, width {width:,}", step / len(levels))
        goal = int(tables.lengths[level])
        children, log_p, parent = _extended(alive, model, length, goal, loops)
        looked += len(children)
        sums = evidence.sums(level, children)
        before = _may_fall(alive.weight)
        prior = _log_probability(alive.odds, level)[parent] + log_p
        precision = evidence.precision[level]
        most = np.maximum(sums, 0) ** 2 / np.float32(2 * max(precision, 1e-30))
        bound = (prior + most + SLACK).astype(np.float32, copy=False)

        def likeliest(
            among: NDArray[np.int64], count: int,
            rows: Rows = children, level: int = level, precision: float = precision,
            prior: NDArray[np.float32] = prior, sums: NDArray[np.float32] = sums,
            parent: NDArray[np.int64] = parent, before: NDArray[np.float32] = before,
            bound: NDArray[np.float32] = bound,
        ) -> PrefixBeam:  # fmt: skip
            def odds_of(some: NDArray[np.int64]) -> NDArray[np.float32]:
                ratio = evidence.log_ratios(level, sums[some], before, parent[some], masses)
                return np.asarray(prior[some] + ratio)

            if len(among) > count:
                pool = odds_of(among[loops.best(bound[among], 2 * count)])
                among = among[bound[among] >= -np.partition(-pool, count - 1)[count - 1]]
            odds = odds_of(among)
            kept = loops.best(odds, count)
            best = among[kept]
            weight = _posterior(before[parent[best]], sums[best], precision, masses)
            return PrefixBeam(rows[best], odds[kept], weight, np.full(len(best), level))

        ended = children[:, goal - 1] == PAD
        if goal == children.shape[1]:
            ended[:] = True
        finished.append(likeliest(np.flatnonzero(ended), MOST_FINISHED))
        wide = width * EARLY_WIDTHS[min(step, len(EARLY_WIDTHS) - 1)]
        alive = likeliest(np.flatnonzero(~ended), wide)
        length = goal
    return joined(finished), looked


def joined(parts: list[PrefixBeam]) -> PrefixBeam:
    """All of them in one."""
    return PrefixBeam(
        np.concatenate([p.rows for p in parts]),
        np.concatenate([p.odds for p in parts]),
        np.concatenate([p.weight for p in parts]),
        np.concatenate([p.level for p in parts]),
    )


def _root(tables: MassTables, masses: int) -> PrefixBeam:
    rows = np.full((1, tables.protocol.max_length), PAD, np.uint8)
    weight = np.full((1, masses), 1 / masses, np.float32)
    return PrefixBeam(rows, np.full(1, np.log(EXPECTED), np.float32), weight, np.zeros(1, np.int64))


def _extended(
    alive: PrefixBeam, model: StringModel, length: int, goal: int, loops: ScreeningKernels
) -> tuple[Rows, NDArray[np.float32], NDArray[np.int64]]:
    """Every way to go on to `goal` symbols: rows, log-probability, index into `alive`."""
    rows, parent = alive.rows, np.arange(len(alive))
    log_p, ended = np.zeros(len(alive), np.float32), np.zeros(len(alive), bool)
    symbols = np.append(np.arange(model.symbols), PAD).astype(np.uint8)
    for at in range(length, goal):
        open_ = np.flatnonzero(~ended)
        more = log_p[open_, np.newaxis] + model.of(rows[open_], at)
        prior = (more + np.minimum(alive.odds, 0)[parent[open_], np.newaxis]).ravel()
        best = loops.best(prior, MOST_CHILDREN)
        place, symbol = np.divmod(best, len(symbols))
        from_, symbol = open_[place], symbols[symbol]
        children = rows[from_]
        children[:, at] = symbol
        new: tuple[Any, ...] = children, more.ravel()[best], parent[from_], symbol == PAD
        if ended.any():
            old: tuple[Any, ...] = rows[ended], log_p[ended], parent[ended], ended[ended]
            new = tuple(np.concatenate(pair) for pair in zip(old, new, strict=True))
        rows, log_p, parent, ended = new
    return rows, log_p, parent


def _log_probability(odds: NDArray[np.float32], level: int) -> NDArray[np.float32]:
    """log P(present); the root, which is no prefix, keeps its expected number of strings."""
    if level == 0:
        return odds
    return np.asarray(-np.logaddexp(0, -odds), np.float32)


def _may_fall(weight: NDArray[np.float32]) -> NDArray[np.float32]:
    """A child's masses: its parent's, or any lower one."""
    lower = weight / np.maximum(np.arange(weight.shape[1]), 1)
    above = lower[:, ::-1].cumsum(axis=1)[:, ::-1] - lower
    return np.asarray(STAYS * weight + (1 - STAYS) * above, np.float32)


def _posterior(
    weight: NDArray[np.float32], sums: NDArray[np.float32], precision: float,
    masses: NDArray[np.float32],
) -> NDArray[np.float32]:  # fmt: skip
    log = masses * sums[:, np.newaxis] - masses**2 * (precision / 2)
    scaled = weight * np.exp(log - log.max(axis=1, keepdims=True)) + 1e-30
    return np.asarray(scaled / scaled.sum(axis=1, keepdims=True), np.float32)


def end_levels(tables: MassTables, rows: Rows) -> NDArray[np.int64]:
    """int64[n]: the level where a search sees that each string has ended."""
    levels = np.array(searched(tables))
    after = np.searchsorted(tables.lengths[levels], (rows != PAD).sum(axis=1), side="right")
    return np.asarray(levels[np.minimum(after, len(levels) - 1)])


def followed(
    evidence: ScoreTables, rows: Rows, weight: NDArray[np.float64], masses: NDArray[np.float32]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Log-odds and expected mass of these strings by their prefixes alone, as a search that went
    through no others would have them just before it sees each end.

    weight : float64[n], how likely each was beforehand against the others
    """
    tables, end = evidence.tables, end_levels(evidence.tables, rows)
    odds, mass = np.empty(len(rows)), np.empty(len(rows))
    alive, here = _root(tables, len(masses)), np.zeros(len(rows), np.int64)
    below = np.array([weight.sum()])
    for level in searched(tables):
        last, before = end == level, _may_fall(alive.weight)
        prior = _log_probability(alive.odds, level) - np.log(below)
        odds[last] = prior[here[last]] + np.log(weight[last])
        mass[last] = before[here[last]] @ masses
        going = np.flatnonzero(end > level)
        if not len(going):
            break
        cut = rows[going].copy()
        cut[:, int(tables.lengths[level]) :] = PAD
        children, first, place = np.unique(cut, axis=0, return_index=True, return_inverse=True)
        parent = here[going[first]]
        below = np.bincount(place.ravel(), weight[going])
        sums = evidence.sums(level, children)
        ratio = evidence.log_ratios(level, sums, before, parent, masses)
        after = _posterior(before[parent], sums, float(evidence.precision[level]), masses)
        child_odds = (prior[parent] + np.log(below) + ratio).astype(np.float32)
        alive = PrefixBeam(children, child_odds, after, np.full(len(children), level))
        here[going] = place.ravel()
    return odds, mass


def with_later(
    found: PrefixBeam, evidence: ScoreTables, masses: NDArray[np.float32]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Log-odds and expected mass of finished strings, with all later levels' evidence too."""
    sums, precision = np.zeros(len(found)), np.zeros(len(found))
    for level in range(evidence.tables.levels):
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
