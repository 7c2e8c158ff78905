"""What was sent: how often each number, or bit, was reported, by level and cohort.

Enough for everything that prefixes are decoded with, and it adds over shards. A cohort is a family
of hash functions and one of its lines (see `mechanisms.local_hash`); a Bloom filter's cohorts are
families of one line each, and its bits are the cells.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial, reduce
from operator import add
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from deniable.analysis.source import Source
from deniable.columns import Column, ReportBatch
from deniable.columns.batch import numbers
from deniable.compute.backend import Backend
from deniable.compute.screening import ScreeningKernels
from deniable.discovery.shared.strings import Floats, Rows
from deniable.errors import InputError
from deniable.inference.marginal.bit_counts import BitCounts, count_bits
from deniable.kernels.hashing.lines import digits_of, line_numbers
from deniable.kernels.hashing.positions import bloom_positions, hash_fixed_pairs
from deniable.mechanisms import Bloom, LocalHash
from deniable.protocols import Prefixes
from deniable.survey import Question

Counts = NDArray[np.int64]
Entries = TypeVar("Entries", Counts, Floats)


@dataclass(frozen=True, eq=False)
class Tally(ABC):
    """Reports of a question asked by prefixes, counted.

    sent : int64[L, C, lines, V], reports with this number (or this bit set), of V, at each of L
    levels in each of C families; reports : int64[L, C, lines], all reports; kernels : add up and
    screen many cells or strings
    """

    protocol: Prefixes
    mechanism: Bloom | LocalHash
    kernels: ScreeningKernels
    sent: Counts
    reports: Counts

    # --- what depends on the kind of report -----------------------------------------------------

    @abstractmethod
    def numbers(self, cells: NDArray[np.int32]) -> Counts:
        """Return the number, or bit, that stands for each cell on every line: int64[..., lines]."""

    @abstractmethod
    def by_cell(self, entry: Entries) -> Entries:
        """Sum entry[L, C, lines, V] for each cell over the lines' numbers: [L, C, K]."""

    @abstractmethod
    def effect(self, load: Floats) -> Floats:
        """Return what strings with this mass in each cell, float64[K], add to a debiased table."""

    @abstractmethod
    def slope(self, p: Floats) -> Floats:
        """Slope of the log-likelihood by each number's probability, float64[strata, V]."""

    @abstractmethod
    def curvature(self, p: Floats) -> Floats:
        """Fisher information about each number's probability, float64[strata, V]."""

    # --- what follows ---------------------------------------------------------------------------

    @property
    def levels(self) -> int:
        return len(self.protocol.levels)

    @property
    def lengths(self) -> Counts:
        """int64[L]: the prefix length of each level, ascending."""
        return np.array([level.length for level in self.protocol.levels])

    @property
    def families(self) -> int:
        return self.mechanism.hash_layout[0]

    @property
    def cells(self) -> int:
        """Cells of a family's table."""
        return self.mechanism.hash_layout[2]

    @property
    def p(self) -> float:
        """Probability of a number, or bit, that is not the client's own."""
        return float(self.mechanism.noise.p_star)

    @property
    def q(self) -> float:
        """Probability of the client's own number or bit."""
        return float(self.mechanism.noise.q_star)

    def header(self, level: int) -> bytes:
        """What is hashed before every prefix of this level."""
        slot = self.protocol.parts[0].slots[level].mechanism
        return self.mechanism.within(slot.domain).header

    def positions(self, level: int, rows: Rows) -> NDArray[np.int32]:
        """int32[C, n]: the cell of each string's prefix in each family."""
        lengths = np.full(len(rows), self.lengths[level])
        x, y = hash_fixed_pairs(self.header(level), rows, lengths)
        return bloom_positions(x, y, self.families, 1, self.cells)[:, :, 0]


@dataclass(frozen=True, eq=False)
class BitTally(Tally):
    """Reports are Bloom filters of one hash: every bit is a cell."""

    mechanism: Bloom

    def numbers(self, cells: NDArray[np.int32]) -> Counts:
        return cells[..., np.newaxis].astype(np.int64)

    def by_cell(self, entry: Entries) -> Entries:
        return entry[:, :, 0]

    def effect(self, load: Floats) -> Floats:
        return load

    def slope(self, p: Floats) -> Floats:
        sent, reports = self.sent.reshape(p.shape), self.reports.reshape(-1, 1)
        return np.asarray(sent / p - (reports - sent) / (1 - p))

    def curvature(self, p: Floats) -> Floats:
        return np.asarray(self.reports.reshape(-1, 1) / (p * (1 - p)))


@dataclass(frozen=True, eq=False)
class NumberTally(Tally):
    """Reports are numbers: a line of a family takes each of its cells to one of them."""

    mechanism: LocalHash

    @property
    def base(self) -> int:
        return self.mechanism.values

    @cached_property
    def lines(self) -> Counts:
        """int64[lines, d − 1]: the digits of every line."""
        return digits_of(np.arange(self.mechanism.lines), self.base, self.mechanism.digits - 1)

    def numbers(self, cells: NDArray[np.int32]) -> Counts:
        digits = digits_of(cells, self.base, self.mechanism.digits)
        return line_numbers(digits[..., np.newaxis, :], self.lines, self.base)

    def by_cell(self, entry: Entries) -> Entries:
        cells = digits_of(np.arange(self.cells), self.base, self.mechanism.digits)
        return self.kernels.line_support(entry, self.lines, cells)

    def effect(self, load: Floats) -> Floats:
        # Cells on one line are never confused, while the debiasing expects 1/g: a string takes
        # mass/(g − 1) from each of the others.
        by_line = load.reshape(-1, self.base)
        away = by_line.sum(axis=1, keepdims=True) - by_line
        return np.asarray((by_line - away / (self.base - 1)).ravel())

    def slope(self, p: Floats) -> Floats:
        return np.asarray(self.sent.reshape(p.shape) / p)

    def curvature(self, p: Floats) -> Floats:
        return np.asarray(self.reports.reshape(-1, 1) / p)


def tally_of(source: Source, question: Question, protocol: Prefixes, executor: Backend) -> Tally:
    """Read every report once; only counts come back from where the shards are."""
    tally: Callable[..., Tally]
    match protocol.mechanism:
        case LocalHash() as mechanism:
            tally, count = partial(NumberTally, protocol, mechanism), count_numbers
        case Bloom(hashes=1, scheme_name="deniable-1") as mechanism:
            tally, count = partial(BitTally, protocol, mechanism), count_bits
        case _:
            raise InputError(
                "expected local hashing, or a Bloom filter with hashes = 1 and scheme deniable-1"
            )
    counts = reduce(add, source.map(executor, partial(_counted, count, question.name)))
    families = mechanism.hash_layout[0]
    shape = len(protocol.levels), families, mechanism.cohorts // families
    sent, reports = counts.ones.reshape(*shape, -1), counts.total.reshape(shape)
    return tally(executor.arrays.screening, sent, reports)


def _counted(count: Callable[[Column], BitCounts], question: str, batch: ReportBatch) -> BitCounts:
    return count(batch.column(question))


def count_numbers(column: Column) -> BitCounts:
    """Return how many reports of each stratum are each number."""
    values = column.mechanism.bound or 0
    place = column.stratum.astype(np.int64) * values + numbers(column.bits)
    ones = np.bincount(place, minlength=column.strata * values).reshape(column.strata, values)
    return BitCounts(ones, ones.sum(axis=1))
