"""What the stages of a discovery by n-grams pass on to each other."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial, reduce
from itertools import combinations
from math import sqrt
from operator import add

import numpy as np
from numpy.typing import NDArray
from scipy.stats import norm

from deniable.columns import Column, ReportBatch
from deniable.discovery.ngrams.grams import bloom, row_bits
from deniable.discovery.ngrams.positions import DECODED, Position, decode_position
from deniable.discovery.shared.run import DiscoveryRun
from deniable.discovery.shared.strings import Floats, FoundStrings, Rows
from deniable.errors import InputError
from deniable.inference.marginal.bit_counts import BitCounts, count_bits
from deniable.inference.marginal.design import BloomDesign
from deniable.inference.marginal.estimate import estimate_marginal
from deniable.protocols import NGrams
from deniable.protocols.alphabet import PAD
from deniable.results import Marginal, Measured

Pair = tuple[int, int]


@dataclass(frozen=True, eq=False)
class ScoredStrings(FoundStrings):
    """Strings found, with the evidence of the n-gram reports for each: score, float64[n]."""

    score: Floats


@dataclass(frozen=True, eq=False)
class GramReports:
    """The reports of one `ngrams` question, counted, with each position decoded.

    full : counts of the full-string reports, strata are cohorts
    """

    run: DiscoveryRun[NGrams]
    full: BitCounts
    positions: tuple[Position, ...]

    @classmethod
    def of(cls, run: DiscoveryRun[NGrams]) -> GramReports:
        """Count everything, and decode every position."""
        parts = range(len(run.protocol.parts))
        counts = run.source.map(run.executor, partial(_counted, run.question.name, parts))
        full, *grams = reduce(lambda left, right: tuple(map(add, left, right)), counts)
        run.reports = full.reports
        run.stage("counted", run.reports, 0)
        if run.reports == 0:
            raise InputError("expected reports, got none")
        places = range(run.protocol.positions)
        positions = tuple(decode_position(run.protocol, grams, g, run.alpha) for g in places)
        significant = [len(p.significant) for p in positions]
        kept, given = sum(significant), sum(p.looked_at for p in positions)
        each = ", ".join(map(str, significant))
        run.stage("grams significant", kept, given - kept, f"by position: {each}")
        return cls(run, full, positions)

    @property
    def protocol(self) -> NGrams:
        return self.run.protocol

    def design(self, rows: Rows) -> BloomDesign:
        """Return the bits of whole strings in the full-string reports."""
        mechanism = bloom(self.protocol.parts[0].slots[0].mechanism)
        return BloomDesign(row_bits(mechanism, rows), mechanism.width, *mechanism.support)

    def estimate(self, rows: Rows) -> Marginal:
        """Estimate the frequencies of whole strings from the full-string reports."""
        return estimate_marginal(self.full, self.design(rows), alpha=self.run.alpha)

    @cached_property
    def string_noise(self) -> float:
        """Standard error of a rare string's frequency from the full-string reports.

        sqrt(p(1-p)/h) / (q-p) / sqrt(N), without the little that shared bits add.
        """
        mechanism = bloom(self.protocol.full)
        p, q = mechanism.support
        return sqrt(p * (1 - p) / mechanism.hashes / self.run.reports) / abs(q - p)

    def detection_threshold(self, cutoff: float) -> float:
        """Return the frequency at which a string passes this cut-off half the time."""
        return float(norm.isf(cutoff)) * self.string_noise

    @property
    def mass_at_end(self) -> Measured | None:
        """The share of clients whose string reaches the last symbol: all but those that end before.

        None where grams were screened: those left out would be missing from the sum.
        """
        last = self.positions[-1]
        if last.looked_at > DECODED:
            return None
        ended = (last.grams[:, -1] == PAD) & np.isfinite(last.marginal.estimate)
        error = float(np.sqrt((last.marginal.standard_error[ended] ** 2).sum()))
        return Measured.normal(1 - float(last.marginal.estimate[ended].sum()), error)


def _counted(question: str, parts: range, batch: ReportBatch) -> tuple[BitCounts, ...]:
    """Count one batch, part by part: strata of gram parts are positions times cohorts."""
    return tuple(count_bits(batch.column(question, part)) for part in parts)


def paired_reports(
    columns: Sequence[Column], positions: int
) -> Iterator[tuple[Pair, Pair, NDArray[np.intp]]]:
    """Group the reports of a batch by pairs of positions.

    columns : of each gram part
    Yields positions g < h, parts i < j, and the reports whose parts are of these positions.
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
