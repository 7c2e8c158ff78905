"""Bloom filter positions of many values in every cohort.

One SHA-256 per value gives a pair (x, y). Cohort c and hash j use the (c h + j + 1)-th element of
the sequence x + i y, mixed to 64 random-looking bits. So a position takes a few multiplications
instead of one hash.
"""

from collections.abc import Callable

import numpy as np

from deniable.errors import InputError
from deniable.kernels.array_types import Bytes, Int32s, Int64s, UInt16s, UInt32s, Words
from deniable.kernels.chunks import RANGES_PER_THREAD, over_threads, split_range, thread_count
from deniable.kernels.compiled import compiled, inlined, read_only
from deniable.kernels.hashing.row_blocks import MAX_LENGTH, row_pairs
from deniable.kernels.hashing.sha256 import sha256_rows

HEADER_BYTES = 32
ROWS_PER_CHUNK = 1 << 14
MAX_PLACES = 1 << 30
"""Maximum number of bits of a filter, or of cells of a local hash."""


def hash_pairs(
    header: bytes, data: Bytes, offsets: Int64s, *, threads: int | None = None
) -> tuple[Words, Words]:
    """Hash values of any lengths: value i is data[offsets[i] : offsets[i + 1]].

    header : 32 bytes; data : u8[any]; offsets : int64[V + 1], ascending
    Returns x and y, u64[V] each: the first and second 8 bytes of the digest, little-endian; y is
    made odd.

    >>> text = np.frombuffer(b"appleplum", dtype=np.uint8)
    >>> x, y = hash_pairs(bytes(32), text, np.array([0, 5, 9]))
    >>> len(x), bool((y % 2 == 1).all())
    (2, True)
    """
    if offsets.ndim != 1 or len(offsets) < 1:
        raise InputError(f"offsets must be int64[V + 1], got shape {list(offsets.shape)}")
    return _pairs(header, data, offsets[:-1], np.diff(offsets), threads)


def hash_row_pairs(
    header: bytes, rows: Bytes, length: int, *, threads: int | None = None
) -> tuple[Words, Words]:
    """Hash the first `length` bytes of every row of rows, u8[V, any].

    Returns x and y, u64[V] each, as `hash_pairs` does.
    """
    if rows.ndim != 2 or not 0 <= length <= rows.shape[1]:
        raise InputError(
            f"rows must be [V, width] with a length of at most the width, got {list(rows.shape)} "
            f"and {length}"
        )
    if length > MAX_LENGTH:
        starts = np.arange(len(rows), dtype=np.int64) * rows.shape[1]
        return _pairs(header, rows, starts, np.full(len(rows), length), threads)
    lead, rows = _lead(header), read_only(rows, np.uint8)

    def work(start: int, stop: int, x: Words, y: Words) -> None:
        row_pairs(lead, rows[start:stop], length, x, y)

    return _in_chunks(work, len(rows), threads)


def _pairs(
    header: bytes, data: Bytes, starts: Int64s, lengths: Int64s, threads: int | None
) -> tuple[Words, Words]:
    """Return x and y of the values data[start : start + length], u64[V] each."""
    _lead(header)

    def work(start: int, stop: int, x: Words, y: Words) -> None:
        digests = sha256_rows(header, data, starts[start:stop], lengths[start:stop])
        halves = digests.view("<u8")
        x[:] = halves[:, 0]
        y[:] = halves[:, 1] | np.uint64(1)

    return _in_chunks(work, len(starts), threads)


def _lead(header: bytes) -> UInt32s:
    """u32[8]: the header as words, if it has the right length."""
    if len(header) != HEADER_BYTES:
        raise InputError(f"the header must have {HEADER_BYTES} bytes, got {len(header)}")
    return np.frombuffer(header, ">u4").astype(np.uint32)


