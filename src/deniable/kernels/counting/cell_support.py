"""Count the reports by local hashing that support a cell, over all lines at once.

A line a maps a cell v to the number v₀ + a₁v₁ + … + a_{d−1}v_{d−1} modulo g; see
`kernels.hashing.lines`. With T[a, n], the reports of line a with number n, and its Fourier
transform F over all d digits,

    Σ_a T[a, v₀ + a·v]  =  1/g Σ_k ω^{k v₀} F[−k v₁, …, −k v_{d−1}, k],  ω = exp(2πi/g),

which has g terms per cell instead of g^{d−1}. Sums of integers below 10¹² are exact after rounding.
If the transform is large, the kernel `line_support` adds up the terms on the left.
"""

from __future__ import annotations

import numpy as np

from deniable.kernels.array_types import Int64s
from deniable.kernels.compiled import pays_off
from deniable.kernels.likelihood.hash_rows import line_support

NUMPY_SECONDS = 1e-7
"""Time that NumPy takes per entry of the transform, and per five terms."""
TERMS_PER_BLOCK = 1 << 17
"""Terms that are in memory at a time."""


def cell_support(sent: Int64s, lines: Int64s, cells: Int64s) -> Int64s:
    """Return the number of reports that support each cell, int64[K].

    sent : int64[g^(d-1), g], reports per line and number; lines : int64[g^(d-1), d - 1] and
    cells : int64[K, d], digits of all lines and of some cells, lowest first

    >>> sent = np.array([[5, 0, 0], [0, 7, 0], [0, 0, 9]])  # line a reports the number a
    >>> lines, cells = np.array([[0], [1], [2]]), np.array([[0, 1], [0, 0], [1, 0]])
    >>> cell_support(sent, lines, cells).tolist()  # the cells that are mapped to a, 0 and 1
    [21, 5, 7]
    """
    if pays_off(NUMPY_SECONDS * (sent.size + len(cells) * sent.shape[1] / 5)):
        support = np.empty(len(cells), np.int64)
        used = sent.any(axis=1)
        line_support(sent[used], lines[used], cells, support)
        return support
    return _by_transform(sent, cells)


def _by_transform(sent: Int64s, cells: Int64s) -> Int64s:
    """Return the number of reports that support each cell, by a Fourier transform."""
    base = sent.shape[1]
    spectrum = np.fft.fftn(sent.reshape((base,) * cells.shape[1])).ravel()
    frequency = np.arange(base)
    roots = np.exp(2j * np.pi / base * frequency)
    support = np.empty(len(cells))
    step = max(TERMS_PER_BLOCK // base, 1)
    for start in range(0, len(cells), step):
        first, *others = cells[start : start + step].T
        place = np.zeros((len(first), base), np.int64)
        for digit in reversed(others):
            place = place * base + np.multiply.outer(-digit, frequency) % base
        terms = spectrum[place * base + frequency]
        terms *= roots[np.multiply.outer(first, frequency) % base]
        support[start : start + step] = terms.real.sum(axis=1) / base
    return np.rint(support).astype(np.int64)
