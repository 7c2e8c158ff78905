"""Reports files of google/rappor, written from packed bits: the reverse of `text`."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deniable.errors import InputError
from deniable.kernels.chunks import PIECES_PER_THREAD, over_threads, spans, thread_count
from deniable.kernels.compiled import compiled, inlined, read_only
from deniable.kernels.words import check_packed, store_word

COMMA, ZERO = 44, 48
MOST_DIGITS = 20
LOW_BITS = np.uint64(0x0101010101010101)
ONE_BIT_EACH = np.uint64(0x0102040810204080)
CARRIES = np.uint64(0x7F7F7F7F7F7F7F7F)
ZEROS = np.uint64(0x3030303030303030)


@inlined
def _write_number(out: NDArray[np.uint8], at: int, value: int) -> int:
    """Write a number in decimal from out[at] on; return where it ends."""
    magnitude = np.uint64(value)
    if value < 0:
        out[at] = 45
        at += 1
        magnitude = np.uint64(0) - magnitude
    digits, rest = 1, magnitude // np.uint64(10)
    while rest:
        digits += 1
        rest //= np.uint64(10)
    for place in range(at + digits - 1, at - 1, -1):
        out[place] = ZERO + magnitude % np.uint64(10)
        magnitude //= np.uint64(10)
    return at + digits


@inlined
def _write_bits(
    packed: NDArray[np.uint8], byte: int, width: int, out: NDArray[np.uint8], at: int
) -> None:
    """Write packed bits from packed[byte] on as `width` characters, most significant first."""
    end = at + width
    for i in range(width // 8):
        # Eight copies of the byte, one bit kept in each; any bit becomes 1 by carrying into bit 7.
        x = (np.uint64(packed[np.uint64(byte + i)]) * LOW_BITS) & ONE_BIT_EACH
        x = ((x + CARRIES) >> np.uint64(7)) & LOW_BITS
        store_word(out, end - 8 * (i + 1), end - 8 * i, x | ZEROS)
    for bit in range(8 * (width // 8), width):
        value = packed[np.uint64(byte + (bit >> 3))] >> np.uint8(bit & 7)
        out[np.uint64(end - 1 - bit)] = ZERO + (value & 1)


@compiled
def _write_numbers(
    values: NDArray[np.int64], out: NDArray[np.uint8], lengths: NDArray[np.int64]
) -> None:
    flat, pitch = out.reshape(-1), out.shape[1]
    for row in range(values.shape[0]):
        lengths[row] = _write_number(flat, row * pitch, values[row]) - row * pitch


@compiled
def _write_lines(
    client: NDArray[np.uint8],
    client_length: NDArray[np.int64],
    cohort: NDArray[np.uint16],
    bits: NDArray[np.uint8],
    widths: NDArray[np.int64],
    newline: NDArray[np.uint8],
    ends: NDArray[np.int64],
    out: NDArray[np.uint8],
) -> None:
    """Write lines side by side: row i ends at out[ends[i]]. Columns of `bits` are side by side."""
    packed, pitch = bits.reshape(-1), bits.shape[1]
    fixed = newline.shape[0]
    for column in range(widths.shape[0]):
        fixed += widths[column] + 1
    for row in range(client.shape[0]):
        digits = 1 + (cohort[row] > 9) + (cohort[row] > 99) + (cohort[row] > 999)
        digits += cohort[row] > 9999
        at = ends[row] - fixed - digits - 1 - client_length[row]
        for place in range(client_length[row]):
            out[at + place] = client[row, place]
        at += client_length[row]
        out[at] = COMMA
        at = _write_number(out, at + 1, int(cohort[row]))
        byte = row * pitch
        for column in range(widths.shape[0]):
            width = widths[column]
            out[at] = COMMA
            at += 1
            _write_bits(packed, byte, width, out, at)
            at += width
            byte += (width + 7) // 8
        for place in range(newline.shape[0]):
            out[at + place] = newline[place]


def _client_text(clients: NDArray[Any]) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """Return client ids as characters: (u8[N, any], int64[N] lengths)."""
    if clients.dtype.kind in "iu":
        if len(clients) and clients.max() >= 1 << 63:
            raise InputError(f"expected client numbers below 2^63, got {clients.max()}")
        text = np.empty((len(clients), MOST_DIGITS), dtype=np.uint8)
        lengths = np.empty(len(clients), dtype=np.int64)
        _write_numbers(read_only(clients, np.int64), text, lengths)
        return text, lengths
    if clients.dtype.kind != "S":
        raise InputError(f"expected client ids as integers or bytes, got {clients.dtype}")
    width = clients.dtype.itemsize
    text = np.ascontiguousarray(clients).view(np.uint8).reshape(len(clients), width)
    lengths = np.char.str_len(clients).astype(np.int64)
    if (lengths == 0).any() or np.isin(text, np.frombuffer(b",\n", dtype=np.uint8)).any():
        raise InputError("expected client ids without commas or line ends and not empty")
    return text, lengths


def format_reports(
    clients: NDArray[Any],
    cohort: NDArray[np.uint16],
    bits: Sequence[NDArray[np.uint8]],
    widths: Sequence[int],
    *,
    names: Sequence[str] | None = None,
    newline: bytes = b"\r\n",
    threads: int | None = None,
) -> NDArray[np.uint8]:
    """Write reports as `client,cohort,bits,...` lines; the characters as u8[any], for `file.write`.

    clients : integers[N], or bytes (dtype S)[N]
    cohort : u16[N]
    bits, widths : u8[N, B] and its bits, one per column
    names : the bit columns' names for a header line; no header if not given
    Long files are best written in blocks of rows: touching fresh memory costs more than writing.

    >>> reports = np.array([[0b0110]], dtype=np.uint8)
    >>> format_reports(np.array([7]), np.array([1], np.uint16), [reports], [4]).tobytes()
    b'7,1,0110\\r\\n'
    """
    rows = len(clients)
    if not bits or len(bits) != len(widths) or (names is not None and len(names) != len(bits)):
        raise InputError(f"expected a width (and name) for each of {len(bits)} bit columns")
    packed = [check_packed(column, k) for column, k in zip(bits, widths, strict=True)]
    if len(cohort) != rows or any(len(column) != rows for column in packed):
        raise InputError(f"expected {rows} rows in every column, as there are clients")
    if cohort.dtype != np.uint16:
        raise InputError(f"expected cohorts as uint16, got {cohort.dtype}")
    if newline not in (b"\n", b"\r\n"):
        raise InputError(f"expected lines to end with \\n or \\r\\n, got {newline!r}")
    head = b"" if names is None else ",".join(["client", "cohort", *names]).encode() + newline
    text, text_lengths = _client_text(clients)
    digits = 1 + sum((cohort > most).astype(np.int64) for most in (9, 99, 999, 9999))
    fixed = 1 + sum(widths) + len(widths) + len(newline)
    ends = len(head) + np.cumsum(text_lengths + digits + fixed)
    out = np.empty(int(ends[-1]) if rows else len(head), dtype=np.uint8)
    out[: len(head)] = np.frombuffer(head, dtype=np.uint8)
    side_by_side = read_only(np.concatenate(packed, axis=1), np.uint8)
    layout = np.array(widths, dtype=np.int64)
    ending = read_only(np.frombuffer(newline, dtype=np.uint8), np.uint8)
    cohort = read_only(cohort, np.uint16)
    text = read_only(text, np.uint8)
    workers = thread_count(threads)

    def work(start: int, stop: int) -> None:
        part = slice(start, stop)
        _write_lines(
            text[part], text_lengths[part], cohort[part], side_by_side[part], layout, ending,
            ends[part], out,
        )  # fmt: skip

    over_threads(work, spans(rows, workers * PIECES_PER_THREAD), workers)
    return out


def client_ids(
    buffer: bytes | bytearray | memoryview,
    start: NDArray[np.int64],
    length: NDArray[np.int32],
) -> NDArray[np.bytes_]:
    """Return the client ids of a parsed file as an array of bytes, dtype S.

    start, length : where they stand in the buffer, as `ParsedReports` says

    >>> client_ids(b"ann,bob", np.array([0, 4]), np.array([3, 3])).tolist()
    [b'ann', b'bob']
    """
    data = np.frombuffer(buffer, dtype=np.uint8)
    width = int(length.max()) if len(length) else 1
    text = np.zeros((len(start), width), dtype=np.uint8)
    for place in range(width):
        inside = length > place
        text[inside, place] = data[start[inside] + place]
    return text.reshape(-1).view(f"S{width}")