def _in_chunks(
    work: Callable[[int, int, Words, Words], None], count: int, threads: int | None
) -> tuple[Words, Words]:
    """Return x and y, u64[count] each, which work(start, stop, x, y) writes for each range."""
    x, y = np.empty(count, np.uint64), np.empty(count, np.uint64)

    def part(start: int, stop: int) -> None:
        work(start, stop, x[start:stop], y[start:stop])

    over_threads(part, split_range(count, -(-count // ROWS_PER_CHUNK)), thread_count(threads))
    return x, y


@inlined
def place_of(z: np.uint64, k: np.uint64) -> np.uint64:
    """Return the place in 0..k - 1 of a 64-bit word, mixed as by SplitMix64.

    Steele, Lea and Flood (2014); the upper 32 bits of the mixed word are scaled to k places.
    """
    z ^= z >> np.uint64(30)
    z *= np.uint64(0xBF58476D1CE4E5B9)
    z ^= z >> np.uint64(27)
    z *= np.uint64(0x94D049BB133111EB)
    z ^= z >> np.uint64(31)
    return ((z >> np.uint64(32)) * k) >> np.uint64(32)


def _check_places(k: int) -> None:
    """Raise InputError if the number of places is not supported."""
    if not 1 <= k <= MAX_PLACES:
        raise InputError(f"the number of places must be 1 to {MAX_PLACES}, got {k}")


@compiled
def _positions(x: Words, y: Words, k: np.uint64, first: int, out: Int32s) -> None:
    """Fill out int32[cohorts, V, hashes] with positions; first : number of the first cohort."""
    cohorts, values, hashes = out.shape
    flat = out.reshape(-1)
    for cohort in range(cohorts):
        for value in range(values):
            z = x[value] + np.uint64((first + cohort) * hashes) * y[value]
            for j in range(hashes):
                z += y[value]
                place = np.int32(place_of(z, k))
                flat[np.uint64((cohort * values + value) * hashes + j)] = place


def bloom_positions(
    x: Words, y: Words, cohorts: int, hashes: int, k: int, *, threads: int | None = None
) -> Int32s:
    """Return the bits that every value sets in every cohort, int32[cohorts, V, hashes].

    x, y : u64[V] of `hash_pairs`

    >>> bloom_positions(np.array([1], np.uint64), np.array([3], np.uint64), 2, 2, 128).shape
    (2, 1, 2)
    """
    _check_places(k)
    if cohorts < 1 or hashes < 1:
        raise InputError(
            f"the numbers of cohorts and hashes must be at least 1, got {cohorts} and {hashes}"
        )
    if x.shape != y.shape or x.ndim != 1 or x.dtype != np.uint64 or y.dtype != np.uint64:
        raise InputError(f"x and y must be uint64[V], got {list(x.shape)} and {list(y.shape)}")
    x, y = read_only(x, np.uint64), read_only(y, np.uint64)
    out = np.empty((cohorts, len(x), hashes), dtype=np.int32)
    workers = thread_count(threads)

    def work(start: int, stop: int) -> None:
        _positions(x, y, np.uint64(k), start, out[start:stop])

    over_threads(work, split_range(cohorts, workers * RANGES_PER_THREAD), workers)
    return out


@compiled
def _row_positions(
    x: Words, y: Words, value: Int64s, cohort: UInt16s, k: np.uint64, out: Int32s
) -> None:
    """Fill out int32[N, hashes] with the positions of each report."""
    rows, hashes = out.shape
    flat = out.reshape(-1)
    for row in range(rows):
        chosen = value[row]
        step, z = np.uint64(0), np.uint64(0)
        if chosen >= 0:
            step = y[chosen]
            z = x[chosen] + np.uint64(int(cohort[row]) * hashes) * step
        for j in range(hashes):
            z += step
            place = np.int32(place_of(z, k)) if chosen >= 0 else np.int32(-1)
            flat[np.uint64(row * hashes + j)] = place


def row_positions(
    x: Words, y: Words, value: Int64s, cohort: UInt16s, hashes: int, k: int
) -> Int32s:
    """Return the bits that the value of each report sets in its cohort, int32[N, hashes].

    x, y : u64[V] of `hash_pairs`; value : int64[N], index into them, -1 for no answer, whose
    positions are -1; cohort : u16[N]
    Unlike `bloom_positions`, it does not compute all pairs of values and cohorts.
    """
    _check_places(k)
    if value.shape != cohort.shape or (
        value.size and not -1 <= value.min() <= value.max() < len(x)
    ):
        raise InputError(
            f"every report needs one cohort and one value in -1..{len(x) - 1}, got shapes "
            f"{list(cohort.shape)} and {list(value.shape)}"
        )
    out = np.empty((len(value), hashes), dtype=np.int32)
    _row_positions(
        read_only(x, np.uint64),
        read_only(y, np.uint64),
        read_only(value, np.int64),
        read_only(cohort, np.uint16),
        np.uint64(k),
        out,
    )
    return out
