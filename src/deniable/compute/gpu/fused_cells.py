"""Hash strings and sum table entries at their cells, in one Triton kernel.

The results are those of `compute.cpu.screening.hashed_sums`. Whole-array operations would need
thousands of passes for the sixty-four rounds of SHA-256; in this kernel every lane has its string
in registers.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import triton
import triton.language as tl

from deniable.compute.gpu.tensors import Tensor, to_device, torch
from deniable.kernels.hashing.sha256 import ROUND, START

BLOCK = 64
"""Bytes of one block of SHA-256."""
LANES = 128
WARPS = 4

# mypy: disable-error-code="no-untyped-call, no-untyped-def, assignment, misc"
# ruff: noqa: RUF005


def _turned(x, by: tl.constexpr):
    """Return a word rotated to the right."""
    return (x >> by) | (x << (32 - by))


def _swapped(x):
    """Return a word with its four bytes in reverse order, as 64 bits."""
    pairs = ((x & 0x00FF00FF) << 8) | ((x >> 8) & 0x00FF00FF)
    return ((pairs << 16) | (pairs >> 16)).to(tl.uint64)


def _summed(
    words_at, round_at, start_at, tables_at, out_at, count, blocks, families, cells,
    LANES: tl.constexpr,
):  # fmt: skip
    """Write for LANES strings the sum of table entries at their cells."""
    lane = tl.program_id(0) * LANES + tl.arange(0, LANES)
    there = lane < count
    at = lane.to(tl.int64)
    zero = tl.zeros((LANES,), dtype=tl.uint32)
    s0, s1, s2, s3 = (
        zero + tl.load(start_at), zero + tl.load(start_at + 1),
        zero + tl.load(start_at + 2), zero + tl.load(start_at + 3),
    )  # fmt: skip
    s4, s5, s6, s7 = (
        zero + tl.load(start_at + 4), zero + tl.load(start_at + 5),
        zero + tl.load(start_at + 6), zero + tl.load(start_at + 7),
    )  # fmt: skip
    for block in range(blocks):
        a, b, c, d, e, f, g, h = s0, s1, s2, s3, s4, s5, s6, s7
        w = ()
        for i in tl.static_range(16):
            w = w + (tl.load(words_at + (block * 16 + i) * count + at, mask=there, other=0),)
        for turn in range(4):
            for i in tl.static_range(16):
                word = w[0]
                high = _turned(e, 6) ^ _turned(e, 11) ^ _turned(e, 25)
                constant = tl.load(round_at + turn * 16 + i)
                first = h + high + (g ^ (e & (f ^ g))) + constant + word
                low = _turned(a, 2) ^ _turned(a, 13) ^ _turned(a, 22)
                second = low + ((a & b) | (c & (a | b)))
                h, g, f, e, d, c, b, a = g, f, e, d + first, c, b, a, first + second
                # The last sixteen words of the message schedule are not used.
                early, late = w[1], w[14]
                small = _turned(early, 7) ^ _turned(early, 18) ^ (early >> 3)
                large = _turned(late, 17) ^ _turned(late, 19) ^ (late >> 10)
                w = w[1:] + (word + small + w[9] + large,)
        s0, s1, s2, s3 = s0 + a, s1 + b, s2 + c, s3 + d
        s4, s5, s6, s7 = s4 + e, s5 + f, s6 + g, s7 + h
    x = _swapped(s0) | (_swapped(s1) << 32)
    y = _swapped(s2) | (_swapped(s3) << 32) | 1
    total = tl.zeros((LANES,), dtype=tl.float32)
    for family in range(families):
        x += y
        z = x ^ (x >> 30)
        z *= 0xBF58476D1CE4E5B9
        z ^= z >> 27
        z *= 0x94D049BB133111EB
        z ^= z >> 31
        cell = ((z >> 32) * cells) >> 32
        total += tl.load(tables_at + family * cells + cell.to(tl.int32), mask=there, other=0.0)
    tl.store(out_at + at, total, mask=there)


# A Triton kernel looks up the functions that it calls among the names of its module.
_turned, _swapped = triton.jit(_turned), triton.jit(_swapped)
_kernel: Any = triton.jit(_summed)


def hashed_sums(header: bytes, rows: Tensor, length: int, tables: Tensor) -> Tensor:
    """Return the evidence float32[n] for rows u8[n, M] and tables float32[C, K].

    See `compute.screening.ScreeningKernels.evidence`.
    """
    t, where = torch(), rows.device
    words = _messages(header, rows, length)
    out = t.empty(len(rows), dtype=t.float32, device=where)
    families, cells = tables.shape
    constants = [to_device(each.view("int32"), where).view(t.uint32) for each in (ROUND, START)]
    _kernel[(triton.cdiv(len(rows), LANES),)](
        words, *constants, tables.contiguous(), out, len(rows), len(words) // 16, families, cells,
        LANES=LANES, num_warps=WARPS,
    )  # fmt: skip
    return out


def _messages(header: bytes, rows: Tensor, length: int) -> Tensor:
    """Return the messages with the padding of SHA-256 as words, uint32[words, n]."""
    t, size = torch(), len(header) + length
    whole = -(-(size + 9) // BLOCK) * BLOCK
    ending = np.zeros(whole - size, np.uint8)
    ending[0] = 0x80
    ending[-8:] = np.frombuffer((8 * size).to_bytes(8, "big"), np.uint8)
    before, after = (
        to_device(part, rows.device).expand(len(rows), -1)
        for part in (np.frombuffer(header, np.uint8), ending)
    )
    text = t.cat([before, rows[:, :length], after], dim=1).view(len(rows), whole // 4, 4)
    # Little-endian machines read the first byte as the lowest.
    return text.flip(2).contiguous().view(t.uint32)[:, :, 0].T.contiguous()
