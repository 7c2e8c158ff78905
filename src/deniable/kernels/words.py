"""Packed bits as 64-bit words.

Bit i of a report is bit i % 8, least significant first, of byte i // 8. A report of k bits takes
B = ceil(k / 8) bytes; its padding bits are 0. Word w holds bits 64w to 64w + 63.
"""

from typing import Any

import numpy as np

from deniable.errors import InputError
from deniable.kernels.array_types import Bytes, Words
from deniable.kernels.compiled import inlined, read_only

MAX_WIDTH = 65536
"""Maximum number of bits of a report."""


def byte_width(k: int) -> int:
    """Return B, the number of bytes of a report of k bits.

    >>> byte_width(12)
    2
    """
    if not 1 <= k <= MAX_WIDTH:
        raise InputError(f"a report has 1 to {MAX_WIDTH} bits, got {k}")
    return (k + 7) // 8


def check_packed(bits: Bytes, k: int, name: str = "bits") -> Bytes:
    """Return packed reports as read-only contiguous u8[N, B], or raise if they are not k bits."""
    width = byte_width(k)
    if bits.dtype != np.uint8 or bits.ndim != 2 or bits.shape[1] != width:
        raise InputError(
            f"{name} must be uint8[N, {width}] for {k} bits, got {bits.dtype}{list(bits.shape)}; "
            "pack bits with numpy.packbits(bitorder='little')"
        )
    return read_only(bits, np.uint8)


def as_words(bits: Bytes) -> Words:
    """Return packed rows as words u64[N, ceil(B / 8)]: a view where possible, or a padded copy."""
    rows, width = bits.shape
    words = (width + 7) // 8
    if width % 8 == 0 and bits.ctypes.data % 8 == 0 and bits.flags.c_contiguous:
        return bits.view("<u8")
    if width in (1, 2, 4) and bits.flags.c_contiguous:
        return read_only(bits.view(f"<u{width}"), np.uint64)
    padded = np.zeros((rows, 8 * words), dtype=np.uint8)
    padded[:, :width] = bits
    return read_only(padded.view("<u8"), np.uint64)


@inlined
def population_count(word: Any) -> Any:
    """Return the number of ones in a word: the compiler emits the processor's own instruction.

    It recognises these sums over neighbouring groups of 1, 2, 4 and 8 bits (Hacker's Delight,
    figure 5-2).
    """
    word -= (word >> np.uint64(1)) & np.uint64(0x5555555555555555)
    pairs = np.uint64(0x3333333333333333)
    word = (word & pairs) + ((word >> np.uint64(2)) & pairs)
    word = (word + (word >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
    return (word * np.uint64(0x0101010101010101)) >> np.uint64(56)


@inlined
def load_word(data: Bytes, start: int, stop: int) -> np.uint64:
    """Return bytes [start, start + 8) of flat data as a little-endian word, zeros from `stop` on.

    The data are flat because numba counts references to every row of a matrix that it slices.
    """
    word = np.uint64(0)
    if stop - start >= 8:
        for byte in range(8):
            word |= np.uint64(data[np.uint64(start + byte)]) << np.uint64(8 * byte)
    else:
        for byte in range(stop - start):
            word |= np.uint64(data[np.uint64(start + byte)]) << np.uint64(8 * byte)
    return word


@inlined
def store_word(data: Bytes, start: int, stop: int, word: np.uint64) -> None:
    """Write a word to bytes [start, start + 8) of flat data, nothing from `stop` on."""
    if stop - start >= 8:
        for byte in range(8):
            data[np.uint64(start + byte)] = np.uint8(word >> np.uint64(8 * byte))
    else:
        for byte in range(stop - start):
            data[np.uint64(start + byte)] = np.uint8(word >> np.uint64(8 * byte))


@inlined
def width_mask(k: int, word: int) -> np.uint64:
    """Return a mask of the bits of word number `word` that belong to a report of k bits."""
    left = k - 64 * word
    if left >= 64:
        return np.uint64(0xFFFFFFFFFFFFFFFF)
    return (np.uint64(1) << np.uint64(left)) - np.uint64(1)
