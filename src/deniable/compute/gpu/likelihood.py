"""Likelihood rows of packed reports, as in `kernels.likelihood.bit_rows` and
`kernels.likelihood.hash_rows`.

Tables come as NumPy arrays, the reports as tensors, and the rows stay where the reports are.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deniable.compute.gpu.tensors import Tensor, placed, torch
from deniable.kernels.hashing.lines import line_numbers

Floats = NDArray[np.float64]
TOGETHER = 1 << 28
"""Bytes of a temporary array, about."""


class Sparse:
    """Candidates as bit positions, by their ratio to the empty filter; as `kernels.sparse_rows`.

    positions : int32[S, m, h], the distinct[s, i] different ones first; ratio : float64[S, h + 1,
    h + 1]; unlisted : float64[S, k + 1]
    """

    def __init__(
        self,
        bits: Tensor,
        stratum: Tensor,
        width: int,
        positions: NDArray[np.int32],
        distinct: NDArray[np.int32],
        ratio: Floats,
        unlisted: Floats,
    ) -> None:
        where = bits.device
        self.bits, self.stratum, self.ones = bits, stratum.long(), ones_in(bits, width)
        self.positions, self.distinct = placed(positions, where), placed(distinct, where)
        self.ratio, self.unlisted = placed(ratio, where), placed(unlisted, where)

    def rows(self, base: Floats) -> tuple[Tensor, Tensor]:
        """float32[N, m], the largest entry of every row 1, and float64[N], the scales' logarithms.

        base : float64[S, k + 1], log-likelihood of the empty filter by number of ones
        """
        t, where = torch(), self.bits.device
        rows = t.empty((len(self.bits), self.positions.shape[1]), dtype=t.float32, device=where)
        scale = placed(base, where)[self.stratum, self.ones]
        for part, ratios in self._ratios():
            largest = ratios.amax(dim=1)
            rows[part] = ratios / largest[:, None]
            scale[part] += largest.log()
        return rows, scale

    def mixture(self, share: Floats) -> Tensor:
        """float64[N]: the sum of ratios by shares float64[m + 1], an unlisted string's last."""
        each = placed(share, self.bits.device)
        out = each[-1] * self.unlisted[self.stratum, self.ones]
        for part, ratios in self._ratios():
            out[part] += ratios @ each[:-1]
        return out

    def _ratios(self) -> Iterator[tuple[slice, Tensor]]:
        """float64[some, m], some reports at a time."""
        _, candidates, hashes = self.positions.shape
        number = torch().arange(hashes, device=self.bits.device)
        for part in _parts(len(self.bits), 8 * candidates * hashes):
            s = self.stratum[part]
            at = self.positions[s].long().clamp_min_(0)
            byte = self.bits[part].gather(1, (at >> 3).flatten(1)).view(at.shape)
            distinct = self.distinct[s].long()
            told = number < distinct[:, :, None]
            count = ((byte >> (at & 7).to(byte.dtype)) & 1).mul_(told).sum(dim=2)
            place = (s[:, None] * (hashes + 1) + distinct) * (hashes + 1) + count
            unlisted = self.unlisted[s, self.ones[part]]
            ratios = self.ratio.flatten()[place]
            yield part, torch().where(distinct > 0, ratios, unlisted[:, None])


