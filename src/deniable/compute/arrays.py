"""What differs with the memory that arrays are in: this process's, or a GPU's.

`ArrayKernels` is everything that an analysis asks of such memory: to make likelihood rows from
packed reports, to keep them, to solve equations and to screen candidates. `compute.cpu` implements
it with NumPy and compiled loops, `compute.gpu` with tensors. Functions that are sent to workers
carry the kernels of their backend, so kernels can be pickled.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from deniable.compute.rows import LikelihoodRows
from deniable.compute.screening import ScreeningKernels
from deniable.errors import InputError
from deniable.kernels.array_types import (
    Bytes,
    DeviceArray,
    Floats,
    Integers,
    Mask,
    RowArrays,
    Singles,
    Strata,
    Weights,
)
from deniable.kernels.likelihood.bit_rows import BloomTables, ChannelTables
from deniable.kernels.likelihood.hash_rows import HashTables, SentNumbers


@dataclass(frozen=True, eq=False)
class Likelihood:
    """P(report | category) of N reports, row by row.

    rows : float32[N, m], largest entry of every row 1;
    log_scale : float64[N], natural logarithm of the factor removed: P = rows * exp(log_scale).
    """

    rows: DeviceArray
    log_scale: DeviceArray

    def __post_init__(self) -> None:
        """Validate shapes."""
        if self.rows.ndim != 2 or self.log_scale.shape != self.rows.shape[:1]:
            raise InputError(
                f"expected rows[N, m] and log_scale[N], got {self.rows.shape} and "
                f"{self.log_scale.shape}"
            )


class System(Protocol):
    """½ xᵀHx + cᵀx, with H float64[c, c] where the equations are solved."""

    def minimiser(self, free: Mask, shift: float) -> tuple[Floats, float]:
        """Its minimiser over the free variables, the others 0, with `shift` on H's diagonal, or
        ten times that as often as it takes; and the shift that it took."""
        ...

    def slope(self, x: Floats) -> Floats:
        """Hx + c."""
        ...


class ArrayKernels(Protocol):
    """The operations on arrays that are written once for each kind of memory."""

    @property
    def screening(self) -> ScreeningKernels:
        """What screens candidates."""
        ...

    def bloom_rows(self, tables: BloomTables, bits: Bytes, stratum: Integers) -> Likelihood:
        """Likelihood rows of packed reports u8[N, B] about hashed candidates."""
        ...

    def bloom_mixture(
        self, tables: BloomTables, share: Floats, bits: Bytes, stratum: Integers
    ) -> DeviceArray:
        """Log-likelihood float64[N] of a mixture of candidates, each with its share, and of
        unlisted strings, with the last share. share : float64[m + 1]"""
        ...

    def hash_rows(self, tables: HashTables, sent: SentNumbers) -> Likelihood:
        """Likelihood rows of reports that are numbers."""
        ...

    def hash_mixture(self, tables: HashTables, share: Floats, sent: SentNumbers) -> DeviceArray:
        """Log-likelihood of a mixture, as `bloom_mixture`, of reports that are numbers."""
        ...

    def channel_rows(self, tables: ChannelTables, bits: Bytes, stratum: Integers) -> Likelihood:
        """Likelihood rows of packed reports about categories with any P(bit = 1)."""
        ...

    def append_column(self, likelihood: Likelihood, column: DeviceArray) -> Likelihood:
        """Append a category given by its log-likelihood, float64[N], and rescale the rows."""
        ...

    def lay_out(
        self, rows: RowArrays, weights: Weights = None, strata: Strata = None
    ) -> LikelihoodRows:
        """Keep likelihood rows, one float32[N, m] per variable, for many passes; check that each
        row's largest entry is 1."""
        ...

    def placed(self, array: DeviceArray) -> DeviceArray:
        """An array in this memory; it may be there already."""
        ...

    def on_host(self, array: DeviceArray) -> DeviceArray:
        """An array as a NumPy array."""
        ...

    def row_maxima(self, rows: DeviceArray) -> DeviceArray:
        """The largest entry of every row, [N, 1]."""
        ...

    def product(self, x: DeviceArray, y: DeviceArray, weights: DeviceArray | None = None) -> Floats:
        """Σ_k w_k x_k y_kᵀ, weights [N, 1].

        In float64, so that rounding does not pass for a direction in which ratios vary.
        """
        ...

    def shuffle(self, strata: Sequence[RowArrays], seed: int, scores: Singles) -> None:
        """Fill float32[shuffles, mn] with Σ x yᵀ over random shuffles of y within strata.

        strata : x, y and weights of each; a row counts as often as its weight says.
        """
        ...

    def system(self, hessian: Floats, linear: Floats) -> System:
        """The equations of ½ xᵀHx + cᵀx."""
        ...
