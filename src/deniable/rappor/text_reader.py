"""Reports files of google/rappor, read into packed bits: `client,cohort,bloom,prr,irr`.

Association files (`client,cohort,var1,var2`) are the same with other columns and widths. The
buffer is cut at line ends, and each thread reads its pieces once, eight characters at a time: with
x the eight characters as a word, x & 0x0101...01 are their bits, and one multiplication gathers
them into a byte, first character highest. The fast reader only accepts or refuses a line; why a
line is refused is said by `text_lines.check_line`.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from deniable.errors import InputError
from deniable.kernels.chunks import PIECES_PER_THREAD, over_threads, spans, thread_count
from deniable.kernels.compiled import compiled, inlined, read_only
from deniable.kernels.words import byte_width, load_word
from deniable.rappor.text_lines import LineForm, check_line, form_of, header_names

COMMA, NEWLINE, RETURN, ZERO = 44, 10, 13, 48
LOW_BITS = np.uint64(0x0101010101010101)
ZEROS = np.uint64(0x3030303030303030)
GATHER = np.uint64(0x8040201008040201)
ACCEPTED = -1


@dataclass(frozen=True)
class ParsedReports:
    """Columns of a reports file.

    names : the bit columns kept, by the header, or by position from "3" where there is none
    cohort : u16[N]
    bits : one u8[N, B] per column kept, packed
    widths : bits per column kept
    client_start, client_length : int64[N], int32[N], where each client's id stands in the buffer
    """

    names: tuple[str, ...]
    widths: tuple[int, ...]
    cohort: NDArray[np.uint16]
    bits: tuple[NDArray[np.uint8], ...]
    client_start: NDArray[np.int64]
    client_length: NDArray[np.int32]


@inlined
def _read_bits(
    data: NDArray[np.uint8], start: int, width: int, keep: bool, out: NDArray[np.uint8], at: int
) -> bool:
    """Pack `width` characters into bytes from out[at] where `keep`; False if one is no 0 or 1."""
    wrong = np.uint64(0)
    end = start + width
    for byte in range(width // 8):
        place = end - 8 * (byte + 1)
        x = load_word(data, place, place + 8) ^ ZEROS
        wrong |= x & ~LOW_BITS
        if keep:
            out[np.uint64(at + byte)] = np.uint8(((x & LOW_BITS) * GATHER) >> np.uint64(56))
    if width % 8:
        top = np.uint64(0)
        for place in range(start, start + width % 8):
            x = np.uint64(data[np.uint64(place)]) ^ np.uint64(ZERO)
            wrong |= x & ~np.uint64(1)
            top = (top << np.uint64(1)) | (x & np.uint64(1))
        if keep:
            out[np.uint64(at + width // 8)] = np.uint8(top & np.uint64(255))
    return not wrong


@inlined
def _read_cohort(data: NDArray[np.uint8], start: int, stop: int, cohorts: int) -> tuple[int, int]:
    """Read a cohort that a comma follows: (cohort, where the next field starts), -1 if wrong."""
    cohort = 0
    for place in range(start, min(start + 6, stop)):
        character = int(data[place])
        if character == COMMA and place > start:
            return (cohort if cohort < cohorts else -1), place + 1
        if not ZERO <= character < ZERO + 10:
            break
        cohort = 10 * cohort + character - ZERO
    return -1, start


@inlined
def _skip_end(data: NDArray[np.uint8], place: int, stop: int) -> int:
    """Return where the next line starts if a line may end at `place`, else -1."""
    if place < stop and data[place] == RETURN:
        place += 1
    if place == stop:
        return place
    return place + 1 if data[place] == NEWLINE else -1


@compiled
def _parse(
    data: NDArray[np.uint8],
    start: int,
    stop: int,
    widths: NDArray[np.int64],
    slots: NDArray[np.int64],
    cohorts: int,
    row: int,
    cohort: NDArray[np.uint16],
    bits: NDArray[np.uint8],
    client_start: NDArray[np.int64],
    client_length: NDArray[np.int32],
) -> tuple[int, int]:
    """Read the lines of data[start:stop] into rows from `row` on: (rows read, bad line's start).

    slots : where each column goes in a row of `bits`, -1 for columns that are only checked
    """
    first, pitch = row, bits.shape[1]
    flat = bits.reshape(-1)
    place = start
    while place < stop:
        line = place
        while place < stop and data[place] != COMMA and data[place] != NEWLINE:
            place += 1
        if place in (line, stop) or data[place] == NEWLINE:
            return row - first, line
        client_start[row] = line
        client_length[row] = place - line
        value, place = _read_cohort(data, place + 1, stop, cohorts)
        if value < 0:
            return row - first, line
        cohort[row] = value
        for column in range(widths.shape[0]):
            end = place + widths[column]
            if end > stop or not _read_bits(
                data, place, widths[column], slots[column] >= 0, flat, row * pitch + slots[column]
            ):
                return row - first, line
            place = end
            if column + 1 < widths.shape[0]:
                if place >= stop or data[place] != COMMA:
                    return row - first, line
                place += 1
        place = _skip_end(data, place, stop)
        if place < 0:
            return row - first, line
        row += 1
    return row - first, ACCEPTED


def _line_at(data: NDArray[np.uint8], start: int) -> bytes:
    """Return the line that starts at `start`, its end included."""
    step = 1 << 12
    for stop in range(start + step, len(data) + step, step):
        found = np.flatnonzero(data[stop - step : stop] == NEWLINE)
        if found.size:
            return data[start : stop - step + int(found[0]) + 1].tobytes()
    return data[start:].tobytes()


def _cuts(data: NDArray[np.uint8], start: int, pieces: int) -> list[tuple[int, int]]:
    """Cut data[start:] into about `pieces` ranges of whole lines."""
    edges = [start]
    for wanted, _ in spans(len(data) - start, pieces)[1:]:
        if start + wanted > edges[-1]:
            edges.append(start + wanted + len(_line_at(data, start + wanted)))
    edges.append(len(data))
    return [(a, b) for a, b in pairwise(edges) if a < b]


def parse_reports(
    buffer: bytes | bytearray | memoryview,
    *,
    widths: Sequence[int] | None = None,
    keep: Sequence[int] | None = None,
    cohorts: int | None = None,
    threads: int | None = None,
) -> ParsedReports:
    """Read a reports file, with or without its header line, lines ending with \\n or \\r\\n.

    widths : bits of every bit column; as the first line has them if not given
    keep : the bit columns wanted, from 0 (all are checked); all if not given
    cohorts : how many cohorts there are, if larger numbers are to be refused

    >>> text = b"client,cohort,bloom,prr,irr\\r\\n7,1,0010,0110,1110\\r\\n"
    >>> parsed = parse_reports(text, keep=[2])
    >>> parsed.names, parsed.cohort.tolist(), parsed.bits[0].tolist()
    (('irr',), [1], [[14]])
    """
    data = read_only(np.frombuffer(buffer, dtype=np.uint8), np.uint8)
    head = _line_at(data, 0)
    names = header_names(head)
    begin = 0 if names is None else len(head)
    if begin == len(data) and widths is None:
        raise InputError("expected at least one report, got none: give widths for an empty file")
    form = form_of(_line_at(data, begin), names, widths, cohorts)
    kept = tuple(range(len(form.widths))) if keep is None else tuple(keep)
    if not all(0 <= column < len(form.widths) for column in kept) or len(set(kept)) != len(kept):
        raise InputError(f"expected columns to keep in 0..{len(form.widths) - 1}, got {kept}")
    return _parse_all(data, begin, form, kept, thread_count(threads))


def _parse_all(
    data: NDArray[np.uint8], begin: int, form: LineForm, kept: tuple[int, ...], workers: int
) -> ParsedReports:
    sizes = [byte_width(form.widths[column]) for column in kept]
    edges = np.cumsum([0, *sizes])
    slots = np.full(len(form.widths), -1, dtype=np.int64)
    slots[list(kept)] = edges[:-1]
    shortest = 4 + sum(form.widths) + len(form.widths) - 1  # "c,0,bits...\n"
    pieces = _cuts(data, begin, workers * PIECES_PER_THREAD)
    # The most rows a piece can hold: read once, without counting lines first. Rows that turn out
    # not to be needed are never touched, so they take no memory.
    bases = np.cumsum([0] + [(stop - start + 1) // shortest + 1 for start, stop in pieces])
    cohort = np.empty(bases[-1], dtype=np.uint16)
    bits = np.empty((bases[-1], edges[-1]), dtype=np.uint8)
    client_start = np.empty(bases[-1], dtype=np.int64)
    client_length = np.empty(bases[-1], dtype=np.int32)
    columns = (cohort, bits, client_start, client_length)
    base_of = dict(zip(pieces, bases.tolist(), strict=False))
    widths = np.array(form.widths, dtype=np.int64)

    def work(start: int, stop: int) -> tuple[int, int]:
        base = base_of[start, stop]
        return _parse(data, start, stop, widths, slots, form.cohorts, base, *columns)

    rows = 0
    for base, (count, bad) in zip(bases, over_threads(work, pieces, workers), strict=False):
        if bad != ACCEPTED:
            raise _refusal(data, bad, form)
        if rows != base:
            for column in columns:
                column[rows : rows + count] = column[base : base + count]
        rows += count
    return ParsedReports(
        names=tuple(form.names[column] for column in kept),
        widths=tuple(form.widths[column] for column in kept),
        cohort=cohort[:rows],
        bits=tuple(np.ascontiguousarray(bits[:rows, a:b]) for a, b in pairwise(edges)),
        client_start=client_start[:rows],
        client_length=client_length[:rows],
    )


def _refusal(data: NDArray[np.uint8], start: int, form: LineForm) -> InputError:
    """Return the error that says what is wrong with the line at `start`."""
    number = 1 + int(np.count_nonzero(data[:start] == NEWLINE))
    try:
        check_line(_line_at(data, start), number, form)
    except InputError as error:
        return error
    raise AssertionError(f"line {number}: refused by the fast reader, accepted by the slow one")
