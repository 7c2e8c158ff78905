"""Candidates screened on a device; see `compute.screening.ScreeningKernels`.

Strings go to the device and sums come back; tables are small beside them. Sums are made in the
same order as by the compiled loops, so that evidence agrees with the processors' bit for bit, and
only logarithms and exponentials round differently.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from deniable.compute.cpu.screening import hashed_sums
from deniable.compute.gpu.tensors import Tensor, device, on_host, placed, torch
from deniable.compute.screening import Moved, Number, StringRange
from deniable.kernels.array_types import Bytes, Floats, Int64s, Singles
from deniable.kernels.hashing.lines import line_numbers

STRINGS_PER_CHUNK = 1 << 21
"""Strings whose odds are worked on together."""
FREQUENCIES_PER_CHUNK = 1 << 14
"""Frequencies of all transforms that are worked on together."""
TINY = 1e-30


class TensorScreening:
    """Screening on the device of this name."""

    def __init__(self, name: str) -> None:
        self._device = device(name)

    def line_support(self, sent: NDArray[Number], lines: Int64s, cells: Int64s) -> NDArray[Number]:
        """All tables at once."""
        given, digits = self._placed(sent), self._placed(cells)
        out = torch().zeros((*sent.shape[:-2], len(cells)), dtype=given.dtype, device=self._device)
        for number, line in enumerate(self._placed(lines)):
            at = line_numbers(digits, line, sent.shape[-1])
            out += given[..., number, :].index_select(-1, at)
        return on_host(out)

    def evidence(self, header: bytes, rows: Bytes, length: int, tables: Singles) -> Singles:
        """Millions at a time."""
        given = self._placed(np.ascontiguousarray(rows))
        return on_host(self._sums(header, given, length, self._placed(tables)))

    def log_mixtures(
        self, weight: Singles, parent: Int64s, sums: Singles, masses: Singles, precision: float
    ) -> Singles:
        """Millions at a time."""
        weights, parents, each, mass = map(self._placed, (weight, parent, sums, masses))
        out = torch().empty_like(each)
        for start in range(0, len(each), STRINGS_PER_CHUNK):
            some = slice(start, start + STRINGS_PER_CHUNK)
            log = mass * each[some, None] - mass**2 * (precision / 2)
            top = log.amax(dim=1)
            total = (weights[parents[some]] * (log - top[:, None]).exp_()).sum(dim=1)
            out[some] = top + (total + TINY).log()
        return on_host(out)

    def best(self, odds: Singles, count: int) -> Int64s:
        """By `torch.topk`."""
        if len(odds) <= count:
            return np.arange(len(odds))
        return on_host(self._placed(odds).topk(count, sorted=False).indices)

    def transforms(self, lattice: Int64s, size: int) -> Tensor:
        """complex128[P, size/2 + 1], which stays on the device."""
        t, each = torch(), self._placed(lattice)
        counts = t.zeros((len(lattice), size), dtype=t.float64, device=self._device)
        counts.scatter_add_(1, each % size, t.ones_like(each, dtype=t.float64))
        return t.fft.rfft(counts) / lattice.shape[1]

    def convolved(self, transforms: Tensor, size: int, moved: Moved | None = None) -> Floats:
        """Some frequencies at a time."""
        t = torch()
        product = t.empty_like(transforms[0])
        for start in range(0, len(product), FREQUENCIES_PER_CHUNK):
            each = transforms[:, start : start + FREQUENCIES_PER_CHUNK]
            if moved is not None:
                steps = t.arange(start, start + each.shape[1], device=self._device)
                was, now = (_turns(steps, self._placed(by), size) for by in moved[:2])
                each = each + moved[2] * (now - was)
            product[start : start + FREQUENCIES_PER_CHUNK] = each.prod(dim=0)
        return on_host(t.fft.irfft(product, size))

    def scan(self, header: bytes, stretch: StringRange, tables: Singles, least: float) -> Int64s:
        """A stretch at once."""
        number = torch().arange(stretch.strings, device=self._device)
        rows, left = self._placed(stretch.row).repeat(len(number), 1), number
        for at in range(stretch.stop - 1, stretch.first - 1, -1):
            rows[:, at] = left % stretch.symbols
            left = left // stretch.symbols
        sums = self._sums(header, rows, len(stretch.row), self._placed(tables))
        return on_host(number[sums >= least])

    def _sums(self, header: bytes, rows: Tensor, length: int, tables: Tensor) -> Tensor:
        """Evidence of rows that are on the device; without a GPU the compiled loops serve."""
        if rows.is_cuda:
            from deniable.compute.gpu import fused_cells

            return fused_cells.hashed_sums(header, rows, length, tables)
        return self._placed(hashed_sums(header, on_host(rows), length, on_host(tables)))

    def _placed(self, array: object) -> Tensor:
        return placed(array, self._device)


def _turns(steps: Tensor, by: Tensor, size: int) -> Tensor:
    """complex128[P, frequencies]: e to the −2πi·step·by/size."""
    t = torch()
    angle = (steps * by[:, None] % size).double() * (-2 * np.pi / size)
    return t.polar(t.ones_like(angle), angle)
