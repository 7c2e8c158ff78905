"""Simulate local hashing: true numbers, and fresh noise on them.

The arithmetic is that of `mechanisms.local_hash`, on arrays; a test compares the two for the same
random words.
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
    """Return the number to which each client's line maps its cell, int64[N].

    cell : int32[N], −1 for no answer, whose number is g
    """
    g, d = mechanism.values, mechanism.digits
    line = digits_of(cohort % mechanism.lines, g, d - 1)
    return np.where(cell < 0, g, line_numbers(digits_of(cell, g, d), line, g))


def noise_numbers(mechanism: LocalHash, true: Int64s, uniform: UInt32s) -> Int64s:
    """Return the reported numbers int64[N] of clients that draw these 32 random bits each."""
    g, p, q = mechanism.values, mechanism.noise.p, mechanism.noise.q
    u = uniform.astype(np.int64)
    other = (true + 1 + (u - q) // p) % g
    return np.where(true == g, u * g >> 32, np.where(u < q, true, other))


@dataclass(frozen=True, eq=False)
class TrueNumbers:
    """True numbers of clients, int64[N]; g for no answer."""

    mechanism: LocalHash
    numbers: Int64s

    def report(self, rng: np.random.Generator) -> Bytes:
        """Return one more report per client: numbers with fresh noise, low byte first."""
        uniform = rng.integers(0, 1 << 32, len(self.numbers), dtype=np.uint32)
        sent = noise_numbers(self.mechanism, self.numbers, uniform).astype("<u4")
        return sent.view(np.uint8).reshape(-1, 4)[:, : self.mechanism.size].copy()


class HashPart(PartSimulator[LocalHash]):
    """Simulator of local hashing: each answer is hashed once for all families."""

    def states(self, clients: Clients, rng: np.random.Generator) -> TrueNumbers:
        """Return true numbers; nothing is drawn."""
        m = self.mechanism
        numbers = np.empty(len(clients), np.int64)
        for rows, chunk in clients.chunks():
            family = (chunk.cohort // m.lines).astype(np.uint16)
            token = self.token_index(chunk)
            cell = row_positions(*self._pairs, token, family, 1, m.cells)[:, 0]
            numbers[rows] = true_numbers(m, cell, chunk.cohort)
        return TrueNumbers(m, numbers)

    @cached_property
    def _pairs(self) -> tuple[Words, Words]:
        """Hash pairs of the tokens of all slots."""
        return slot_pairs([m.header for m in self.mechanisms], self.tokens)
