"""Simulate mechanisms that report bits (Bloom filters and options), by compiled kernels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TypeVar

import numpy as np

from deniable.kernels.array_types import Bytes, Int32s, Words
from deniable.kernels.hashing.positions import hash_pairs, row_positions
from deniable.kernels.noise.noisy_rows import BitPositions, encode_rows, noise_rows
from deniable.kernels.noise.sampler import CERTAIN, Response
from deniable.mechanisms import BitMechanism, Bloom
from deniable.mechanisms.schemes import DENIABLE_1
from deniable.simulation.coded import NO_ANSWER
from deniable.simulation.parts import Clients, PartSimulator

B = TypeVar("B", bound=BitMechanism)

UNCHANGED = Response(0, CERTAIN)
"""Response without noise."""


@dataclass(frozen=True, eq=False)
class PermanentBits:
    """Permanent responses of clients; bits : uint8[N, size], packed."""

    mechanism: BitMechanism
    bits: Bytes

    def report(self, rng: np.random.Generator) -> Bytes:
        """Return one more report per client: the permanent bits with fresh noise."""
        noise = self.mechanism.noise
        return noise_rows(self.bits, self.mechanism.width, Response(noise.p, noise.q), rng)


class BitPart(PartSimulator[B]):
    """Simulator of any mechanism that reports bits; its filter is called once per cohort."""

    def states(self, clients: Clients, rng: np.random.Generator) -> PermanentBits:
        """Draw permanent responses, or compute them from the secrets."""
        noise = self.mechanism.noise
        if clients.secrets is None:
            bits = self._encoded(clients, UNCHANGED.after_permanent(noise.flip, noise.keep), rng)
        else:
            bits = self._encoded(clients, UNCHANGED, rng)
            bits = self._permanent(bits, clients, clients.secrets) if noise.flip else bits
        return PermanentBits(self.mechanism, bits)

    def single_reports(self, clients: Clients, rng: np.random.Generator) -> Bytes:
        """Draw permanent and fresh noise at once: each bit is 1 with probability q* or p*."""
        noise = self.mechanism.noise
        both = Response(noise.p, noise.q).after_permanent(noise.flip, noise.keep)
        return self._encoded(clients, both, rng)

    def _encoded(self, clients: Clients, response: Response, rng: np.random.Generator) -> Bytes:
        """Return uint8[N, size]: the bits of the answers after this response."""
        out = np.empty((len(clients), self.mechanism.size), np.uint8)
        for rows, chunk in clients.chunks():
            positions = self.positions(chunk)
            encode_rows(positions, self.mechanism.width, response, rng, out=out[rows])
        return out

    def _permanent(self, bits: Bytes, clients: Clients, secrets: Bytes) -> Bytes:
        """Return the permanent responses that clients with these secrets have."""
        columns = (clients.slot.tolist(), clients.cohort.tolist(), bits, secrets)
        rows = [
            self.mechanisms[slot].permanent(int.from_bytes(row, "little"), cohort, bytes(secret))
            for slot, cohort, row, secret in zip(*columns, strict=True)
        ]
        packed = b"".join(row.to_bytes(self.mechanism.size, "little") for row in rows)
        return np.frombuffer(packed, np.uint8).reshape(bits.shape)

    def positions(self, clients: Clients) -> BitPositions:
        """Return the bits that the clients' answers set before any noise."""
        return BitPositions(self.token_index(clients).astype(np.int32), clients.cohort, self._table)

    @cached_property
    def _table(self) -> Int32s:
        """Positions of set bits, int32[cohorts, slots × answers, most bits], padded with −1."""
        sets = [
            [
                _set_bits(mechanism.true_bits(token, cohort))
                for mechanism, tokens in zip(self.mechanisms, self.tokens, strict=True)
                for token in tokens
            ]
            for cohort in range(self.mechanism.cohorts)
        ]
        most = max((len(places) for row in sets for places in row), default=0)
        padded = [[places + [NO_ANSWER] * (most - len(places)) for places in row] for row in sets]
        return np.array(padded, np.int32).reshape(len(sets), len(sets[0]), most)


class BloomPart(BitPart[Bloom]):
    """Simulator of Bloom filters: each answer is hashed once for all cohorts."""

    def positions(self, clients: Clients) -> BitPositions:
        """Return the bits that the clients' answers set before any noise."""
        m = self.mechanism
        if m.scheme is not DENIABLE_1:
            return super().positions(clients)
        token = self.token_index(clients)
        table = row_positions(*self._pairs, token, clients.cohort, m.hashes, m.bits)
        own_row = np.arange(len(clients), dtype=np.int32)
        return BitPositions(own_row, np.zeros(len(clients), np.uint16), table[np.newaxis])

    @cached_property
    def _pairs(self) -> tuple[Words, Words]:
        """Hash pairs of the tokens of all slots."""
        return slot_pairs([m.header for m in self.mechanisms], self.tokens)


def slot_pairs(headers: Sequence[bytes], tokens: Sequence[Sequence[bytes]]) -> tuple[Words, Words]:
    """Return the hash pairs (x, y), uint64 each, of the tokens of all slots, slot after slot."""
    pairs = [
        hash_pairs(
            header,
            np.frombuffer(b"".join(own), np.uint8),
            np.cumsum([0, *map(len, own)], dtype=np.int64),
        )
        for header, own in zip(headers, tokens, strict=True)
    ]
    return np.concatenate([x for x, _ in pairs]), np.concatenate([y for _, y in pairs])


def _set_bits(bits: int) -> list[int]:
    """Return the positions of the set bits of a number.

    >>> _set_bits(0b1010)
    [1, 3]
    """
    return [i for i in range(bits.bit_length()) if bits >> i & 1]
