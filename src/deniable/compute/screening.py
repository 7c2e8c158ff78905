"""Who screens candidates: processors, or whatever else an executor brings as its `loops`.

Discovery looks at millions of strings and at every cell of its tables. Those loops, and only those,
go through here.
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

Singles = NDArray[np.float32]
Numbers = NDArray[np.int64]
Floats = NDArray[np.float64]
Rows = NDArray[np.uint8]
Moved = tuple[Numbers, Numbers, float]
ENDING = 9
"""Bytes that SHA-256 adds to a message at least: a bit, and the length."""


class ScreeningKernels(Protocol):
    """The loops that are long enough to be worth another processor's while."""

    def line_support(self, sent: NDArray[Any], lines: Numbers, cells: Numbers) -> NDArray[Any]:
        """[…, K] of sent[…, L, g]: for each cell, the sum over lines of its number's entry.

        lines : int64[L, d - 1], digits; cells : int64[K, d], digits
        """
        ...

    def evidence(self, header: bytes, rows: Rows, length: int, tables: Singles) -> Singles:
        """float32[n]: for the first `length` symbols of every row u8[n, M], the sum over families
        of tables[C, K] at their cells."""
        ...

    def log_mixtures(
        self, weight: Singles, parent: Numbers, sums: Singles, masses: Singles, precision: float
    ) -> Singles:
        """float32[n]: see `kernels.search.cell_sums.log_mixtures`."""
        ...

    def best(self, odds: Singles, count: int) -> Numbers:
        """Which entries of odds[n] are the largest, `count` of them or all; equals in any order."""
        ...

    def transforms(self, lattice: Numbers, size: int) -> Any:
        """Fourier transforms of the distribution of each row of lattice[P, K], modulo `size`; kept
        for `convolved`."""
        ...

    def convolved(self, transforms: Any, size: int, moved: Moved | None = None) -> Floats:
        """float64[size]: the distribution of the sum of one entry from each row, modulo `size`.

        moved : one entry of each row as it was and as it shall be, int64[P] each, and its share
        """
        ...

    def scan(
        self, header: bytes, row: Rows, first: int, stop: int, symbols: int, tables: Singles,
        least: float,
    ) -> Numbers:  # fmt: skip
        """Which of the strings that differ from `row` at first … stop have evidence ≥ least.

        Numbers of the symbols there, to the base of their number; see
        `kernels.search.domain_scan.scan`.
        """
        ...
