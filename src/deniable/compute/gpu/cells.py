"""Screening and transforms: sums over the cells of many strings, and of all cells, on tensors.

As `kernels.search.cell_sums` and `kernels.likelihood.hash_rows`, with sums in the same order, so
that evidence agrees with the processors' bit for bit, and only logarithms and exponentials round
differently.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from deniable.compute.gpu.hashing import mixed, seeds
from deniable.compute.gpu.tensors import Tensor, placed, torch
from deniable.kernels.hashing.lines import line_numbers

TOGETHER = 1 << 21
"""Strings that are worked on together."""
TINY = 1e-30
FREQUENCIES = 1 << 14
"""Frequencies of all transforms that are worked on together."""


def evidence_of(header: bytes, rows: Tensor, length: int, tables: Tensor) -> Tensor:
    """float32[n]: the sum over families c of tables[c, cell of row[:length] in family c].

    rows : u8[n, M]; tables : float32[C, K]
    """
    if rows.is_cuda:
        from deniable.compute.gpu import fused_cells

        return fused_cells.evidence_of(header, rows, length, tables)
    t = torch()
    out = t.empty(len(rows), dtype=t.float32, device=rows.device)
    for start in range(0, len(rows), TOGETHER):
        some = slice(start, start + TOGETHER)
        x, y = seeds(header, rows[some], length)
        out[some] = cell_sums(x, y, tables)
    return out


def cell_sums(x: Tensor, y: Tensor, tables: Tensor) -> Tensor:
    """As `kernels.search.cell_sums.cell_sums`: x, y int64[n]; tables float32[C, K]; float32[n]."""
    total = torch().zeros(len(x), dtype=tables.dtype, device=x.device)
    for table in tables:
        x = x + y
        total += table[(mixed(x) * len(table)) >> 32]
    return total


def log_mixtures(
    weight: Tensor, parent: Tensor, evidence: Tensor, masses: Tensor, precision: float
) -> Tensor:
    """As `kernels.search.cell_sums.log_mixtures`: float32[n]."""
    t = torch()
    out = t.empty_like(evidence)
    for start in range(0, len(evidence), TOGETHER):
        some = slice(start, start + TOGETHER)
        log = masses * evidence[some, None] - masses**2 * (precision / 2)
        top = log.amax(dim=1)
        total = (weight[parent[some]] * (log - top[:, None]).exp_()).sum(dim=1)
        out[some] = top + (total + TINY).log()
    return out


def line_support(sent: Tensor, lines: NDArray[np.int64], cells: NDArray[np.int64]) -> Tensor:
    """[…, K] of sent[…, L, g]: as `kernels.likelihood.hash_rows.line_support`, for all tables at
    once.

    lines : int64[L, d - 1], digits; cells : int64[K, d], digits
    """
    t, where, base = torch(), sent.device, sent.shape[-1]
    digits, out = (
        placed(cells, where),
        t.zeros((*sent.shape[:-2], len(cells)), dtype=sent.dtype, device=where),
    )
    for number, line in enumerate(placed(lines, where)):
        at = line_numbers(digits, line, base)
        out += sent[..., number, :].index_select(-1, at)
    return out


def transforms(lattice: Tensor, size: int) -> Tensor:
    """complex128[P, size/2 + 1]: Fourier transforms of the rows' distributions, modulo `size`."""
    t = torch()
    rows, entries = lattice.shape
    counts = t.zeros((rows, size), dtype=t.float64, device=lattice.device)
    counts.scatter_add_(1, lattice % size, t.ones_like(lattice, dtype=t.float64))
    return t.fft.rfft(counts) / entries


def convolved(
    transforms: Tensor, size: int, moved: tuple[Tensor, Tensor, float] | None = None
) -> Tensor:
    """float64[size]: as `compute.screening.Loops.convolved`."""
    t = torch()
    product = t.empty_like(transforms[0])
    for start in range(0, len(product), FREQUENCIES):
        each = transforms[:, start : start + FREQUENCIES]
        if moved is not None:
            was, now, share = moved
            steps = t.arange(start, start + each.shape[1], device=each.device)
            each = each + share * (_turns(steps, now, size) - _turns(steps, was, size))
        product[start : start + FREQUENCIES] = each.prod(dim=0)
    return t.fft.irfft(product, size)


def _turns(steps: Tensor, by: Tensor, size: int) -> Tensor:
    """complex128[P, frequencies]: e to the −2πi·step·by/size."""
    t = torch()
    angle = (steps * by[:, None] % size).double() * (-2 * np.pi / size)
    return t.polar(t.ones_like(angle), angle)
