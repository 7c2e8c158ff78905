"""Permanent randomised response of many clients at once, from their secrets.

A client's own noise is a function of its secret and its answer (see `streams`), so the same client
gives the same permanent bits for ever. Few clients need all the levels their thresholds allow:
half of the undecided lanes are settled by each level, so a first pass takes as many levels as
leave one row in 32 to 64 undecided, and only those rows go on to the end.
"""

import numpy as np

from deniable.errors import InputError
from deniable.kernels.array_types import Bytes, Indices, Mask
from deniable.kernels.chunks import over_threads, spans, thread_count
from deniable.kernels.hashing.keyed_streams import keyed_streams
from deniable.kernels.noise.noisy_rows import randomise_rows
from deniable.kernels.noise.sampler import CERTAIN, Response
from deniable.kernels.words import check_packed

CHUNK_ROWS = 1 << 12


def permanent_rows(
    bits: Bytes,
    k: int,
    phi: int,
    secrets: Bytes,
    prefix: bytes,
    suffix: Bytes,
    *,
    threads: int | None = None,
) -> Bytes:
    """Return every client's permanent bits, as its own client computes them.

    bits : u8[N, B], packed Bloom bits of width k
    phi : threshold of f/2, in 0..2^31
    secrets : u8[N, 32]
    prefix, suffix : each row's message is prefix ‖ its suffix, u8[N, any]
    Returns u8[N, B].

    >>> who = np.arange(64, dtype=np.uint8).reshape(2, 32)
    >>> answer = np.array([[1], [2]], dtype=np.uint8)
    >>> once = permanent_rows(answer, 8, 1 << 30, who, b"survey", answer)
    >>> bool((once == permanent_rows(answer, 8, 1 << 30, who, b"survey", answer)).all())
    True
    """
    bits = check_packed(bits, k)
    if not 0 <= phi <= CERTAIN // 2:
        raise InputError(f"expected phi (f/2) in 0..2^31, got {phi}")
    if secrets.ndim != 2 or len(secrets) != len(bits):
        raise InputError(
            f"expected one secret for each of {len(bits)} reports, got {list(secrets.shape)}"
        )
    response, width = Response(phi, CERTAIN - phi), bits.shape[1]
    levels = response.levels
    first = min(levels, k.bit_length() + 5)
    out = np.empty(bits.shape, dtype=np.uint8)

    def settle(rows: Indices, depth: int) -> tuple[Bytes, Mask]:
        stream = keyed_streams(secrets[rows], prefix, suffix[rows], depth * width)
        return randomise_rows(bits[rows], k, response, stream)

    def work(start: int, stop: int) -> None:
        rows = np.arange(start, stop)
        settled, undecided = settle(rows, first)
        if undecided.any():
            settled[undecided], _ = settle(rows[undecided], levels)
        out[start:stop] = settled

    over_threads(work, spans(len(bits), -(-len(bits) // CHUNK_ROWS)), thread_count(threads))
    return out
