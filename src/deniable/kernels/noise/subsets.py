"""Random subsets of a fixed size that contain one category with a given probability.

The distribution is that of `mechanisms.subset`, up to 2⁻³² of a probability. Members are drawn by
Floyd's algorithm (Bentley and Floyd, 1987), with one random number each. As all noise of simulated
crowds, they protect nobody.
"""

import numpy as np

from deniable.errors import InputError
from deniable.kernels.array_types import Bytes, Int32s, Words
from deniable.kernels.chunks import RANGES_PER_THREAD, over_threads, split_range, thread_count
from deniable.kernels.compiled import compiled, read_only
from deniable.kernels.noise.sampler import CERTAIN, chunk_rows, next_word
from deniable.kernels.words import byte_width


@compiled
def _draw_subsets(
    own: Int32s, categories: int, members: int, threshold: np.uint64, seed: Words, out: Bytes
) -> None:
    """Draw one subset per client; seed : u64[4]."""
    one, half = np.uint64(1), np.uint64(32)
    state = (seed[0], seed[1], seed[2], seed[3])
    for row in range(own.shape[0]):
        for byte in range(out.shape[1]):
            out[row, byte] = 0
        word, state = next_word(state)
        others = members
        if word >> half < threshold:
            out[row, own[row] >> 3] |= np.uint8(1 << (own[row] & 7))
            others = members - 1
        # Of the categories without the own one: for each j, draw one of 0..j, or j if that is in.
        for j in range(categories - 1 - others, categories - 1):
            word, state = next_word(state)
            drawn = np.int64(((word >> half) * (np.uint64(j) + one)) >> half)
            at = np.int64(drawn + 1 if drawn >= own[row] else drawn)
            if out[row, at >> 3] >> (at & 7) & 1:
                at = np.int64(j + 1 if j >= own[row] else j)
            out[row, at >> 3] |= np.uint8(1 << (at & 7))


def draw_subsets(
    own: Int32s,
    categories: int,
    members: int,
    threshold: int,
    rng: np.random.Generator,
    *,
    threads: int | None = None,
) -> Bytes:
    """Return one random subset per client as packed bits, u8[N, B].

    own : int32[N], category of each client
    threshold : probability that the subset contains it, in units of 2⁻³²
    The result depends on the state of `rng`, but not on the number of threads.

    >>> own = np.zeros(1000, np.int32)
    >>> subsets = draw_subsets(own, 5, 2, 3 << 30, np.random.default_rng(1))
    >>> members = np.unpackbits(subsets, axis=1).sum(axis=1)
    >>> set(members.tolist()), round(float((subsets & 1).mean()), 2)
    ({2}, 0.74)
    """
    own = read_only(own, np.int32)
    if not (1 <= members < categories and 0 <= threshold <= CERTAIN):
        raise InputError(
            f"members must be in 1..{categories - 1} and the threshold in 0..2^32, got {members} "
            f"and {threshold}"
        )
    if own.size and not (own.min() >= 0 and own.max() < categories):
        raise InputError(f"categories must be in 0..{categories - 1}, got {own.min()}..{own.max()}")
    out = np.empty((len(own), byte_width(categories)), np.uint8)
    rows = chunk_rows(out.shape[1])
    seeds = rng.integers(0, 1 << 64, size=(-(-len(own) // rows), 4), dtype=np.uint64)

    def work(start: int, stop: int) -> None:
        for chunk in range(start, stop):
            part = slice(chunk * rows, (chunk + 1) * rows)
            limit = np.uint64(threshold)
            _draw_subsets(own[part], categories, members, limit, seeds[chunk], out[part])

    workers = thread_count(threads)
    over_threads(work, split_range(len(seeds), workers * RANGES_PER_THREAD), workers)
    return out
