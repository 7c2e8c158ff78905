"""Likelihood rows of packed reports on tensors.

`kernels.likelihood.bit_rows` and `kernels.likelihood.hash_rows` compute the same on CPUs. Tables
are NumPy arrays, reports are tensors, and the rows stay on the device of the reports.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np

from deniable.compute.arrays import Likelihood
from deniable.compute.gpu.tensors import Tensor, to_device, torch
from deniable.kernels.array_types import Floats
from deniable.kernels.hashing.lines import line_numbers
from deniable.kernels.likelihood.bit_rows import POPCOUNT, BloomTables, ChannelTables
from deniable.kernels.likelihood.hash_rows import HashTables

TEMPORARY_BYTES = 1 << 28
"""Approximate size of a temporary array."""


class BloomRatios:
    """Likelihood ratios of hashed candidates to the empty filter.

    The same as `kernels.likelihood.bit_rows.bloom_rows`. bits : u8[N, B]; stratum : integers[N]
    """

    def __init__(self, tables: BloomTables, bits: Tensor, stratum: Tensor) -> None:
        where = bits.device
        self.bits, self.stratum, self.ones = bits, stratum.long(), ones_in(bits, tables.width)
        self.positions = to_device(tables.positions, where)
        self.distinct, self.ratio = (
            to_device(tables.distinct, where),
            to_device(tables.ratio, where),
        )
        self.unlisted = to_device(tables.unlisted, where)[self.stratum, self.ones]
        self.empty = to_device(tables.empty, where)[self.stratum, self.ones]

    def rows(self) -> Likelihood:
        """Return likelihood rows."""
        return _scaled(self._ratios(), self.positions.shape[1], self.empty.clone())

    def mixture(self, share: Floats) -> Tensor:
        """Return log-likelihoods float64[N] for shares float64[m + 1], unlisted strings last."""
        total = _mixed(self._ratios(), share, share[-1] * self.unlisted)
        return total.log() + self.empty

    def _ratios(self) -> Iterator[tuple[slice, Tensor]]:
        """Yield slices of the reports, and their values float64[n, m]."""
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
    """Probabilities of reported numbers for candidates, by local hashing.

    The same as `kernels.likelihood.hash_rows.number_rows`. number, stratum, line : int64[N]
    """

    def __init__(self, tables: HashTables, number: Tensor, stratum: Tensor, line: Tensor) -> None:
        where = number.device
        self.number, self.stratum, self.line, self.base = number, stratum, line, tables.base
        self.lines, self.cells = to_device(tables.lines, where), to_device(tables.cells, where)
        self.chance = to_device(tables.chance, where)

    def rows(self) -> Likelihood:
        """Return likelihood rows."""
        candidates = self.cells.shape[1]
        scale = torch().zeros(len(self.number), dtype=self.chance.dtype, device=self.chance.device)
        return _scaled(
            self._chances(), candidates, scale if candidates else scale + self.chance[2].log()
        )

    def mixture(self, share: Floats) -> Tensor:
        """Return log-likelihoods float64[N] for shares float64[m + 1], unknown cells last."""
        unknown = (share[-1] * self.chance[2]).repeat(len(self.number))
        return _mixed(self._chances(), share, unknown).log()

    def _chances(self) -> Iterator[tuple[slice, Tensor]]:
        """Yield slices of the reports, and their values float64[n, m]."""
        for part in _parts(len(self.number), 8 * self.cells.shape[1] * self.cells.shape[2]):
            cells, line = self.cells[self.stratum[part]], self.lines[self.line[part]]
            own = line_numbers(cells, line[:, None], self.base)
            kind = (own != self.number[part][:, None]).long()
            yield part, self.chance[torch().where(cells[:, :, 0] < 0, 2, kind)]


def channel_rows(tables: ChannelTables, bits: Tensor, stratum: Tensor) -> Likelihood:
    """Return likelihood rows for any categories; as `kernels.likelihood.bit_rows.channel_rows`."""
    t, where = torch(), bits.device
    strata, width, categories = tables.logit.shape
    logits, bases = to_device(tables.logit, where), to_device(tables.base, where)
    rows = t.empty((len(bits), categories), dtype=t.float32, device=where)
    scale = t.zeros(len(bits), dtype=t.float64, device=where)
    order = t.argsort(stratum, stable=True)
    ends = t.bincount(stratum, minlength=strata).cumsum(0).tolist() if categories else []
    for s, (first, last) in enumerate(zip([0, *ends], ends, strict=False)):
        for part in _parts(last - first, 8 * (width + categories)):
            reports = order[first:last][part]
            total = bases[s] + unpacked(bits[reports], width).to(t.float64) @ logits[s]
            largest = total.amax(dim=1)
            rows[reports] = (total - largest[:, None]).to(t.float32).exp_()
            scale[reports] = largest
    return Likelihood(rows, scale)


def append_column(likelihood: Likelihood, column: Tensor) -> Likelihood:
    """Append a column of log-likelihoods; as `kernels.likelihood.bit_rows.append_column`."""
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
    """Return likelihood rows of these values float64[n, m]; log_scale : float64[N], of a factor."""
    t = torch()
    rows = t.empty((len(log_scale), categories), dtype=t.float32, device=log_scale.device)
    for part, values in parts if categories else ():
        largest = values.amax(dim=1)
        rows[part] = values / largest[:, None]
        log_scale[part] += largest.log()
    return Likelihood(rows, log_scale)


def _mixed(parts: Iterable[tuple[slice, Tensor]], share: Floats, total: Tensor) -> Tensor:
    """Return total float64[N] plus the sum of the values float64[n, m] times their shares."""
    each = to_device(share, total.device)[:-1]
    for part, values in parts:
        total[part] += values @ each
    return total


def ones_in(bits: Tensor, width: int) -> Tensor:
    """Return the number of ones among the first `width` bits of every report, int64[N]."""
    mask = np.zeros(bits.shape[1], np.uint8)
    mask[: width // 8] = 255
    if width % 8:
        mask[width // 8] = (1 << width % 8) - 1
    popcount = to_device(POPCOUNT, bits.device)
    return popcount[(bits & to_device(mask, bits.device)).int()].sum(dim=1)


def unpacked(bits: Tensor, width: int) -> Tensor:
    """Return the bits of packed reports, u8[N, width]."""
    shift = torch().arange(8, dtype=bits.dtype, device=bits.device)
    return ((bits[:, :, None] >> shift) & 1).flatten(1)[:, :width]


def _parts(count: int, width: int) -> Iterator[slice]:
    """Yield slices of range(count) for temporary arrays of `width` bytes per report."""
    step = max(TEMPORARY_BYTES // max(width, 1), 1)
    for start in range(0, count, step):
        yield slice(start, min(start + step, count))
