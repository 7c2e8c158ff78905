"""Reports of an `ngrams` question: counted, grouped by position, and decoded at each position.

Steps 2 and 3 of the paper's protocol: the marginal over all D^n grams of each position is decoded
like any other. Beyond 65,536 grams they are screened first: each gram is scored against a
background alone, block by block. Only the best are decoded, but the correction counts all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial, reduce
from itertools import combinations
from math import sqrt
from operator import add
from typing import Self

import numpy as np
from scipy.stats import norm

from deniable.analysis.source import NO_REPORTS
from deniable.columns import Column, ReportBatch
from deniable.discovery.ngrams.grams import (
    Pair,
    bloom,
    gram_blocks,
    gram_count,
    gram_mechanisms,
    row_bits,
)
from deniable.discovery.shared.run import DiscoveryRun
from deniable.discovery.shared.strings import Rows, StringTests
from deniable.errors import InputError
from deniable.inference.marginal.bit_counts import BitCounts, count_bits
from deniable.inference.marginal.clipping import MIN_CLIP, clipped_scores
from deniable.inference.marginal.design import BloomDesign
from deniable.inference.marginal.estimate import estimate_marginal
from deniable.inference.marginal.regression import BitTable, fit_columns
from deniable.inference.models.bloom import BloomModel
from deniable.inference.models.other import Other, mixture_other
from deniable.kernels.array_types import Floats, Indices, UInt16s
from deniable.mechanisms import Bloom
from deniable.protocols import NGrams
from deniable.protocols.alphabet import PAD
from deniable.results import Marginal, Measured

MAX_DECODED = 1 << 16
"""Grams of a position that are decoded without screening."""
MAX_SCREENED = 1 << 15
"""Grams of a position that a screening keeps."""
PER_CANDIDATE = (
    *("estimate", "standard_error", "low", "high"),
    *("p_value", "log_p_value", "detected", "identified"),
)


@dataclass(frozen=True, eq=False)
class ScoredStrings(StringTests):
    """Tested strings; float64[n] each.

    score : evidence of the n-gram reports
    easiest : largest cut-off that a string meets: its own, or a larger one in a later pass
    """

    score: Floats
    easiest: Floats


@dataclass(frozen=True, eq=False)
class Position:
    """The grams decoded at one position, most frequent first.

    grams : uint8[A, n]; marginal : their estimates, in the same order
    design : their bits; strata, as in `counts`, are kinds of noise times cohorts
    kind : int[r], the kind of noise of each gram part
    possible : number of possible grams, all of which the correction counts
    start : index of the first symbol of the position
    mechanism : the mechanism that reports the position
    """

    grams: Rows
    marginal: Marginal
    design: BloomModel
    counts: BitCounts
    kind: tuple[int, ...]
    possible: int
    start: int
    mechanism: Bloom

    def take(self, chosen: Indices) -> Position:
        """Return the position with some of its grams, in this order."""
        arrays = {name: getattr(self.marginal, name)[chosen] for name in PER_CANDIDATE}
        marginal = replace(self.marginal, groups=(), **arrays)
        design = self.design.take(chosen)
        return replace(self, grams=self.grams[chosen], marginal=marginal, design=design)

    def grams_of(self, rows: Rows) -> Rows:
        """Return the grams that strings have at this position."""
        return rows[:, self.start : self.start + self.grams.shape[1]]

    def places(self, rows: Rows) -> Indices:
        """Return the index of each string's gram in `grams`; −1 where it is not among them."""
        index = {gram.tobytes(): i for i, gram in enumerate(self.grams)}
        return np.array([index.get(gram.tobytes(), -1) for gram in self.grams_of(rows)], np.intp)

    @property
    def significant(self) -> Indices:
        """Indices of the detected grams, most frequent first."""
        return np.flatnonzero(self.marginal.detected)

    def stratum(self, part: int, cohort: UInt16s) -> UInt16s:
        """Return the strata of reports of the gram part `part` (from 0) at this position."""
        cohorts = self.counts.total.size // (max(self.kind) + 1)
        return (cohort + self.kind[part] * cohorts).astype(np.uint16)


