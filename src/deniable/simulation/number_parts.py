"""Simulated local hashing: true numbers, and fresh noise on them.

The same arithmetic as `mechanisms.local_hash`, on arrays; a test ties the two on the same random
words.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from deniable.kernels.array_types import Bytes, Int32s, Int64s, UInt16s, UInt32s, Words
from deniable.kernels.hashing.lines import digits_of, line_numbers
from deniable.kernels.hashing.positions import row_positions
from deniable.mechanisms import LocalHash
from deniable.simulation.bit_parts import slot_pairs
from deniable.simulation.parts import Clients, PartSimulator


def true_numbers(mechanism: LocalHash, cell: Int32s, cohort: UInt16s) -> Int64s:
    """int64[N]: where each client's line takes its cell; g for no answer (a cell of −1)."""
    g, d = mechanism.values, mechanism.digits
    line = digits_of(cohort % mechanism.lines, g, d - 1)
    return np.where(cell < 0, g, line_numbers(digits_of(cell, g, d), line, g))


def noise_numbers(mechanism: LocalHash, true: Int64s, uniform: UInt32s) -> Int64s:
    """What clients send whose 32 random bits these are."""
    g, p, q = mechanism.values, mechanism.noise.p, mechanism.noise.q
    u = uniform.astype(np.int64)
    other = (true + 1 + (u - q) // p) % g
    return np.where(true == g, u * g >> 32, np.where(u < q, true, other))


@dataclass(frozen=True, eq=False)
class KeptNumbers:
    """True numbers, int64[N]; g for no answer."""

    mechanism: LocalHash
    numbers: Int64s

    def report(self, rng: np.random.Generator) -> Bytes:
        """Add fresh noise, and pack the numbers with their low byte first."""
        uniform = rng.integers(0, 1 << 32, len(self.numbers), dtype=np.uint32)
        sent = noise_numbers(self.mechanism, self.numbers, uniform).astype("<u4")
        return sent.view(np.uint8).reshape(-1, 4)[:, : self.mechanism.size].copy()


class HashPart(PartSimulator[LocalHash]):
    """Local hashing: each answer is hashed once, whatever the number of families."""

    def keep(self, clients: Clients, rng: np.random.Generator) -> KeptNumbers:
        return KeptNumbers(self.mechanism, self._numbers(clients))

    def _numbers(self, clients: Clients) -> Int64s:
        m = self.mechanism
        out = np.empty(len(clients), np.int64)
        for rows, piece in clients.pieces():
            family = (piece.cohort // m.lines).astype(np.uint16)
            cell = row_positions(*self._pairs, self.row(piece), family, 1, m.cells)[:, 0]
            out[rows] = true_numbers(m, cell, piece.cohort)
        return out

    @cached_property
    def _pairs(self) -> tuple[Words, Words]:
        return slot_pairs([m.header for m in self.mechanisms], self.tokens)
