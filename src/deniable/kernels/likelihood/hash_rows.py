"""Likelihood rows of reports by local hashing.

Cells and lines are given by their digits; see `kernels.hashing.lines`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from deniable.kernels.array_types import Floats, Int64s, Singles
from deniable.kernels.compiled import compiled, inlined


class HashTables(NamedTuple):
    """Tables from which likelihood rows of m candidates are made, for S strata.

    base : number of different reports, g; lines : int64[L, d - 1], digits of each line;
    cells : int64[S, m, d], digits of the cell of each candidate;
    chance : float64[3], probability of a reported number for a candidate that has this number, for
    another candidate, and for a candidate whose cell is unknown.
    """

    base: int
    lines: Int64s
    cells: Int64s
    chance: Floats


class SentNumbers(NamedTuple):
    """Reports by local hashing: reported number, stratum and line, int64[N] each."""

    number: Int64s
    stratum: Int64s
    line: Int64s


@inlined
def _number(cell: Int64s, line: Int64s, base: int) -> np.int64:
    """Return the number to which a line maps a cell; see `kernels.hashing.lines.line_numbers`."""
    total = np.int64(cell[0])
    for i in range(len(line)):
        total += line[i] * cell[i + 1]
    return total % base


@compiled
def line_support(sent: NDArray[Any], lines: Int64s, cells: Int64s, out: NDArray[Any]) -> None:
    """Sum over lines the entry of the number to which the line maps each cell.

    sent : [L, g], reports per line and number, or scores of them; lines : int64[L, d - 1], digits;
    cells : int64[K, d], digits; out : [K], for counts the number of reports that support the cell
    """
    base = sent.shape[1]
    for k in range(len(cells)):
        total = 0
        for line in range(len(lines)):
            total += sent[line, _number(cells[k], lines[line], base)]
        out[k] = total


@compiled
def support_of_all(sent: NDArray[Any], lines: Int64s, out: NDArray[Any]) -> None:
    """Do the same for all cells in their order, out : [g^d], whose digits are then not needed.

    Cells that differ in the first digit only are neighbours, and so are their numbers on a line:
    each line adds its row of entries, rotated.
    """
    count, base = sent.shape
    twice = np.empty((count, 2 * base), sent.dtype)
    twice[:, :base] = sent
    twice[:, base:] = sent
    out[:] = 0
    for block in range(len(out) // base):
        cells = out[block * base : (block + 1) * base]
        for line in range(count):
            shift, higher = 0, block
            for i in range(lines.shape[1]):
                shift += lines[line, i] * (higher % base)
                higher //= base
            shift %= base
            cells += twice[line, shift : shift + base]


@compiled
def number_rows(sent: SentNumbers, tables: HashTables, rows: Singles, log_scale: Floats) -> None:
    """Compute likelihood rows of candidates; the largest entry of every row is 1.

    rows : float32[N, m]; log_scale : float64[N]
    """
    base, lines, cells, chance = tables
    number, stratum, line = sent
    candidates = cells.shape[1]
    values = np.empty(candidates)
    for r in range(len(number)):
        own = lines[line[r]]
        largest = 0.0 if candidates else chance[2]
        for i in range(candidates):
            cell = cells[stratum[r], i]
            kind = 2 if cell[0] < 0 else 0 if _number(cell, own, base) == number[r] else 1
            values[i] = chance[kind]
            largest = max(largest, values[i])
        for i in range(candidates):
            rows[r, i] = values[i] / largest
        log_scale[r] = np.log(largest)


@compiled
def number_mixture(sent: SentNumbers, tables: HashTables, share: Floats, out: Floats) -> None:
    """Compute the likelihood of a mixture of candidates and unknown cells.

    Arguments as for `number_rows`; share : float64[m + 1], that of unknown cells last;
    out : float64[N]
    """
    base, lines, cells, chance = tables
    number, stratum, line = sent
    candidates = cells.shape[1]
    for r in range(len(number)):
        own = lines[line[r]]
        total = share[candidates] * chance[2]
        for i in range(candidates):
            cell = cells[stratum[r], i]
            kind = 2 if cell[0] < 0 else 0 if _number(cell, own, base) == number[r] else 1
            total += share[i] * chance[kind]
        out[r] = total
