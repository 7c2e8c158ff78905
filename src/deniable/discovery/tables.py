"""Debiased tables: for every level and family of hash functions, the mass that fell in each cell.

A client at level l in family c whose prefix has cell v adds 1 to that cell in expectation, and
nothing to the others: Bloom filters with one hash give this bit by bit; local hashing by summing,
for each cell, the reports that agree with it on their own line.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from deniable.columns import ReportBatch
from deniable.columns.batch import numbers
from deniable.compute.executor import Executor, default_executor
from deniable.errors import InputError
from deniable.kernels.bloom import bloom_positions, hash_fixed_pairs
from deniable.kernels.counts import count_ones
from deniable.kernels.lines import digits_of, line_support
from deniable.mechanisms import Bloom, LocalHash
from deniable.mechanisms.schemes import DENIABLE_1
from deniable.protocols import Prefixes
from deniable.survey import Question

Rows = NDArray[np.uint8]
"""u8[n, M]: strings as symbols, padded to the greatest length."""


class Batches(Protocol):
    """Anything that gives a survey's reports, some at a time."""

    def batches(self) -> Iterator[ReportBatch]: ...


@dataclass(frozen=True, eq=False)
class Tables:
    """mass : float32[L, C, K], unbiased, each family's mean over cells removed.

    count : int64[L, C], reports; lengths : int64[L], prefix length of each level, ascending;
    noise : variance of one report's contribution to a cell that it does not hold; own : what is
    added to that for one it holds; line : cells that differ in the last digit only (1 for Bloom).
    """

    protocol: Prefixes
    mass: NDArray[np.float32]
    count: NDArray[np.int64]
    noise: float
    own: float
    line: int

    @property
    def lengths(self) -> NDArray[np.int64]:
        return np.array([level.length for level in self.protocol.levels])

    @property
    def levels(self) -> int:
        return len(self.count)

    @property
    def families(self) -> int:
        return int(self.count.shape[1])

    @property
    def cells(self) -> int:
        return int(self.mass.shape[2])

    def pairs(self, level: int, rows: Rows, threads: int | None = None) -> Any:
        """Seeds (x, y) of the strings' prefixes at this level."""
        slot = self.protocol.parts[0].slots[level].mechanism
        assert isinstance(slot, Bloom | LocalHash)
        length = int(self.lengths[level])
        lengths = np.full(len(rows), length, np.int64)
        return hash_fixed_pairs(slot.header, rows, lengths, threads=threads)

    def positions(self, level: int, rows: Rows) -> NDArray[np.int32]:
        """int32[C, n]: the cell of each string's prefix in each family."""
        x, y = self.pairs(level, rows)
        return bloom_positions(x, y, self.families, 1, self.cells)[:, :, 0]

    def effect(self, cells: NDArray[np.int32], masses: NDArray[np.float64]) -> NDArray[np.float32]:
        """float32[K]: what strings of these masses in these cells add to one family's table.

        Cells on one line are never confused by local hashing, while the debiasing expects 1/g:
        a string takes mass/(g−1) from each of the others.
        """
        fit = np.bincount(cells, weights=masses, minlength=self.cells)
        if self.line > 1:
            by_line = fit.reshape(-1, self.line)
            away = by_line.sum(axis=1, keepdims=True) - by_line
            fit = (by_line - away / (self.line - 1)).ravel()
        return np.asarray(fit - fit.mean(), np.float32)

    def without(self, rows: Rows, masses: NDArray[np.float64]) -> NDArray[np.float32]:
        """The tables less what strings of these masses add to them."""
        residual = self.mass.copy()
        if len(rows):
            for level in range(self.levels):
                positions = self.positions(level, rows)
                for family in range(self.families):
                    residual[level, family] -= self.effect(positions[family], masses)
        return residual


def tables_of(source: Batches, question: Question, executor: Executor | None = None) -> Tables:
    """Read every report once; only counts come back from where the shards are."""
    protocol = question.protocol
    if not isinstance(protocol, Prefixes):
        raise InputError(f"expected a question asked by prefixes, got protocol {protocol.name!r}")
    mechanism = protocol.mechanism
    if isinstance(mechanism, LocalHash):
        return _local(source, question, protocol, mechanism, executor or default_executor())
    if not isinstance(mechanism, Bloom) or mechanism.hashes != 1:
        raise InputError("expected local hashing, or a Bloom filter with hashes = 1")
    if mechanism.scheme is not DENIABLE_1:
        raise InputError(f"expected scheme deniable-1, got {mechanism.scheme_name!r}")
    return _bloom(source, question, protocol, mechanism, executor or default_executor())


def _bloom(
    source: Batches, question: Question, protocol: Prefixes, m: Bloom, executor: Executor
) -> Tables:
    strata = len(protocol.levels) * m.cohorts
    ones = np.zeros((strata, m.bits), np.int64)
    count = np.zeros(strata, np.int64)
    task = partial(_ones, question.name, m.bits, strata)
    for some, total in executor.map(task, source.batches()):
        ones += some
        count += total
    p, q = float(m.noise.p_star), float(m.noise.q_star)
    shape = (len(protocol.levels), m.cohorts, m.bits)
    return _debiased(protocol, ones.reshape(shape), count.reshape(shape[:2]), p, q, 1)


def _local(
    source: Batches, question: Question, protocol: Prefixes, m: LocalHash, executor: Executor
) -> Tables:
    strata = len(protocol.levels) * m.cohorts
    sent = np.zeros(strata * m.values, np.int64)
    for part in executor.map(partial(_sent, question.name, m.values, strata), source.batches()):
        sent += part
    by_line = sent.reshape(len(protocol.levels), m.families, m.lines, m.values)
    support = np.empty((*by_line.shape[:2], m.cells), np.int64)
    cells = digits_of(np.arange(m.cells), m.values, m.digits)
    lines = digits_of(np.arange(m.lines), m.values, m.digits - 1)
    for level, family in np.ndindex(*by_line.shape[:2]):
        line_support(by_line[level, family], lines, cells, support[level, family])
    p, q = 1 / m.values, float(m.noise.q_star)
    return _debiased(protocol, support, by_line.sum(axis=(2, 3)), p, q, m.values)


def _ones(
    question: str, bits: int, strata: int, batch: ReportBatch
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    column = batch.column(question)
    return count_ones(column.bits, bits, column.stratum, strata)


def _sent(question: str, values: int, strata: int, batch: ReportBatch) -> NDArray[np.int64]:
    """int64[strata · values]: how many reports of each stratum are each number."""
    column = batch.column(question)
    place = column.stratum.astype(np.int64) * values + numbers(column.bits)
    return np.bincount(place, minlength=strata * values)


def _debiased(
    protocol: Prefixes,
    ones: NDArray[np.int64],
    count: NDArray[np.int64],
    p: float,
    q: float,
    line: int,
) -> Tables:
    reports = np.maximum(count, 1)[:, :, np.newaxis]
    mass = (ones / reports - p) / (q - p)
    mass -= mass.mean(axis=2, keepdims=True)
    mass[count == 0] = 0
    gain = (q - p) ** 2
    noise = p * (1 - p) / gain
    return Tables(protocol, mass.astype(np.float32), count, noise, q * (1 - q) / gain - noise, line)
