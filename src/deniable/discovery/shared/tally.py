"""What was sent: how often each number, or bit, was reported, by level and cohort.

Enough for everything that prefixes are decoded with, and it adds over shards. A cohort is a family
of hash functions and one of its lines (see `mechanisms.local_hash`); a Bloom filter's cohorts are
families of one line each, and its bits are the cells.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deniable.analysis.source import Source
from deniable.columns import ReportBatch
from deniable.columns.batch import numbers
from deniable.compute.backend import Executor, default_executor
from deniable.compute.screening import CPU, ScreeningKernels, loops_of
from deniable.errors import InputError
from deniable.kernels.counting.bit_sums import count_ones
from deniable.kernels.hashing.lines import digits_of, line_numbers
from deniable.mechanisms import Bloom, LocalHash
from deniable.mechanisms.schemes import DENIABLE_1
from deniable.protocols import Prefixes
from deniable.survey import Question


@dataclass(frozen=True, eq=False)
class Tally:
    """sent : int64[L, C, lines, V], reports with this number (or this bit set), V of them;
    reports : int64[L, C, lines], all reports; loops : who adds up and screens."""

    protocol: Prefixes
    mechanism: Bloom | LocalHash
    sent: NDArray[np.int64]
    reports: NDArray[np.int64]
    loops: ScreeningKernels = CPU

    @property
    def exclusive(self) -> bool:
        """Whether a report is one of the numbers, and not any number of bits."""
        return isinstance(self.mechanism, LocalHash)

    @property
    def p(self) -> float:
        """Probability of a number that is not the client's own."""
        return float(self.mechanism.noise.p_star)

    @property
    def q(self) -> float:
        """Probability of the client's own number."""
        return float(self.mechanism.noise.q_star)

    def number(self, cell: NDArray[Any], line: int) -> NDArray[np.int64]:
        """Where the line takes each cell, as `LocalHash.on_line`; a bit is its own number."""
        m = self.mechanism
        if not isinstance(m, LocalHash):
            return np.asarray(cell, np.int64)
        slope = digits_of(np.array(line), m.values, m.digits - 1)
        digits = digits_of(np.asarray(cell), m.values, m.digits)
        return line_numbers(digits, slope, m.values)

    def by_cell(self, entry: NDArray[Any]) -> NDArray[Any]:
        """[L, C, K] of entry[L, C, lines, V]: for each cell, the sum over lines of its number's."""
        m = self.mechanism
        if not isinstance(m, LocalHash):
            return entry[:, :, 0]
        cells = digits_of(np.arange(m.cells), m.values, m.digits)
        lines = digits_of(np.arange(m.lines), m.values, m.digits - 1)
        return self.loops.line_support(entry, lines, cells)


def tally_of(source: Source, question: Question, executor: Executor | None = None) -> Tally:
    """Read every report once; only counts come back from where the shards are."""
    protocol, executor = question.protocol, executor or default_executor()
    if not isinstance(protocol, Prefixes):
        raise InputError(f"expected a question asked by prefixes, got protocol {protocol.name!r}")
    m, levels = protocol.mechanism, len(protocol.levels)
    if isinstance(m, LocalHash):
        sent = np.zeros((levels, m.families, m.lines, m.values), np.int64)
        task = partial(_numbers, question.name, m.values, levels * m.cohorts)
        for part in source.map(executor, task):
            sent += part.reshape(sent.shape)
        return Tally(protocol, m, sent, sent.sum(axis=3), loops_of(executor))
    if not isinstance(m, Bloom) or m.hashes != 1:
        raise InputError("expected local hashing, or a Bloom filter with hashes = 1")
    if m.scheme is not DENIABLE_1:
        raise InputError(f"expected scheme deniable-1, got {m.scheme_name!r}")
    ones = np.zeros((levels, m.cohorts, 1, m.bits), np.int64)
    count = np.zeros((levels, m.cohorts, 1), np.int64)
    bits_task = partial(_ones, question.name, m.bits, levels * m.cohorts)
    for some, total in source.map(executor, bits_task):
        ones += some.reshape(ones.shape)
        count += total.reshape(count.shape)
    return Tally(protocol, m, ones, count, loops_of(executor))


def _ones(
    question: str, bits: int, strata: int, batch: ReportBatch
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    column = batch.column(question)
    return count_ones(column.bits, bits, column.stratum, strata)


def _numbers(question: str, values: int, strata: int, batch: ReportBatch) -> NDArray[np.int64]:
    """int64[strata · values]: how many reports of each stratum are each number."""
    column = batch.column(question)
    place = column.stratum.astype(np.int64) * values + numbers(column.bits)
    return np.bincount(place, minlength=strata * values)
