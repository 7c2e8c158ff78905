"""Counts of the reported numbers, or bits, by prefix length and cohort.

These counts are sufficient for decoding prefixes, and they add over shards. A *level* is the index
of a prefix length in the protocol. A cohort is a family of hash functions and one of its lines (see
`mechanisms.local_hash`). Hash functions take strings to *cells*. The cohorts of a Bloom filter are
families with one line each, and its bits are the cells.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, partial, reduce
from operator import add
from typing import TypeVar

import numpy as np

from deniable.analysis.source import Source
from deniable.columns import ReportBatch
from deniable.columns.batch import packed_numbers
from deniable.compute.executors import Executor
from deniable.discovery.shared.screening import line_support
from deniable.discovery.shared.strings import Rows
from deniable.errors import InputError
from deniable.inference.marginal.bit_counts import BitCounts, count_bits
from deniable.kernels.array_types import Floats, Int32s, Int64s
from deniable.kernels.hashing.lines import digits_of, line_numbers
from deniable.kernels.hashing.positions import bloom_positions, hash_row_pairs
from deniable.mechanisms import Bloom, LocalHash
from deniable.protocols import Prefixes
from deniable.survey import Question

Entries = TypeVar("Entries", Int64s, Floats)


@dataclass(frozen=True, eq=False)
class Tally:
    """Counts of reports that are Bloom filters with one hash: every bit is a cell.

    `NumberTally` overrides what differs when reports are numbers.

    sent : int64[L, C, lines, V], reports with each of V numbers (or bits set), at each of L
        levels in each of C families
    reports : int64[L, C, lines], all reports
    """

    protocol: Prefixes
    mechanism: Bloom | LocalHash
    sent: Int64s
    reports: Int64s

    def numbers(self, cells: Int32s) -> Int64s:
        """Return the number, or bit, that stands for each cell on every line: int64[..., lines]."""
        return cells[..., np.newaxis].astype(np.int64)

    def by_cell(self, entry: Entries) -> Entries:
        """Sum entry[L, C, lines, V] for each cell over the numbers of its lines: [L, C, K]."""
        return entry[:, :, 0]

    def effect(self, load: Floats) -> Floats:
        """Return what strings with this mass in each cell, float64[K], add to a debiased table."""
        return load

    def slope(self, p: Floats) -> Floats:
        """Return the slope of the log-likelihood by each number's probability p[strata, V]."""
        sent, reports = self.sent.reshape(p.shape), self.reports.reshape(-1, 1)
        return np.asarray(sent / p - (reports - sent) / (1 - p))

    def curvature(self, p: Floats) -> Floats:
        """Return the Fisher information about each number's probability p[strata, V]."""
        return np.asarray(self.reports.reshape(-1, 1) / (p * (1 - p)))

    @property
    def levels(self) -> int:
        """Number of prefix lengths."""
        return len(self.protocol.levels)

    @property
    def lengths(self) -> Int64s:
        """int64[L]: the prefix lengths, ascending."""
        return np.array([level.length for level in self.protocol.levels])

    @property
    def families(self) -> int:
        """Number of families of hash functions."""
        return self.mechanism.hash_layout[0]

    @property
    def cells(self) -> int:
        """Number of cells in the table of each family."""
        return self.mechanism.hash_layout[2]

    def header(self, level: int) -> bytes:
        """Return the bytes that are hashed before every prefix of this length."""
        slot = self.protocol.parts[0].slots[level].mechanism
        return self.mechanism.within(slot.domain).header

    def positions(self, level: int, rows: Rows) -> Int32s:
        """int32[C, n]: the cell of each string's prefix in each family."""
        x, y = hash_row_pairs(self.header(level), rows, int(self.lengths[level]))
        return bloom_positions(x, y, self.families, 1, self.cells)[:, :, 0]


@dataclass(frozen=True, eq=False)
class NumberTally(Tally):
    """Counts of reports that are numbers: each line of a family maps its cells to numbers."""

    mechanism: LocalHash

    @property
    def base(self) -> int:
        """How many numbers there are."""
        return self.mechanism.values

    @cached_property
    def lines(self) -> Int64s:
        """int64[lines, d − 1]: the digits of every line."""
        return digits_of(np.arange(self.mechanism.lines), self.base, self.mechanism.digits - 1)

    def numbers(self, cells: Int32s) -> Int64s:
        """Return the number of each cell on every line: int64[..., lines]."""
        digits = digits_of(cells, self.base, self.mechanism.digits)
        return line_numbers(digits[..., np.newaxis, :], self.lines, self.base)

    def by_cell(self, entry: Entries) -> Entries:
        """Sum entries for each cell over its numbers on all lines: [L, C, K]."""
        return line_support(entry, self.lines)

    def effect(self, load: Floats) -> Floats:
        """Return the effect of strings on a debiased table: float64[K]."""
        # Two cells on one line never have the same number, but debiasing expects that they do with
        # probability 1/g: a string takes mass/(g − 1) from each of the other cells.
        by_line = load.reshape(-1, self.base)
        away = by_line.sum(axis=1, keepdims=True) - by_line
        return np.asarray((by_line - away / (self.base - 1)).ravel())

    def slope(self, p: Floats) -> Floats:
        """Return the slope of a multinomial log-likelihood."""
        return np.asarray(self.sent.reshape(p.shape) / p)

    def curvature(self, p: Floats) -> Floats:
        """Return the Fisher information of a multinomial distribution."""
        return np.asarray(self.reports.reshape(-1, 1) / p)


def tally_of(source: Source, question: Question, protocol: Prefixes, executor: Executor) -> Tally:
    """Count the reports of a question; every report is read once, where its shard is."""
    kind: type[Tally]
    match protocol.mechanism:
        case LocalHash() as mechanism:
            kind, counts = NumberTally, _count_numbers(source, question, executor)
        case Bloom(hashes=1, scheme_name="deniable-1") as mechanism:
            kind, counts = Tally, reduce(add, source.map(executor, partial(_bits, question.name)))
        case other:
            raise InputError(
                f"question {question.name!r} reports prefixes by {other.kind!r}: expected local "
                "hashing, or a Bloom filter with hashes = 1 and scheme deniable-1"
            )
    families = mechanism.hash_layout[0]
    shape = len(protocol.levels), families, mechanism.cohorts // families
    sent, reports = counts.ones.reshape(*shape, -1), counts.total.reshape(shape)
    return kind(protocol, mechanism, sent, reports)


def _bits(question: str, batch: ReportBatch) -> BitCounts:
    """Count the bits of a batch."""
    return count_bits(batch.column(question))


def _count_numbers(source: Source, question: Question, executor: Executor) -> BitCounts:
    """Count the reports of each stratum that are each number.

    There are millions of counters, more than reports in a batch: the batches send where to count.
    """
    part, mechanism = question.protocol.parts[0], question.protocol.mechanisms[0]
    strata, values = len(part.slots) * mechanism.cohorts, mechanism.bound or 0
    ones = np.zeros(strata * values, np.int64)
    for places in source.map(executor, partial(_places, question.name)):
        np.add.at(ones, places, 1)
    counts = ones.reshape(strata, values)
    return BitCounts(counts, counts.sum(axis=1))


def _places(question: str, batch: ReportBatch) -> Int32s | Int64s:
    """Return the index of each report's counter: stratum · values + number."""
    column = batch.column(question)
    values = column.mechanism.bound or 0
    kind = np.int32 if column.strata * values < 1 << 31 else np.int64
    places: Int32s | Int64s = column.stratum * kind(values) + packed_numbers(column.bits).astype(
        kind
    )
    return places
