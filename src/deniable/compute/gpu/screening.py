"""Screening kernels on a device; see `compute.screening.ScreeningKernels`.

Strings are copied to the device and sums are copied back; tables are small. Sums are computed in
the same order as by the compiled loops, so that evidence is the same as on CPUs, bit for bit; only
logarithms and exponentials are rounded differently.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from deniable.compute.cpu.screening import hashed_sums
from deniable.compute.gpu.tensors import Tensor, device, to_device, to_numpy, torch
from deniable.compute.screening import Moved, Number, StringRange
from deniable.kernels.array_types import Bytes, Floats, Int64s, Singles
from deniable.kernels.hashing.lines import digits_of, line_numbers

STRINGS_PER_CHUNK = 1 << 21
"""Strings whose likelihood ratios are computed at a time."""
FREQUENCIES_PER_CHUNK = 1 << 14
"""Frequencies of the Fourier transforms that are processed at a time."""
TINY = 1e-30


class TensorScreening:
    """Screening on the device of this name; see `compute.screening.ScreeningKernels`."""

    def __init__(self, name: str) -> None:
        self._device = device(name)

    def line_support(self, sent: NDArray[Number], lines: Int64s) -> NDArray[Number]:
        """Return for each cell the sum over lines of the entry of its number."""
        base, count = sent.shape[-1], 1 + lines.shape[1]
        given = self._to_device(sent)
        digits = self._to_device(digits_of(np.arange(base**count), base, count))
        out = torch().zeros((*sent.shape[:-2], len(digits)), dtype=given.dtype, device=self._device)
        for number, line in enumerate(self._to_device(lines)):
            at = line_numbers(digits, line, sent.shape[-1])
            out += given[..., number, :].index_select(-1, at)
        return to_numpy(out)

    def evidence(self, header: bytes, rows: Bytes, length: int, tables: Singles) -> Singles:
        """Return the evidence for every string."""
        given = self._to_device(np.ascontiguousarray(rows))
        return to_numpy(self._sums(header, given, length, self._to_device(tables)))

    def log_mixtures(
        self, weight: Singles, parent: Int64s, sums: Singles, masses: Singles, precision: float
    ) -> Singles:
        """Return log-likelihood ratios of prefixes from their evidence."""
        weights, parents, each, mass = map(self._to_device, (weight, parent, sums, masses))
        out = torch().empty_like(each)
        for start in range(0, len(each), STRINGS_PER_CHUNK):
            chunk = slice(start, start + STRINGS_PER_CHUNK)
            log = mass * each[chunk, None] - mass**2 * (precision / 2)
            top = log.amax(dim=1)
            total = (weights[parents[chunk]] * (log - top[:, None]).exp_()).sum(dim=1)
            out[chunk] = top + (total + TINY).log()
        return to_numpy(out)

    def best(self, odds: Singles, count: int) -> Int64s:
        """Return the indices of the largest entries."""
        if len(odds) <= count:
            return np.arange(len(odds))
        return to_numpy(self._to_device(odds).topk(count, sorted=False).indices)

    def transforms(self, lattice: Int64s, size: int) -> Tensor:
        """Return Fourier transforms complex128[P, size/2 + 1], which stay on the device."""
        t, each = torch(), self._to_device(lattice)
        counts = t.zeros((len(lattice), size), dtype=t.float64, device=self._device)
        counts.scatter_add_(1, each % size, t.ones_like(each, dtype=t.float64))
        return t.fft.rfft(counts) / lattice.shape[1]

    def product(self, transforms: Tensor, size: int, moved: Moved | None = None) -> Tensor:
        """Return the product of the transforms, which stays on the device."""
        t = torch()
        product = t.empty_like(transforms[0])
        for start in range(0, len(product), FREQUENCIES_PER_CHUNK):
            each = transforms[:, start : start + FREQUENCIES_PER_CHUNK]
            if moved is not None:
                steps = t.arange(start, start + each.shape[1], device=self._device)
                old, new = (_turns(steps, self._to_device(by), size) for by in moved[:2])
                each = each + moved[2] * (new - old)
            product[start : start + FREQUENCIES_PER_CHUNK] = each.prod(dim=0)
        return product

    def distribution(self, product: Tensor, size: int) -> Floats:
        """Return the distribution of the sum of one entry from each row."""
        return to_numpy(torch().fft.irfft(product, size))

    def scan(self, header: bytes, strings: StringRange, tables: Singles, least: float) -> Int64s:
        """Return the numbers of the strings with enough evidence."""
        number = torch().arange(strings.size, device=self._device)
        rows, quotient = self._to_device(strings.row).repeat(len(number), 1), number
        for at in range(strings.stop - 1, strings.first - 1, -1):
            rows[:, at] = quotient % strings.symbols
            quotient = quotient // strings.symbols
        sums = self._sums(header, rows, len(strings.row), self._to_device(tables))
        return to_numpy(number[sums >= least])

    def _sums(self, header: bytes, rows: Tensor, length: int, tables: Tensor) -> Tensor:
        """Return the evidence for rows on the device; on CPUs, by the compiled loops."""
        if rows.is_cuda:
            from deniable.compute.gpu import fused_cells

            return fused_cells.hashed_sums(header, rows, length, tables)
        return self._to_device(hashed_sums(header, to_numpy(rows), length, to_numpy(tables)))

    def _to_device(self, array: object) -> Tensor:
        """Return an array as a tensor in the memory of the device."""
        return to_device(array, self._device)


def _turns(steps: Tensor, by: Tensor, size: int) -> Tensor:
    """Return exp(−2πi·step·by/size), complex128[P, frequencies]."""
    t = torch()
    angle = (steps * by[:, None] % size).double() * (-2 * np.pi / size)
    return t.polar(t.ones_like(angle), angle)
