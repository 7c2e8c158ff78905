"""Simulated bits: Bloom filters and options, by compiled kernels."""

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
from deniable.simulation.parts import NO_ANSWER, Clients, PartSimulator

B = TypeVar("B", bound=BitMechanism)

UNCHANGED = Response(0, CERTAIN)


@dataclass(frozen=True, eq=False)
class KeptBits:
    """Permanent responses, packed: uint8[N, size]."""

    mechanism: BitMechanism
    bits: Bytes

    def report(self, rng: np.random.Generator) -> Bytes:
        """Add fresh noise."""
        noise = self.mechanism.noise
        return noise_rows(self.bits, self.mechanism.width, Response(noise.p, noise.q), rng)


class BitPart(PartSimulator[B]):
    """Any mechanism that reports bits: which of them an answer sets is asked once per cohort."""

    def keep(self, clients: Clients, rng: np.random.Generator) -> KeptBits:
        flip = self.mechanism.noise.flip
        if clients.secrets is None:
            bits = self._encoded(clients, UNCHANGED.after_permanent(flip), rng)
        else:
            bits = self._encoded(clients, UNCHANGED, rng)
            bits = self._permanent(bits, clients, clients.secrets) if flip else bits
        return KeptBits(self.mechanism, bits)

    def once(self, clients: Clients, rng: np.random.Generator) -> Bytes:
        noise = self.mechanism.noise
        return self._encoded(clients, Response(noise.p, noise.q).after_permanent(noise.flip), rng)

    def _encoded(self, clients: Clients, response: Response, rng: np.random.Generator) -> Bytes:
        out = np.empty((len(clients), self.mechanism.size), np.uint8)
        for rows, piece in clients.pieces():
            places = self.positions(piece)
            encode_rows(places, self.mechanism.width, response, rng, out=out[rows])
        return out

    def _permanent(self, bits: Bytes, clients: Clients, secrets: Bytes) -> Bytes:
        """Permanent responses as the clients that hold these secrets compute them."""
        size = self.mechanism.size
        clients_bits = [
            self.mechanisms[slot].permanent(int.from_bytes(row, "little"), cohort, secret)
            for slot, cohort, row, secret in zip(
                clients.slot.tolist(),
                clients.cohort.tolist(),
                map(bytes, bits),
                map(bytes, secrets),
                strict=True,
            )
        ]
        packed = b"".join(row.to_bytes(size, "little") for row in clients_bits)
        return np.frombuffer(packed, np.uint8).reshape(bits.shape)

    def positions(self, clients: Clients) -> BitPositions:
        """Which bits the clients' answers set before any noise."""
        return BitPositions(self.row(clients).astype(np.int32), clients.cohort, self._table)

    @cached_property
    def _table(self) -> Int32s:
        """int32[cohorts, slots × answers, most bits], slot after slot, padded with −1."""
        sets = [
            [
                _set_bits(mechanism.filter(token, cohort))
                for mechanism, tokens in zip(self.mechanisms, self.tokens, strict=True)
                for token in tokens
            ]
            for cohort in range(self.mechanism.cohorts)
        ]
        most = max((len(places) for row in sets for places in row), default=0)
        padded = [[places + [NO_ANSWER] * (most - len(places)) for places in row] for row in sets]
        return np.array(padded, np.int32).reshape(len(sets), len(sets[0]), most)


class BloomPart(BitPart[Bloom]):
    """Bloom filters: each answer is hashed once, whatever the number of cohorts."""

    def positions(self, clients: Clients) -> BitPositions:
        m = self.mechanism
        if m.scheme is not DENIABLE_1:
            return super().positions(clients)
        row = self.row(clients)
        table = row_positions(*self._pairs, row, clients.cohort, m.hashes, m.bits)
        own_row = np.arange(len(clients), dtype=np.int32)
        return BitPositions(own_row, np.zeros(len(clients), np.uint16), table[np.newaxis])

    @cached_property
    def _pairs(self) -> tuple[Words, Words]:
        return slot_pairs([m.header for m in self.mechanisms], self.tokens)


def slot_pairs(headers: Sequence[bytes], tokens: Sequence[Sequence[bytes]]) -> tuple[Words, Words]:
    """The hash pairs of every slot's tokens, slot after slot."""
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
    """The positions of a number's set bits.

    >>> _set_bits(0b1010)
    [1, 3]
    """
    return [i for i in range(bits.bit_length()) if bits >> i & 1]
