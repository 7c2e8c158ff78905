"""Simulate local hashing: true numbers, permanent noise on them if there is any, and fresh noise.

The arithmetic is that of `mechanisms.local_hash`, on arrays; a test compares the two for the same
random words.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import cast

import numpy as np

from deniable.kernels.array_types import Bytes, Int32s, Int64s, UInt16s, UInt32s, Words
from deniable.kernels.hashing.lines import digits_of, line_numbers
from deniable.kernels.hashing.positions import row_positions
from deniable.mechanisms import LocalHash, PermanentLocalHash
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
    g, noise = mechanism.values, mechanism.noise
    silent = uniform.astype(np.int64) * g >> 32
    return np.where(true == g, silent, randomised_numbers(true, uniform, noise.q, noise.p, g))


def randomised_numbers(number: Int64s, uniform: UInt32s, own: int, other: int, g: int) -> Int64s:
    """Return int64[N]: each number with probability own/2^32, each other with other/2^32."""
    u = uniform.astype(np.int64)
    return np.where(u < own, number, (number + 1 + (u - own) // other) % g)


@dataclass(frozen=True, eq=False)
class TrueNumbers:
    """True numbers of clients, int64[N]; g for no answer."""

    mechanism: LocalHash
    numbers: Int64s

    def report(self, rng: np.random.Generator) -> Bytes:
        """Return one more report per client: numbers with fresh noise, low byte first."""
        uniform = random_words(rng, len(self.numbers))
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


class PermanentHashPart(HashPart):
    """Simulator of local hashing with permanent noise."""

    def states(self, clients: Clients, rng: np.random.Generator) -> TrueNumbers:
        """Draw permanent numbers, or compute them from the secrets."""
        true, mechanism = super().states(clients, rng).numbers, self.mechanism
        if clients.secrets is None:
            g, noise = mechanism.values, mechanism.noise
            true = np.where(true == g, rng.integers(0, g, len(true)), true)
            uniform = random_words(rng, len(true))
            numbers = randomised_numbers(true, uniform, noise.kept, noise.flip, g)
        else:
            numbers = self._permanent(true, clients, clients.secrets)
        return TrueNumbers(mechanism, numbers)

    def _permanent(self, true: Int64s, clients: Clients, secrets: Bytes) -> Int64s:
        """Return the permanent numbers of clients with these secrets; true is g for no answer."""
        mechanisms = cast("list[PermanentLocalHash]", self.mechanisms)
        columns = (clients.slot.tolist(), clients.cohort.tolist(), true.tolist(), secrets)
        numbers = []
        for slot, cohort, number, row in zip(*columns, strict=True):
            own, secret = mechanisms[slot], row.tobytes()
            if number == own.values:
                number = own.number_of_no_answer(secret)
            numbers.append(own.permanent(number, cohort, secret))
        return np.array(numbers, np.int64)


def random_words(rng: np.random.Generator, count: int) -> UInt32s:
    """Return 32 random bits per client, uint32[count]."""
    return rng.integers(0, 1 << 32, count, dtype=np.uint32)
