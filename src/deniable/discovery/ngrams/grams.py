"""The grams that are possible at a position, and which of them fit into one string.

A gram is n symbols: characters, OTHER for a character outside the alphabet, and, after the end of
the string, PAD and nothing else.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from deniable.discovery.shared.strings import Rows
from deniable.errors import InputError
from deniable.kernels.array_types import Int32s, Mask
from deniable.kernels.hashing.lines import digits_of
from deniable.kernels.hashing.positions import bloom_positions, hash_row_pairs
from deniable.mechanisms import Bloom, Mechanism
from deniable.mechanisms.schemes import DENIABLE_1
from deniable.protocols import NGrams
from deniable.protocols.alphabet import OTHER, PAD

MAX_GRAMS = 1 << 25
"""Possible grams of a position."""
Pair = tuple[int, int]


def bloom(mechanism: Mechanism) -> Bloom:
    """Return the mechanism of a part, which must be a Bloom filter."""
    if not isinstance(mechanism, Bloom):
        raise InputError(
            f"n-grams are decoded from Bloom filters only; the survey has {mechanism.kind!r}"
        )
    return mechanism


def gram_mechanisms(protocol: NGrams) -> tuple[Bloom, ...]:
    """Return the mechanism of each gram part; all have one width, hashes and cohorts."""
    mechanisms = tuple(map(bloom, protocol.grams))
    if len({(m.bits, m.hashes, m.cohorts) for m in mechanisms}) != 1:
        raise InputError("all n-gram reports must have the same number of bits, hashes and cohorts")
    return mechanisms


def row_bits(mechanism: Bloom, rows: Rows) -> Int32s:
    """int32[cohorts, rows, h]: bits that each row of symbols sets in each cohort of one slot."""
    if mechanism.scheme_name == DENIABLE_1.name:
        x, y = hash_row_pairs(mechanism.header, rows, rows.shape[1])
        return bloom_positions(x, y, mechanism.cohorts, mechanism.hashes, mechanism.bits)
    tokens = [row.tobytes() for row in rows]
    bits = [[mechanism.positions(t, c) for t in tokens] for c in range(mechanism.cohorts)]
    return np.array(bits, np.int32).reshape(mechanism.cohorts, len(rows), mechanism.hashes)


def gram_count(protocol: NGrams) -> int:
    """Return the number of grams that are possible at a position."""
    content = _content(protocol)
    return sum(len(content) ** i for i in range(protocol.gram + 1))


def gram_blocks(protocol: NGrams, rows: int = 1 << 18) -> Iterator[Rows]:
    """Yield every gram in blocks, uint8[., n]: full grams first, then those that end in PAD."""
    total = gram_count(protocol)
    if total > MAX_GRAMS:
        raise InputError(
            f"the survey has {total:,} possible n-grams, more than the {MAX_GRAMS:,} that can be "
            "decoded: choose shorter n-grams or a smaller alphabet"
        )
    content = np.frombuffer(_content(protocol), np.uint8)
    for length in range(protocol.gram, -1, -1):
        count = len(content) ** length
        for start in range(0, count, rows):
            number = np.arange(start, min(start + rows, count), dtype=np.int64)
            block = np.full((len(number), protocol.gram), PAD, np.uint8)
            block[:, :length] = content[digits_of(number, len(content), length)[:, ::-1]]
            yield block


def compatible(protocol: NGrams, g: int, h: int, left: Rows, right: Rows) -> Mask:
    """bool[len(left), len(right)]: which grams at positions g < h fit into one string.

    Symbols that both cover must agree, and nothing may follow the end of a string.
    """
    n = protocol.gram
    shift = protocol.start(h) - protocol.start(g)
    fits = np.ones((len(left), len(right)), bool)
    for j in range(max(n - shift, 0)):
        fits &= left[:, shift + j][:, None] == right[:, j][None, :]
    ended = left[:, -1] == PAD
    goes_on = right[:, max(n - shift, 0) :] != PAD
    fits &= ~(ended[:, None] & goes_on.any(axis=1)[None, :])
    return fits


def assemble(protocol: NGrams, grams: list[Rows]) -> Rows:
    """Return strings, uint8[C, M], from their grams at each position, uint8[C, n] each."""
    rows = np.full((len(grams[0]), protocol.max_length), PAD, np.uint8)
    for g, block in enumerate(grams):
        start = protocol.start(g)
        rows[:, start : start + protocol.gram] = block
    return rows


def _content(protocol: NGrams) -> bytes:
    """Return every symbol of a string; OTHER does not occur in an alphabet of bytes."""
    content = protocol.alphabet.content
    return content if protocol.alphabet.characters is None else content + bytes([OTHER])
