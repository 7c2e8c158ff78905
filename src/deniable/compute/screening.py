"""Kernels that score candidate strings.

Discovery looks at millions of strings and at every cell of its tables. Those loops, and only those,
are worth another processor's while: see `compute.cpu.screening` and `compute.gpu.screening`.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from deniable.kernels.array_types import Bytes, DeviceArray, Floats, Int64s, Singles

Number = TypeVar("Number", bound=np.generic)
Moved = tuple[Int64s, Int64s, float]


class StringRange(NamedTuple):
    """The strings that differ from u8[M] `row` at the places first … stop only."""

    row: Bytes
    first: int
    stop: int
    symbols: int

    @property
    def strings(self) -> int:
        """How many there are."""
        return int(self.symbols ** (self.stop - self.first))


class ScreeningKernels(Protocol):
    """The operations of screening that are written once for each kind of memory."""

    def line_support(self, sent: NDArray[Number], lines: Int64s, cells: Int64s) -> NDArray[Number]:
        """[…, K] of sent[…, L, g]: for each cell, the sum over lines of its number's entry.

        lines : int64[L, d - 1], digits; cells : int64[K, d], digits
        """
        ...

    def evidence(self, header: bytes, rows: Bytes, length: int, tables: Singles) -> Singles:
        """float32[n]: for the first `length` symbols of every row u8[n, M], the sum over families
        of tables[C, K] at their cells."""
        ...

    def log_mixtures(
        self, weight: Singles, parent: Int64s, sums: Singles, masses: Singles, precision: float
    ) -> Singles:
        """float32[n]: see `kernels.search.cell_sums.log_mixtures`."""
        ...

    def best(self, odds: Singles, count: int) -> Int64s:
        """Which entries of odds[n] are the largest, `count` of them or all; equals in any order."""
        ...

    def transforms(self, lattice: Int64s, size: int) -> DeviceArray:
        """Fourier transforms of the distribution of each row of lattice[P, K], modulo `size`; kept
        for `convolved`."""
        ...

    def convolved(self, transforms: DeviceArray, size: int, moved: Moved | None = None) -> Floats:
        """float64[size]: the distribution of the sum of one entry from each row, modulo `size`.

        moved : one entry of each row as it was and as it shall be, int64[P] each, and its share
        """
        ...

    def scan(self, header: bytes, stretch: StringRange, tables: Singles, least: float) -> Int64s:
        """Which strings of a stretch have evidence of at least `least`.

        Numbers of the symbols that differ, to the base of their number; see
        `kernels.search.domain_scan.scan`.
        """
        ...
