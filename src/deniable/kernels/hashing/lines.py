"""The arithmetic of local hashing on arrays: the number to which a line maps a cell.

A cell is written in base g, lowest digit first: v₀, v₁, …. The line with digits a₁, a₂, … maps it
to v₀ + a₁v₁ + a₂v₂ + … modulo g, as `mechanisms.local_hash` does for one client. A first digit of
−1 marks an unknown cell.
"""

from __future__ import annotations

import numpy as np

from deniable.kernels.array_types import Int64s, Integers


def digits_of(numbers: Integers, base: int, digits: int) -> Int64s:
    """Return the digits of numbers, int64[..., digits], lowest first; −1s for a negative number.

    >>> digits_of(np.array([11, -1]), 10, 3).tolist()
    [[1, 1, 0], [-1, -1, -1]]
    """
    quotient = numbers.astype(np.int64)
    known = quotient >= 0
    out = np.empty((*quotient.shape, digits), np.int64)
    for i in range(digits):
        quotient, digit = np.divmod(quotient, base)
        out[..., i] = np.where(known, digit, -1)
    return out


def line_numbers(cells: Int64s, lines: Int64s, base: int) -> Int64s:
    """Return the numbers int64[...] to which lines[..., d - 1] map cells[..., d], given as digits.

    The arrays may also be tensors.

    >>> line_numbers(np.array([[4, 1], [4, 1]]), np.array([[0], [3]]), 5).tolist()  # 4 and 4 + 3·1
    [4, 2]
    """
    numbers: Int64s = (cells[..., 0] + (cells[..., 1:] * lines).sum(-1)) % base
    return numbers
