"""Compiled counters of bits: one byte per bit and stratum, eight bytes to a word.

Reports need no sorting. The word (w >> i) & 0x0101...01 holds bits i, 8 + i, ..., 56 + i of w, one
per byte. So eight shifts, masks and additions count 64 bits. They are emitted as LLVM code on
vectors of eight words, which the compiler fits to the width of the machine: written as a loop, they
take three times as long. The bytes are added to 64-bit counts before the 256th report.
"""

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from deniable.kernels.array_types import Int64s, Integers, Words
from deniable.kernels.compiled import compiled

MAX_BYTE = 255
LOWEST_BITS = 0x0101010101010101
"""Mask of the lowest bit of every byte."""
VECTOR = ir.VectorType(ir.IntType(64), 8)
LINE_BYTES = 64


def _emit_addition(_typing: Any, counters: Any, at: Any, word: Any) -> Any:
    """Return the type of the intrinsic and the function that emits its code."""

    def emit(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        array = context.make_array(signature.args[0])(context, builder, arguments[0])
        first = builder.gep(array.data, [arguments[1]])
        pointer = builder.bitcast(first, VECTOR.as_pointer())
        undefined, zero = ir.Constant(VECTOR, ir.Undefined), ir.Constant(ir.IntType(32), 0)
        lane = builder.insert_element(undefined, arguments[2], zero)
        none = ir.Constant(ir.VectorType(ir.IntType(32), 8), [0] * 8)
        copies = builder.shuffle_vector(lane, undefined, none)
        shifted = builder.lshr(copies, ir.Constant(VECTOR, list(range(8))))
        bits = builder.and_(shifted, ir.Constant(VECTOR, [LOWEST_BITS] * 8))
        # NumPy promises no more than alignment to words.
        builder.store(builder.add(builder.load(pointer, align=8), bits), pointer, align=8)
        return context.get_dummy_value()

    return types.void(counters, types.uint64, types.uint64), emit


_add_bits: Any = intrinsic(_emit_addition)
"""Add the 64 bits of a word to 64 counters: arguments are the counters, the first one, the word."""


def empty_counters(strata: int, words: int) -> Words:
    """Return counters of 0, u64[strata · words · 8].

    They start at a line of the cache: vectors that lie in two lines take twice the time.
    """
    size = 8 * strata * words
    array = np.zeros(size + LINE_BYTES // 8, np.uint64)
    first = -array.ctypes.data % LINE_BYTES // 8
    return array[first : first + size]


@compiled
def _flush(counters: Words, stratum: int, words: int, ones: Int64s) -> None:
    """Add the byte counters of a stratum to its 64-bit counts, and clear them."""
    for word in range(words):
        for shift in range(8):
            at = (stratum * words + word) * 8 + shift
            packed = counters[at]
            counters[at] = 0
            for byte in range(8):
                bit = 64 * word + 8 * byte + shift
                if bit < ones.shape[1]:
                    count = (packed >> np.uint64(8 * byte)) & np.uint64(MAX_BYTE)
                    ones[stratum, bit] += np.int64(count)


@compiled
def add_reports(
    reports: Words, stratum: Integers, counters: Words, totals: Int64s, ones: Int64s
) -> None:
    """Add reports u64[N, words] to the counters of their strata.

    counters : of `empty_counters`; totals : int64[2, strata], reports that are in the counters, and
    that were; ones : int64[strata, k], to which full counters are added
    """
    rows, words = reports.shape
    flat = reports.reshape(-1)
    inside, before = totals[0], totals[1]
    for row in range(rows):
        # Unsigned indices, because numba checks whether signed ones are negative.
        s = np.uint64(stratum[row])
        if words == 2:  # the usual width: the compiler makes a loop of its own for it
            _add_bits(counters, s * np.uint64(16), flat[np.uint64(2 * row)])
            _add_bits(counters, s * np.uint64(16) + np.uint64(8), flat[np.uint64(2 * row + 1)])
        else:
            for word in range(words):
                at = (s * np.uint64(words) + np.uint64(word)) * np.uint64(8)
                _add_bits(counters, at, flat[np.uint64(row * words + word)])
        inside[s] += 1
        if inside[s] == MAX_BYTE:
            _flush(counters, int(s), words, ones)
            before[s] += MAX_BYTE
            inside[s] = 0


@compiled
def add_counters(counters: Words, words: int, ones: Int64s) -> None:
    """Add the byte counters of all strata to the counts."""
    for s in range(ones.shape[0]):
        _flush(counters, s, words, ones)
