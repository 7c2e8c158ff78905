"""Local hashing for a whole crowd: true numbers, and fresh noise on them.

The same arithmetic as `mechanisms.local_hash`, on arrays; a test ties the two on the same random
words.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from deniable.columns.batch import numbers
from deniable.kernels.hashing.lines import digits_of, line_numbers
from deniable.mechanisms import LocalHash


def packed(sent: NDArray[np.int64], size: int) -> NDArray[np.uint8]:
    """u8[N, size], little-endian."""
    return np.ascontiguousarray(sent.astype("<u4")).view(np.uint8).reshape(-1, 4)[:, :size].copy()


def family_of(mechanism: LocalHash, cohort: NDArray[np.uint16]) -> NDArray[np.uint16]:
    """The hash function that takes a string to its cell, for each cohort."""
    return (cohort // mechanism.lines).astype(np.uint16)


def true_numbers(
    mechanism: LocalHash, cell: NDArray[np.int32], cohort: NDArray[np.uint16]
) -> NDArray[np.int64]:
    """int64[N]: where each client's line takes its cell; g for no answer (a cell of −1)."""
    g, d = mechanism.values, mechanism.digits
    line = digits_of(cohort % mechanism.lines, g, d - 1)
    return np.where(cell < 0, g, line_numbers(digits_of(cell, g, d), line, g))


def noise_numbers(
    mechanism: LocalHash, true: NDArray[np.int64], uniform: NDArray[np.uint32]
) -> NDArray[np.int64]:
    """What clients send whose 32 random bits these are."""
    g, p, q = mechanism.values, mechanism.noise.p, mechanism.noise.q
    u = uniform.astype(np.int64)
    other = (true + 1 + (u - q) // p) % g
    return np.where(true == g, u * g >> 32, np.where(u < q, true, other))


def noise_packed(
    mechanism: LocalHash, rows: NDArray[np.uint8], rng: np.random.Generator
) -> NDArray[np.uint8]:
    """`noise_numbers` on packed rows."""
    uniform = rng.integers(0, 1 << 32, len(rows), dtype=np.uint32)
    return packed(noise_numbers(mechanism, numbers(rows), uniform), mechanism.size)
