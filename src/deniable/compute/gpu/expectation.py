"""The E-step and the curvature on tensors.

`kernels.likelihood.mixture_pass` and `compute.cpu.row_blocks` compute the same on CPUs.
For report k with likelihood rows a_k, b_k, weight w_k and a table p, one pass computes
    d_k = Σ_ij p_ij a_ki b_kj,   G_ij = Σ_k w_k a_ki b_kj / d_k,   L = Σ_k w_k log d_k,
and the curvature Σ_k w_k (a_ki a_ki′)(b_kj b_kj′) / d_k² over unordered pairs of categories.

Rows are float32. The arithmetic has the type of the table; sums over blocks of 256 reports are
always added up in float64. One product per block keeps every multiprocessor busy, unlike a single
product of 40 × 10⁷ by 10⁷ × 40.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from deniable.compute.gpu.tensors import Tensor, torch
from deniable.compute.rows import multiply_out
from deniable.kernels.likelihood.mixture_pass import BLOCK, MIN_LIKELIHOOD, MIN_MIXTURE_LIKELIHOOD

TEMPORARY_BYTES = 1 << 28
"""Approximate size of a temporary array."""


def expect(rows: Sequence[Tensor], weights: Tensor | None, table: Tensor) -> tuple[Tensor, Tensor]:
    """Return L, float64, and G, float64[m, n], of one pass; both stay on the device.

    rows : float32[N, m], float32[N, n₁], …; weights : float64[N]; table : float[m, n], n = Π n_v
    A report whose d is not above 1e-30 makes L −∞.
    """
    t = torch()
    total = t.zeros((), dtype=t.float64, device=table.device)
    gradient = t.zeros(table.shape, dtype=t.float64, device=table.device)
    for part, block in _parts(len(rows[0]), max(table.shape)):
        a, b = _two_sides(rows, part, table.dtype)
        d = (a @ table).mul_(b).sum(dim=1)
        possible = (d > MIN_LIKELIHOOD).all()
        share, logs = 1 / d.clamp_min_(MIN_LIKELIHOOD), d.to(t.float64).log()
        if weights is not None:
            share, logs = share * weights[part].to(d.dtype), logs * weights[part]
        total += logs.sum() + t.where(possible, 0.0, -t.inf)
        scaled = (a * share[:, None]).view(-1, block, a.shape[1])
        gradient += (scaled.mT @ b.view(-1, block, b.shape[1])).sum(dim=0, dtype=t.float64)
    return total, gradient


def pair_sums(rows: Sequence[Tensor], weights: Tensor | None, table: Tensor) -> Tensor:
    """Return the curvature over unordered pairs, float64[m(m+1)/2, n(n+1)/2].

    table : float64[m, n]; all arithmetic is float64
    """
    t = torch()
    m, n = table.shape
    left, right = (t.triu_indices(size, size, device=table.device) for size in (m, n))
    total = t.zeros((left.shape[1], right.shape[1]), dtype=t.float64, device=table.device)
    step = max(TEMPORARY_BYTES // (8 * max(total.shape)), 1)
    for start in range(0, len(rows[0]), step):
        part = slice(start, start + step)
        a, b = _two_sides(rows, part, t.float64)
        d = (a @ table).mul_(b).sum(dim=1).clamp_min_(MIN_MIXTURE_LIKELIHOOD)
        a = a / d[:, None]
        if weights is not None:
            a = a * weights[part].sqrt()[:, None]
        total += (a[:, left[0]] * a[:, left[1]]).mT @ (b[:, right[0]] * b[:, right[1]])
    return total


def _two_sides(rows: Sequence[Tensor], part: slice, dtype: object) -> tuple[Tensor, Tensor]:
    """Return rows of the first variable, and products of rows of all others."""
    a = rows[0][part].to(dtype)
    if len(rows) == 1:
        return a, torch().ones((len(a), 1), dtype=dtype, device=a.device)
    return a, multiply_out([more[part].to(dtype) for more in rows[1:]])


def _parts(count: int, width: int) -> Iterator[tuple[slice, int]]:
    """Yield slices of range(count), and the length of the blocks in each slice."""
    whole = count - count % BLOCK
    step = BLOCK * max(TEMPORARY_BYTES // (8 * BLOCK * width), 1)
    for start in range(0, whole, step):
        yield slice(start, min(start + step, whole)), BLOCK
    if whole < count:
        yield slice(whole, count), count - whole
