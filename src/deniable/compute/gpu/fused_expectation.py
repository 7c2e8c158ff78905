"""One pass over the reports that reads every row once: a Triton kernel for two variables.

`expectation.expect` writes and reads products of the size of the rows five times. In this kernel a
program processes a few reports at a time, keeps table and gradient on the chip, and writes one
partial gradient. The products run on the matrix units: in single precision as three TensorFloat-32
products of split numbers ("tf32x3", exact to about 2⁻²²), in double precision as they are. Sums
over at most a thousand reports are added up in float64.

For N reports and an m × n table the kernel reads 4N(m + n) bytes and performs 4Nmn operations.
Triton supports only sizes that are powers of two, so categories are split into two parts, 40 into
32 + 16; padding is computed, but not read. m and n are compile-time constants, so that rows are
read 16 bytes at a time.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import triton
import triton.language as tl

from deniable.compute.gpu.tensors import Tensor, torch
from deniable.kernels.likelihood.mixture_pass import MIN_LIKELIHOOD

# mypy: disable-error-code="no-untyped-call, no-untyped-def"

STEPS = 16
"""Blocks of rows whose gradients are added up in the precision of the table, then in float64."""
MIN_CATEGORIES, MAX_CATEGORIES = 16, 64
"""Categories per variable: the matrix units need the minimum, the registers hold the maximum."""


def _loaded(at, far, row, column, width: tl.constexpr, there, kind: tl.constexpr):
    """Return entries of rows in these columns; 0 beyond the last row and the last column."""
    near = row[:, None] * width + column[None, :]
    mask = there[:, None] & (column < width)[None, :]
    return tl.load(at + far * width + near, mask=mask, other=0.0).to(kind)


def _cells(at, i, j, m: tl.constexpr, n: tl.constexpr):
    """Return entries of a table; 0 beyond it."""
    inside = (i < m)[:, None] & (j < n)[None, :]
    return tl.load(at + i[:, None] * n + j[None, :], mask=inside, other=0.0)


def _added(at, i, j, m: tl.constexpr, n: tl.constexpr, more):
    """Add to a table in float64."""
    inside = (i < m)[:, None] & (j < n)[None, :]
    there = at + i[:, None] * n + j[None, :]
    tl.store(there, tl.load(there, mask=inside, other=0.0) + more.to(tl.float64), mask=inside)


def _passed(
    a_at, b_at, w_at, table_at, gradient_at, total_at, count,
    m: tl.constexpr, n: tl.constexpr, M0: tl.constexpr, M1: tl.constexpr, N0: tl.constexpr,
    N1: tl.constexpr, ROWS: tl.constexpr, STEPS: tl.constexpr, WEIGHTED: tl.constexpr,
    PRECISE: tl.constexpr, FLOOR: tl.constexpr,
):  # fmt: skip
    """Write the log-likelihood and the gradient of the reports of one program."""
    kind: tl.constexpr = tl.float64 if PRECISE else tl.float32
    row, i0, j0, j1 = tl.arange(0, ROWS), tl.arange(0, M0), tl.arange(0, N0), N0 + tl.arange(0, N1)
    t00, t01 = _cells(table_at, i0, j0, m, n), _cells(table_at, i0, j1, m, n)
    if M1:
        i1 = M0 + tl.arange(0, M1)
        t10, t11 = _cells(table_at, i1, j0, m, n), _cells(table_at, i1, j1, m, n)
    out = gradient_at + tl.program_id(0) * m * n
    logs = tl.zeros((ROWS,), dtype=tl.float64)
    lowest = tl.full((ROWS,), 1.0, dtype=kind)
    for first in range(tl.program_id(0) * ROWS * STEPS, count, tl.num_programs(0) * ROWS * STEPS):
        g00, g01 = tl.zeros((M0, N0), dtype=kind), tl.zeros((M0, N1), dtype=kind)
        if M1:
            g10, g11 = tl.zeros((M1, N0), dtype=kind), tl.zeros((M1, N1), dtype=kind)
        for start in range(first, first + ROWS * STEPS, ROWS):
            # With a start in 64 bits, offsets fit into 32 bits for any N.
            there, far = row < count - start, tl.full((), 0, tl.int64) + start
            a0 = _loaded(a_at, far, row, i0, m, there, kind)
            b0 = _loaded(b_at, far, row, j0, n, there, kind)
            b1 = _loaded(b_at, far, row, j1, n, there, kind)
            x0 = tl.dot(a0, t00, input_precision="tf32x3", out_dtype=kind)
            x1 = tl.dot(a0, t01, input_precision="tf32x3", out_dtype=kind)
            if M1:
                a1 = _loaded(a_at, far, row, i1, m, there, kind)
                x0 += tl.dot(a1, t10, input_precision="tf32x3", out_dtype=kind)
                x1 += tl.dot(a1, t11, input_precision="tf32x3", out_dtype=kind)
            d = tl.sum(x0 * b0, axis=1) + tl.sum(x1 * b1, axis=1)
            d = tl.where(there, d, 1.0)
            lowest = tl.minimum(lowest, tl.where(d > FLOOR, d, 0.0))
            d = tl.maximum(d, FLOOR)
            share = tl.where(there, 1.0 / d, 0.0)
            log = tl.log(d).to(tl.float64)
            if WEIGHTED:
                w = tl.load(w_at + far + row, mask=there, other=0.0)
                share, log = share * w.to(kind), log * w
            logs += log
            b0, b1, u0 = b0 * share[:, None], b1 * share[:, None], tl.trans(a0)
            g00 += tl.dot(u0, b0, input_precision="tf32x3", out_dtype=kind)
            g01 += tl.dot(u0, b1, input_precision="tf32x3", out_dtype=kind)
            if M1:
                u1 = tl.trans(a1)
                g10 += tl.dot(u1, b0, input_precision="tf32x3", out_dtype=kind)
                g11 += tl.dot(u1, b1, input_precision="tf32x3", out_dtype=kind)
        _added(out, i0, j0, m, n, g00)
        _added(out, i0, j1, m, n, g01)
        if M1:
            _added(out, i1, j0, m, n, g10)
            _added(out, i1, j1, m, n, g11)
    possible = tl.min(lowest, axis=0) > 0.0
    tl.store(total_at + tl.program_id(0), tl.where(possible, tl.sum(logs, axis=0), -float("inf")))


# A Triton kernel looks up the functions that it calls among the names of its module.
_loaded, _cells, _added = triton.jit(_loaded), triton.jit(_cells), triton.jit(_added)
_kernel: Any = triton.jit(_passed)


@dataclass(frozen=True)
class Shape:
    """How the work is divided.

    rows : reports per program at a time; warps : warps per program; stages : loads in flight;
    programs : programs per multiprocessor; halved : whether the categories of the first variable,
    like those of the second, are split into two parts.
    """

    rows: int
    warps: int
    stages: int
    programs: int
    halved: bool


SINGLE, DOUBLE = Shape(32, 2, 2, 4, True), Shape(32, 2, 4, 4, False)
"""The fastest shapes of those measured; see docs/how-to/gpu.md."""


def fits(m: int, n: int) -> bool:
    """Return whether the kernel supports tables of this shape."""
    return max(m, n) <= MAX_CATEGORIES


def expect(a: Tensor, b: Tensor, weights: Tensor | None, table: Tensor) -> tuple[Tensor, Tensor]:
    """Return L and G of one pass for two variables, as `expectation.expect`.

    a, b : float32[N, m] and float32[N, n], contiguous
    """
    t = torch()
    (count, m), n = a.shape, b.shape[1]
    precise = table.dtype == t.float64
    shape = DOUBLE if precise else SINGLE
    programs = min(shape.programs * _processors(a.device), -(-count // (shape.rows * STEPS)))
    gradient = t.zeros((programs, m, n), dtype=t.float64, device=a.device)
    total = t.empty(programs, dtype=t.float64, device=a.device)
    first = _parts(m) if shape.halved else (_padded(m), 0)
    second = _parts(n)
    _kernel[(programs,)](
        a, b, a if weights is None else weights, table.contiguous(), gradient, total, count,
        m=m, n=n, M0=first[0], M1=first[1], N0=second[0], N1=second[1], ROWS=shape.rows,
        STEPS=STEPS, WEIGHTED=weights is not None, PRECISE=precise, FLOOR=MIN_LIKELIHOOD,
        num_warps=shape.warps, num_stages=shape.stages,
    )  # fmt: skip
    return total.sum(), gradient.sum(dim=0)


def _processors(device: Any) -> int:
    """Return the number of multiprocessors of a device."""
    if device.type == "cpu":  # Triton's interpreter
        return 1
    return int(torch().cuda.get_device_properties(device).multi_processor_count)


def _padded(size: int) -> int:
    """Return the smallest supported power of two that holds this many categories."""
    return max(MIN_CATEGORIES, 1 << max(size - 1, 0).bit_length())


def _parts(size: int) -> tuple[int, int]:
    """Return two powers of two that together hold this many categories: 40 → 32 + 16, not 64."""
    first = max(MIN_CATEGORIES, _padded(size) // 2)
    return first, _padded(size - first)
