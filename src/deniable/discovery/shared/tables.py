"""Debiased tables: for every level and family of hash functions, the mass that fell in each cell.

A client at level l in family c whose prefix has cell v adds 1 to that cell in expectation, and
nothing to the others: Bloom filters with one hash give this bit by bit; local hashing by summing,
for each cell, the reports that agree with it on their own line.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deniable.analysis.source import Source
from deniable.compute.backend import Executor
from deniable.compute.screening import CPU, ScreeningKernels
from deniable.discovery.shared.tally import Tally, tally_of
from deniable.kernels.hashing.positions import bloom_positions, hash_fixed_pairs
from deniable.mechanisms import Bloom, LocalHash
from deniable.protocols import Prefixes
from deniable.survey import Question

Rows = NDArray[np.uint8]
"""u8[n, M]: strings as symbols, padded to the greatest length."""


@dataclass(frozen=True, eq=False)
class MassTables:
    """mass : float32[L, C, K], unbiased, each family's mean over cells removed.

    count : int64[L, C], reports; lengths : int64[L], prefix length of each level, ascending;
    noise : variance of one report's contribution to a cell that it does not hold; own : what is
    added to that for one it holds; line : cells that differ in the last digit only (1 for Bloom);
    loops : who screens strings.
    """

    protocol: Prefixes
    mass: NDArray[np.float32]
    count: NDArray[np.int64]
    noise: float
    own: float
    line: int
    loops: ScreeningKernels = CPU

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
        length = int(self.lengths[level])
        lengths = np.full(len(rows), length, np.int64)
        return hash_fixed_pairs(self.header(level), rows, lengths, threads=threads)

    def header(self, level: int) -> bytes:
        """What is hashed before every prefix of this level."""
        slot = self.protocol.parts[0].slots[level].mechanism
        assert isinstance(slot, Bloom | LocalHash)
        return slot.header

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


def tables_of(source: Source, question: Question, executor: Executor | None = None) -> MassTables:
    """Read every report once; only counts come back from where the shards are."""
    return debiased(tally_of(source, question, executor))


def debiased(tally: Tally) -> MassTables:
    """Tables of what was sent."""
    m, q = tally.mechanism, tally.q
    # A number that is not the client's own is as likely as any of g, over the lines.
    p, line = (1 / m.values, m.values) if isinstance(m, LocalHash) else (tally.p, 1)
    count = tally.reports.sum(axis=2)
    support = tally.by_cell(tally.sent)
    mass = (support / np.maximum(count, 1)[:, :, np.newaxis] - p) / (q - p)
    mass -= mass.mean(axis=2, keepdims=True)
    mass[count == 0] = 0
    gain = (q - p) ** 2
    noise, own = p * (1 - p) / gain, q * (1 - q) / gain
    return MassTables(
        tally.protocol, mass.astype(np.float32), count, noise, own - noise, line, tally.loops
    )
