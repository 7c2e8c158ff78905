"""Kernels that score candidate strings.

Discovery scores millions of strings and every cell of its tables. Only these loops are large enough
for a GPU: see `compute.cpu.screening` and `compute.gpu.screening`.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from deniable.kernels.array_types import Bytes, DeviceArray, Floats, Int64s, Singles

Number = TypeVar("Number", bound=np.generic)
Moved = tuple[Int64s, Int64s, float]
"""Old and new value of one entry per row, int64[P] each, and the share of that entry."""


class StringRange(NamedTuple):
    """All strings that equal `row`, u8[M], except at the places first … stop.

    symbols : size of the alphabet
    """

    row: Bytes
    first: int
    stop: int
    symbols: int

    @property
    def size(self) -> int:
        """Number of strings."""
        return int(self.symbols ** (self.stop - self.first))


class ScreeningKernels(Protocol):
    """Operations of screening in one kind of memory."""

    def line_support(self, sent: NDArray[Number], lines: Int64s) -> NDArray[Number]:
        """Return for each of the g^d cells the sum over lines of the entry of its number, […, g^d].

        sent : […, L, g], entries per line and number; lines : int64[L, d - 1], digits
        """
        ...

    def evidence(self, header: bytes, rows: Bytes, length: int, tables: Singles) -> Singles:
        """Return the evidence for every string, float32[n].

        It is the sum over families of the entry of tables[C, K] at the cell of the string, which is
        the first `length` symbols of a row u8[n, M].
        """
        ...

    def log_mixtures(
        self, weight: Singles, parent: Int64s, sums: Singles, masses: Singles, precision: float
    ) -> Singles:
        """Return log-likelihood ratios float32[n]; see `kernels.search.cell_sums.log_mixtures`."""
        ...

    def best(self, odds: Singles, count: int) -> Int64s:
        """Return the indices of the `count` largest entries of odds[n], in any order."""
        ...

    def transforms(self, lattice: Int64s, size: int) -> DeviceArray:
        """Return Fourier transforms of the distributions of the rows of lattice[P, K], modulo size.

        They are an argument of `product`.
        """
        ...

    def product(
        self, transforms: DeviceArray, size: int, moved: Moved | None = None
    ) -> DeviceArray:
        """Return the product of the transforms: that of the distribution of the rows' sum.

        moved : old and new value of one entry per row, int64[P] each, and the share of that entry
        """
        ...

    def distribution(self, product: DeviceArray, size: int) -> Floats:
        """Return the distribution of the sum of one entry per row, modulo size, float64[size]."""
        ...

    def scan(self, header: bytes, strings: StringRange, tables: Singles, least: float) -> Int64s:
        """Return the numbers of the strings of a range whose evidence is at least `least`.

        The number of a string has its variable symbols as digits; see
        `kernels.search.domain_scan.scan`.
        """
        ...
