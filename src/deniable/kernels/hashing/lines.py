"""The arithmetic of local hashing on arrays: where a line takes a cell.

A cell is written in base g, its digits last first: v₀, v₁, …; the line with digits a₁, a₂, … takes
it to v₀ + a₁v₁ + a₂v₂ + … modulo g, as `mechanisms.local_hash` does for one client. First digits of
−1 mark a cell that is not known.
"""

from __future__ import annotations

import numpy as np

from deniable.kernels.array_types import Int64s, Integers


def digits_of(numbers: Integers, base: int, digits: int) -> Int64s:
    """int64[..., digits], the last digit first; −1 throughout for a number below 0.

    >>> digits_of(np.array([11, -1]), 10, 3).tolist()
    [[1, 1, 0], [-1, -1, -1]]
    """
    rest = numbers.astype(np.int64)
    known = rest >= 0
    out = np.empty((*rest.shape, digits), np.int64)
    for i in range(digits):
        rest, digit = np.divmod(rest, base)
        out[..., i] = np.where(known, digit, -1)
    return out


def line_numbers(cells: Int64s, lines: Int64s, base: int) -> Int64s:
    """Where lines take cells: int64[...] of cells[..., d] and lines[..., d - 1], both digits.

    Tensors of other libraries do as well.

    >>> line_numbers(np.array([[4, 1], [4, 1]]), np.array([[0], [3]]), 5).tolist()  # 4 and 4 + 3·1
    [4, 2]
    """
    numbers: Int64s = (cells[..., 0] + (cells[..., 1:] * lines).sum(-1)) % base
    return numbers