class Numbers:
    """Candidates as cells, of reports that are numbers; as
    `kernels.likelihood.hash_rows.number_rows`.

    number, stratum, line : int64[N]; lines : int64[L, d - 1]; cells : int64[S, m, d];
    chance : float64[3], of a candidate's own number, of another, and of one that is not known
    """

    def __init__(
        self,
        number: Tensor,
        stratum: Tensor,
        line: Tensor,
        lines: NDArray[np.int64],
        cells: NDArray[np.int64],
        base: int,
        chance: Floats,
    ) -> None:
        where = number.device
        self.number, self.stratum, self.line, self.base = number, stratum, line, base
        self.lines, self.cells = placed(lines, where), placed(cells, where)
        self.chance = placed(chance, where)

    def rows(self) -> tuple[Tensor, Tensor]:
        """float32[N, m], the largest entry of every row 1, and float64[N], the scales' logs."""
        t, where = torch(), self.number.device
        rows = t.empty((len(self.number), self.cells.shape[1]), dtype=t.float32, device=where)
        scale = t.empty(len(self.number), dtype=t.float64, device=where)
        for part, chances in self._chances():
            largest = chances.amax(dim=1)
            rows[part] = chances / largest[:, None]
            scale[part] = largest.log()
        return rows, scale

    def mixture(self, share: Floats) -> Tensor:
        """float64[N]: P(number) by shares float64[m + 1], that of cells not known last."""
        each = placed(share, self.number.device)
        out = (each[-1] * self.chance[2]).repeat(len(self.number))
        for part, chances in self._chances():
            out[part] += chances @ each[:-1]
        return out

    def _chances(self) -> Iterator[tuple[slice, Tensor]]:
        """float64[some, m], some reports at a time."""
        for part in _parts(len(self.number), 8 * self.cells.shape[1] * self.cells.shape[2]):
            cells, line = self.cells[self.stratum[part]], self.lines[self.line[part]]
            theirs = line_numbers(cells, line[:, None], self.base)
            kind = (theirs != self.number[part][:, None]).long()
            yield part, self.chance[torch().where(cells[:, :, 0] < 0, 2, kind)]


def dense_rows(
    bits: Tensor, stratum: Tensor, width: int, logit: Floats, base: Floats
) -> tuple[Tensor, Tensor]:
    """Rows of any channel: logit float64[S, k, m] for every set bit, base float64[S, m] for none.

    float32[N, m], the largest entry of every row 1, and float64[N], the scales' logarithms.
    """
    t, where = torch(), bits.device
    logits, bases = placed(logit, where), placed(base, where)
    rows = t.empty((len(bits), logit.shape[2]), dtype=t.float32, device=where)
    scale = t.empty(len(bits), dtype=t.float64, device=where)
    order = t.argsort(stratum, stable=True)
    ends = t.bincount(stratum, minlength=len(logit)).cumsum(0).tolist()
    for s, (first, last) in enumerate(zip([0, *ends], ends, strict=False)):
        for part in _parts(last - first, 8 * (width + logit.shape[2])):
            some = order[first:last][part]
            total = bases[s] + unpacked(bits[some], width).to(t.float64) @ logits[s]
            largest = total.amax(dim=1)
            rows[some] = (total - largest[:, None]).to(t.float32).exp_()
            scale[some] = largest
    return rows, scale


def append_column(rows: Tensor, log_scale: Tensor, column: Tensor) -> tuple[Tensor, Tensor]:
    """Append a column of log-likelihoods float64[N] to scaled rows float32[N, m]; scale again."""
    t = torch()
    relative = column - log_scale if rows.shape[1] else t.zeros_like(column)
    factor = (-relative.clamp_min(0)).exp().to(t.float32)
    last = relative.clamp_max(0).exp().to(t.float32)
    scale = t.maximum(column, log_scale) if rows.shape[1] else column
    return t.cat([rows * factor[:, None], last[:, None]], dim=1), scale


def ones_in(bits: Tensor, width: int) -> Tensor:
    """int64[N]: ones among the first `width` bits of every report; padding is ignored."""
    t = torch()
    mask = np.zeros(bits.shape[1], np.uint8)
    mask[: width // 8] = 255
    if width % 8:
        mask[width // 8] = (1 << width % 8) - 1
    popcount = t.tensor([bin(value).count("1") for value in range(256)], device=bits.device)
    return popcount[(bits & placed(mask, bits.device)).int()].sum(dim=1)


def unpacked(bits: Tensor, width: int) -> Tensor:
    """u8[N, width]: one bit each."""
    shift = torch().arange(8, dtype=bits.dtype, device=bits.device)
    return ((bits[:, :, None] >> shift) & 1).flatten(1)[:, :width]


def little_endian(raw: Tensor) -> Tensor:
    """int64[N]: the number in each row of bytes u8[N, B], the least significant first."""
    number: Any = 0
    for byte in range(raw.shape[1]):
        number = number + (raw[:, byte].long() << 8 * byte)
    return number


def _parts(count: int, width: int) -> Iterator[slice]:
    """Slices of range(count), for `width` bytes of every temporary array a report."""
    step = max(TOGETHER // max(width, 1), 1)
    for start in range(0, count, step):
        yield slice(start, min(start + step, count))
