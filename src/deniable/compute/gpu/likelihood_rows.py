"""Likelihood rows of packed reports, as in `kernels.likelihood.bit_rows` and
`kernels.likelihood.hash_rows`.

Tables come as NumPy arrays, the reports as tensors, and the rows stay where the reports are.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np

from deniable.compute.arrays import Likelihood
from deniable.compute.gpu.tensors import Tensor, placed, torch
from deniable.kernels.array_types import Floats
from deniable.kernels.hashing.lines import line_numbers
from deniable.kernels.likelihood.bit_rows import POPCOUNT, BloomTables, ChannelTables
from deniable.kernels.likelihood.hash_rows import HashTables

TEMPORARY_BYTES = 1 << 28
"""Bytes of a temporary array, about."""


class BloomRatios:
    """Candidates by their ratio to the empty filter; as `kernels.likelihood.bit_rows.sparse_rows`.

    bits : u8[N, B]; stratum : integers[N]
    """

    def __init__(self, tables: BloomTables, bits: Tensor, stratum: Tensor) -> None:
        where = bits.device
        self.bits, self.stratum, self.ones = bits, stratum.long(), ones_in(bits, tables.bits)
        self.positions = placed(tables.positions, where)
        self.distinct, self.ratio = placed(tables.distinct, where), placed(tables.ratio, where)
        self.unlisted = placed(tables.unlisted, where)[self.stratum, self.ones]
        self.empty = placed(tables.empty, where)[self.stratum, self.ones]

    def rows(self) -> Likelihood:
        """Likelihood rows."""
        return _scaled(self._ratios(), self.positions.shape[1], self.empty.clone())

    def mixture(self, share: Floats) -> Tensor:
        """float64[N]: log-likelihood by shares float64[m + 1], an unlisted string's last."""
        total = _mixed(self._ratios(), share, share[-1] * self.unlisted)
        return total.log() + self.empty

    def _ratios(self) -> Iterator[tuple[slice, Tensor]]:
        """float64[some, m], some reports at a time."""
        _, candidates, hashes = self.positions.shape
        number = torch().arange(hashes, device=self.bits.device)
        for part in _parts(len(self.bits), 8 * candidates * hashes):
            s = self.stratum[part]
            at = self.positions[s].long().clamp_min_(0)
            byte = self.bits[part].gather(1, (at >> 3).flatten(1)).view(at.shape)
            distinct = self.distinct[s].long()
            informative = number < distinct[:, :, None]
            count = ((byte >> (at & 7).to(byte.dtype)) & 1).mul_(informative).sum(dim=2)
            place = (s[:, None] * (hashes + 1) + distinct) * (hashes + 1) + count
            ratios = self.ratio.flatten()[place]
            yield part, torch().where(distinct > 0, ratios, self.unlisted[part][:, None])


class HashChances:
    """Candidates by P(number); as `kernels.likelihood.hash_rows.number_rows`.

    number, stratum, line : int64[N]
    """

    def __init__(self, tables: HashTables, number: Tensor, stratum: Tensor, line: Tensor) -> None:
        where = number.device
        self.number, self.stratum, self.line, self.base = number, stratum, line, tables.base
        self.lines, self.cells = placed(tables.lines, where), placed(tables.cells, where)
        self.chance = placed(tables.chance, where)

    def rows(self) -> Likelihood:
        """Likelihood rows."""
        candidates = self.cells.shape[1]
        scale = torch().zeros(len(self.number), dtype=self.chance.dtype, device=self.chance.device)
        return _scaled(
            self._chances(), candidates, scale if candidates else scale + self.chance[2].log()
        )

    def mixture(self, share: Floats) -> Tensor:
        """float64[N]: log-likelihood by shares float64[m + 1], that of cells not known last."""
        unknown = (share[-1] * self.chance[2]).repeat(len(self.number))
        return _mixed(self._chances(), share, unknown).log()

    def _chances(self) -> Iterator[tuple[slice, Tensor]]:
        """float64[some, m], some reports at a time."""
        for part in _parts(len(self.number), 8 * self.cells.shape[1] * self.cells.shape[2]):
            cells, line = self.cells[self.stratum[part]], self.lines[self.line[part]]
            own = line_numbers(cells, line[:, None], self.base)
            kind = (own != self.number[part][:, None]).long()
            yield part, self.chance[torch().where(cells[:, :, 0] < 0, 2, kind)]


