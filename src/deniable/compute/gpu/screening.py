"""Candidates screened on a device: the `Loops` of `compute.screening` on tensors.

Strings go to the device and sums come back; tables are small beside them.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from deniable.compute.gpu import cells
from deniable.compute.gpu.tensors import Tensor, device, on_host, placed, torch

Floats = NDArray[np.float64]
Singles = NDArray[np.float32]
Numbers = NDArray[np.int64]
Rows = NDArray[np.uint8]


class TensorScreening:
    """On the device of this name."""

    def __init__(self, name: str) -> None:
        self._where = device(name)

    def line_support(self, sent: NDArray[Any], lines: Numbers, of: Numbers) -> NDArray[Any]:
        """All tables at once."""
        return on_host(cells.line_support(placed(sent, self._where), lines, of))

    def evidence(self, header: bytes, rows: Rows, length: int, tables: Singles) -> Singles:
        """Millions at a time."""
        at = placed(np.ascontiguousarray(rows), self._where)
        return on_host(cells.evidence_of(header, at, length, placed(tables, self._where)))

    def log_mixtures(
        self, weight: Singles, parent: Numbers, sums: Singles, masses: Singles, precision: float
    ) -> Singles:
        """Millions at a time."""
        weight, parent, sums, masses = (
            placed(array, self._where) for array in (weight, parent, sums, masses)
        )
        return on_host(cells.log_mixtures(weight, parent, sums, masses, precision))

    def best(self, odds: Singles, count: int) -> Numbers:
        """By `torch.topk`."""
        if len(odds) <= count:
            return np.arange(len(odds))
        return on_host(placed(odds, self._where).topk(count, sorted=False).indices)

    def transforms(self, lattice: Numbers, size: int) -> Tensor:
        """complex128[P, size/2 + 1], which stays on the device."""
        return cells.transforms(placed(lattice, self._where), size)

    def convolved(
        self, transforms: Tensor, size: int, moved: tuple[Numbers, Numbers, float] | None = None
    ) -> Floats:
        """Some frequencies at a time."""
        if moved is not None:
            moved = (placed(moved[0], self._where), placed(moved[1], self._where), moved[2])
        return on_host(cells.convolved(transforms, size, moved))

    def scan(
        self, header: bytes, row: Rows, first: int, stop: int, symbols: int, tables: Singles,
        least: float,
    ) -> Numbers:  # fmt: skip
        """A stretch at once."""
        number = torch().arange(symbols ** (stop - first), device=self._where)
        rows = placed(row, self._where).repeat(len(number), 1)
        rest = number
        for at in range(stop - 1, first - 1, -1):
            rows[:, at] = rest % symbols
            rest = rest // symbols
        found = cells.evidence_of(header, rows, len(row), placed(tables, self._where))
        return on_host(number[found >= least])