@dataclass(frozen=True, eq=False)
class GramReports:
    """The reports of one `ngrams` question, counted, with each position decoded.

    full : counts of the full-string reports; strata are cohorts

    `marginal` and `other` are methods, so that `experiments.paper.original` can replace them.
    """

    run: DiscoveryRun[NGrams]
    full: BitCounts
    positions: tuple[Position, ...]

    @classmethod
    def of(cls, run: DiscoveryRun[NGrams]) -> Self:
        """Count all reports, and decode every position."""
        parts = range(len(run.protocol.parts))
        counts = run.source.map(run.executor, partial(_counted, run.question.name, parts))
        full, *grams = reduce(lambda left, right: tuple(map(add, left, right)), counts)
        run.reports = full.reports
        run.stage("counted", run.reports, 0)
        if run.reports == 0:
            raise InputError(NO_REPORTS)
        places = range(run.protocol.positions)
        positions = tuple(cls._decoded(run, grams, g) for g in places)
        significant = [len(p.significant) for p in positions]
        kept, possible = sum(significant), sum(p.possible for p in positions)
        each = ", ".join(map(str, significant))
        run.stage("grams significant", kept, possible - kept, f"by position: {each}")
        return cls(run, full, positions)

    @staticmethod
    def marginal(counts: BitCounts, design: BloomDesign, alpha: float) -> Marginal:
        """Estimate the frequency of each candidate, and test them at the level alpha."""
        return estimate_marginal(counts, design, alpha=alpha)

    @staticmethod
    def other(position: Position, chosen: Indices) -> Other | None:
        """Return the model of the grams of a position that are not among the chosen ones."""
        return mixture_other(position.marginal, position.design, chosen)

    @classmethod
    def _decoded(
        cls, run: DiscoveryRun[NGrams], parts: Sequence[BitCounts], position: int
    ) -> Position:
        """Decode every gram at one position; parts : counts of each gram part."""
        protocol = run.protocol
        noises = [m.support for m in gram_mechanisms(protocol)]
        kinds = list(dict.fromkeys(noises))
        kind = tuple(map(kinds.index, noises))
        slot = bloom(protocol.parts[1].slots[position].mechanism)
        strata = slice(position * slot.cohorts, (position + 1) * slot.cohorts)
        # Parts with the same noise are added up.
        ones = np.zeros((len(kinds), slot.cohorts, slot.bits), np.int64)
        totals = np.zeros((len(kinds), slot.cohorts), np.int64)
        for each, part in zip(kind, parts, strict=True):
            ones[each] += part.ones[strata]
            totals[each] += part.total[strata]
        counts = BitCounts(ones.reshape(-1, slot.bits), totals.ravel())
        p, q = np.repeat(kinds, slot.cohorts, axis=0).T

        def design_of(grams: Rows) -> BloomModel:
            bits = row_bits(slot, grams)
            return BloomModel(np.tile(bits, (len(kinds), 1, 1)), slot.width, p, q)

        possible = gram_count(protocol)
        if possible <= MAX_DECODED:
            grams = np.concatenate(list(gram_blocks(protocol)))
        else:
            grams = _screen(protocol, counts, design_of)
        design = design_of(grams)
        marginal = cls.marginal(counts, design, run.alpha * len(grams) / possible)
        order = np.argsort(-np.nan_to_num(marginal.estimate, nan=-np.inf), kind="stable")
        start = protocol.start(position)
        return Position(grams, marginal, design, counts, kind, possible, start, slot).take(order)

    @property
    def protocol(self) -> NGrams:
        """The protocol of the question."""
        return self.run.protocol

    def design(self, rows: Rows) -> BloomDesign:
        """Return the bits of whole strings in the full-string reports."""
        mechanism = bloom(self.protocol.parts[0].slots[0].mechanism)
        return BloomDesign(row_bits(mechanism, rows), mechanism.width, *mechanism.support)

    def estimate(self, rows: Rows) -> Marginal:
        """Estimate the frequencies of whole strings from the full-string reports."""
        return self.marginal(self.full, self.design(rows), self.run.alpha)

    @cached_property
    def string_error(self) -> float:
        """Standard error of the frequency of a rare string, from the full-string reports.

        sqrt(p(1-p)/h) / (q-p) / sqrt(N), without the small contribution of shared bits.
        """
        mechanism = bloom(self.protocol.full)
        p, q = mechanism.support
        return sqrt(p * (1 - p) / mechanism.hashes / self.run.reports) / abs(q - p)

    def detection_threshold(self, cutoff: float) -> float:
        """Return the frequency at which a string passes this cut-off half of the time."""
        return float(norm.isf(cutoff)) * self.string_error

    @property
    def mass_at_end(self) -> Measured | None:
        """Share of clients whose string reaches the last symbol: all but those that end before.

        None if grams were screened: the sum would miss those that were dropped.
        """
        last = self.positions[-1]
        if last.possible > MAX_DECODED:
            return None
        ended = (last.grams[:, -1] == PAD) & np.isfinite(last.marginal.estimate)
        error = float(np.sqrt((last.marginal.standard_error[ended] ** 2).sum()))
        return Measured.normal(1 - float(last.marginal.estimate[ended].sum()), error)


def paired_reports(
    columns: Sequence[Column], positions: int
) -> Iterator[tuple[Pair, Pair, Indices]]:
    """Group the reports of a batch by pairs of positions.

    columns : one per gram part

    Yields positions g < h, parts i < j, and the reports whose parts have these positions.
    """
    for i, j in combinations(range(len(columns)), 2):
        for g, h in combinations(range(positions), 2):
            both = np.flatnonzero((columns[i].slot == g) & (columns[j].slot == h))
            if both.size:
                yield (g, h), (i, j), both


def gram_columns(question: str, batch: ReportBatch) -> list[Column]:
    """Return the columns of the gram parts; the first part is the full string."""
    parts = len(batch.survey.question(question).protocol.parts)
    return [batch.column(question, part) for part in range(1, parts)]


def _counted(question: str, parts: range, batch: ReportBatch) -> tuple[BitCounts, ...]:
    """Count one batch, part by part; strata of gram parts are positions times cohorts."""
    return tuple(count_bits(batch.column(question, part)) for part in parts)


def _screen(protocol: NGrams, counts: BitCounts, design_of: Callable[[Rows], BloomModel]) -> Rows:
    """Return the grams with the best scores against a background alone."""
    grams, best = np.empty((0, protocol.gram), np.uint8), np.empty(0)
    background = design_of(grams)
    table = BitTable.of(counts, background, True)
    fit = fit_columns(table, background.indicator())
    for block in gram_blocks(protocol):
        sums, _ = clipped_scores(table, design_of(block), fit, np.zeros(len(block)), MIN_CLIP)
        grams = np.concatenate([grams, block])
        best = np.concatenate([best, sums[1] / np.sqrt(np.maximum(sums[0], 1e-300))])
        if len(grams) > MAX_SCREENED:
            chosen = np.argpartition(-best, MAX_SCREENED)[:MAX_SCREENED]
            grams, best = grams[chosen], best[chosen]
    return grams
