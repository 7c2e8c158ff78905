"""The grams that can stand at a position, and which of them can stand in one string.

A gram is n symbols: characters, OTHER for a character outside the alphabet, and, after the end of
the string, PAD and nothing else.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from deniable.errors import InputError
from deniable.inference.marginal.design import BloomDesign
from deniable.kernels.hashing.positions import bloom_positions, hash_fixed_pairs
from deniable.mechanisms import Bloom, Mechanism
from deniable.mechanisms.schemes import DENIABLE_1
from deniable.protocols import NGrams
from deniable.protocols.alphabet import OTHER, PAD

Rows = NDArray[np.uint8]
MOST_GRAMS = 1 << 25


def check_grams(protocol: NGrams) -> Bloom:
    """The mechanism of the n-gram reports: one width, hashes and cohorts; noise may differ."""
    first = protocol.grams[0]
    same = {(m.bits, m.hashes, m.cohorts) for m in protocol.grams if isinstance(m, Bloom)}
    if len(same) != 1 or not isinstance(first, Bloom):
        raise InputError("expected n-gram reports of one width, number of hashes and cohorts")
    return first


def row_bits(mechanism: Mechanism, rows: Rows) -> NDArray[np.int32]:
    """Bits that each row of symbols sets in each cohort of one slot: int32[cohorts, rows, h]."""
    assert isinstance(mechanism, Bloom)
    if mechanism.scheme_name == DENIABLE_1.name:
        lengths = np.full(len(rows), rows.shape[1], np.int64)
        x, y = hash_fixed_pairs(mechanism.header, np.ascontiguousarray(rows), lengths)
        return bloom_positions(x, y, mechanism.cohorts, mechanism.hashes, mechanism.bits)
    tokens = [row.tobytes() for row in rows]
    found = [[mechanism.positions(t, c) for t in tokens] for c in range(mechanism.cohorts)]
    return np.array(found, np.int32).reshape(mechanism.cohorts, len(rows), mechanism.hashes)


def full_design(protocol: NGrams, rows: Rows, labels: tuple[str, ...] | None = None) -> BloomDesign:
    """Bits of whole strings, uint8[C, M], in the full-string reports: strata are cohorts."""
    mechanism = protocol.parts[0].slots[0].mechanism
    noise = mechanism.noise
    bits = row_bits(mechanism, rows)
    return BloomDesign(bits, mechanism.width, float(noise.p_star), float(noise.q_star), labels)


def gram_count(protocol: NGrams) -> int:
    """How many grams can stand at one position."""
    content = _content(protocol)
    return sum(len(content) ** i for i in range(protocol.gram + 1))


def gram_blocks(protocol: NGrams, rows: int = 1 << 18) -> Iterator[Rows]:
    """Every gram, uint8[., n], some at a time; longest first, then those that end in PAD."""
    total = gram_count(protocol)
    if total > MOST_GRAMS:
        raise InputError(
            f"expected at most {MOST_GRAMS:,} possible n-grams, got {total:,}: ask for shorter "
            "n-grams or a smaller alphabet"
        )
    content = np.frombuffer(_content(protocol), np.uint8)
    for length in range(protocol.gram, -1, -1):
        count = len(content) ** length
        for start in range(0, count, rows):
            number = np.arange(start, min(start + rows, count), dtype=np.int64)
            block = np.full((len(number), protocol.gram), PAD, np.uint8)
            for column in range(length - 1, -1, -1):
                number, digit = np.divmod(number, len(content))
                block[:, column] = content[digit]
            yield block


def compatible(protocol: NGrams, g: int, h: int, left: Rows, right: Rows) -> NDArray[np.bool_]:
    """Which grams at positions g < h can stand in one string: bool[len(left), len(right)].

    Symbols that both cover must agree, and after the end of a string it does not begin again.
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
    """Strings as rows of M symbols, from one gram row per position: grams[g] is uint8[C, n]."""
    rows = np.full((len(grams[0]), protocol.max_length), PAD, np.uint8)
    for g, block in enumerate(grams):
        start = protocol.start(g)
        rows[:, start : start + protocol.gram] = block
    return rows


def _content(protocol: NGrams) -> bytes:
    """Bytes have no OTHER: whatever they are, they are in the alphabet."""
    content = protocol.alphabet.content
    return content if protocol.alphabet.characters is None else content + bytes([OTHER])