def channel_rows(tables: ChannelTables, bits: Tensor, stratum: Tensor) -> Likelihood:
    """Rows of any channel; as `kernels.likelihood.bit_rows.dense_rows`."""
    t, where = torch(), bits.device
    strata, width, categories = tables.logit.shape
    logits, bases = placed(tables.logit, where), placed(tables.base, where)
    rows = t.empty((len(bits), categories), dtype=t.float32, device=where)
    scale = t.zeros(len(bits), dtype=t.float64, device=where)
    order = t.argsort(stratum, stable=True)
    ends = t.bincount(stratum, minlength=strata).cumsum(0).tolist() if categories else []
    for s, (first, last) in enumerate(zip([0, *ends], ends, strict=False)):
        for part in _parts(last - first, 8 * (width + categories)):
            some = order[first:last][part]
            total = bases[s] + unpacked(bits[some], width).to(t.float64) @ logits[s]
            largest = total.amax(dim=1)
            rows[some] = (total - largest[:, None]).to(t.float32).exp_()
            scale[some] = largest
    return Likelihood(rows, scale)


def append_column(likelihood: Likelihood, column: Tensor) -> Likelihood:
    """Append a column; as `kernels.likelihood.bit_rows.append_column`."""
    t, rows = torch(), likelihood.rows
    scale = likelihood.log_scale if rows.shape[1] else column
    relative = column - scale
    factor = (-relative.clamp_min(0)).exp().to(t.float32)
    last = relative.clamp_max(0).exp().to(t.float32)
    both = t.cat([rows * factor[:, None], last[:, None]], dim=1)
    return Likelihood(both, t.maximum(column, scale))


def _scaled(
    parts: Iterable[tuple[slice, Tensor]], categories: int, log_scale: Tensor
) -> Likelihood:
    """Rows of these values float64[some, m]; log_scale : float64[N], of a factor of theirs."""
    t = torch()
    rows = t.empty((len(log_scale), categories), dtype=t.float32, device=log_scale.device)
    for part, values in parts if categories else ():
        largest = values.amax(dim=1)
        rows[part] = values / largest[:, None]
        log_scale[part] += largest.log()
    return Likelihood(rows, log_scale)


def _mixed(parts: Iterable[tuple[slice, Tensor]], share: Floats, total: Tensor) -> Tensor:
    """`total` float64[N], and these values float64[some, m] by their shares."""
    each = placed(share, total.device)[:-1]
    for part, values in parts:
        total[part] += values @ each
    return total


def ones_in(bits: Tensor, width: int) -> Tensor:
    """int64[N]: ones among the first `width` bits of every report; padding is ignored."""
    mask = np.zeros(bits.shape[1], np.uint8)
    mask[: width // 8] = 255
    if width % 8:
        mask[width // 8] = (1 << width % 8) - 1
    popcount = placed(POPCOUNT, bits.device)
    return popcount[(bits & placed(mask, bits.device)).int()].sum(dim=1)


def unpacked(bits: Tensor, width: int) -> Tensor:
    """u8[N, width]: one bit each."""
    shift = torch().arange(8, dtype=bits.dtype, device=bits.device)
    return ((bits[:, :, None] >> shift) & 1).flatten(1)[:, :width]


def _parts(count: int, width: int) -> Iterator[slice]:
    """Slices of range(count), for `width` bytes of every temporary array a report."""
    step = max(TEMPORARY_BYTES // max(width, 1), 1)
    for start in range(0, count, step):
        yield slice(start, min(start + step, count))
