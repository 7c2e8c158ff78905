"""SHA-256 of many short strings, and the numbers that cells follow from, on tensors.

As `kernels.hashing.sha256` and `kernels.hashing.positions`, result for result. Words of 32 bits are
kept in int64: a word beside itself, x·(2³² + 1), turns a rotation into a shift, and sums are cut to
32 bits once.
"""

from __future__ import annotations

import numpy as np

from deniable.compute.gpu.tensors import Tensor, placed, torch
from deniable.kernels.hashing.sha256 import ROUND, START

MASK = 0xFFFFFFFF
BLOCK = 64
"""Bytes that are compressed together."""


def seeds(header: bytes, rows: Tensor, length: int) -> tuple[Tensor, Tensor]:
    """Of header + row[:length] for every row u8[n, M]: the digest's first and second 8 bytes.

    int64[n] each, little-endian as two's complement, the second made odd; as
    `kernels.hashing.positions.hash_fixed_pairs`.
    """
    words = _message(header, rows, length)
    state = [torch().full_like(words[0][:, 0], int(start)) for start in START]
    for block in words:
        state = _compressed(state, block)
    x, y = (_swapped(state[i]) | (_swapped(state[i + 1]) << 32) for i in (0, 2))
    return x, y | 1


def mixed(z: Tensor) -> Tensor:
    """The upper 32 bits of `kernels.hashing.positions.mix64`, of int64[n]."""
    z = z ^ _down(z, 30)
    z = z * _signed(0xBF58476D1CE4E5B9)
    z = z ^ _down(z, 27)
    z = z * _signed(0x94D049BB133111EB)
    return _down(z ^ _down(z, 31), 32)


def _message(header: bytes, rows: Tensor, length: int) -> list[Tensor]:
    """The padded message as int64[n, 16], block by block."""
    text = _padded(header, rows, length)
    words = sum(text[:, :, byte].long() << (24 - 8 * byte) for byte in range(4))
    return list(words.split(16, dim=1))


def messages(header: bytes, rows: Tensor, length: int) -> Tensor:
    """The padded messages word by word, uint32[words, n]."""
    t = torch()
    # Little-endian machines read the first byte as the lowest.
    text = _padded(header, rows, length).flip(2).contiguous()
    return text.view(t.uint32)[:, :, 0].T.contiguous()


def _padded(header: bytes, rows: Tensor, length: int) -> Tensor:
    """u8[n, words, 4]: every message with the ending that SHA-256 gives it."""
    t, size = torch(), len(header) + length
    whole = -(-(size + 9) // BLOCK) * BLOCK
    ending = np.zeros(whole - size, np.uint8)
    ending[0] = 0x80
    ending[-8:] = np.frombuffer((8 * size).to_bytes(8, "big"), np.uint8)
    lead = placed(np.frombuffer(header, np.uint8), rows.device)
    return t.cat(
        [
            lead.expand(len(rows), -1),
            rows[:, :length],
            placed(ending, rows.device).expand(len(rows), -1),
        ],
        dim=1,
    ).view(len(rows), whole // 4, 4)


def _compressed(state: list[Tensor], block: Tensor) -> list[Tensor]:
    """FIPS 180-4, 6.2.2."""
    w = [block[:, i].contiguous() for i in range(16)]
    a, b, c, d, e, f, g, h = state
    for i, constant in enumerate(ROUND):
        if i >= 16:
            w[i % 16] = _scheduled(w, i)
        first = _turned(e, 6, 11, 25) + (g ^ (e & (f ^ g))) + h + w[i % 16] + int(constant)
        second = _turned(a, 2, 13, 22) + ((a & b) | (c & (a | b)))
        h, g, f, e, d, c, b, a = g, f, e, (d + first) & MASK, c, b, a, (first + second) & MASK
    return [(old + new) & MASK for old, new in zip(state, (a, b, c, d, e, f, g, h), strict=True)]


def _scheduled(w: list[Tensor], i: int) -> Tensor:
    early, late = w[(i + 1) % 16], w[(i + 14) % 16]
    small = (_turned(early, 7, 18) ^ (early >> 3)) & MASK
    large = (_turned(late, 17, 19) ^ (late >> 10)) & MASK
    return (w[i % 16] + small + w[(i + 9) % 16] + large) & MASK


def _turned(x: Tensor, *by: int) -> Tensor:
    """Rotations to the right, exclusive-or of them; the upper 32 bits are of no meaning."""
    doubled = x | (x << 32)
    out = doubled >> by[0]
    for shift in by[1:]:
        out = out ^ (doubled >> shift)
    return out & MASK


def _down(z: Tensor, by: int) -> Tensor:
    """An unsigned shift of int64."""
    return (z >> by) & ((1 << (64 - by)) - 1)


def _swapped(word: Tensor) -> Tensor:
    """The four bytes of a word the other way round."""
    pairs = ((word & 0x00FF00FF) << 8) | ((word >> 8) & 0x00FF00FF)
    return ((pairs & 0xFFFF) << 16) | (pairs >> 16)


def _signed(word: int) -> int:
    return word - (1 << 64) if word >> 63 else word
