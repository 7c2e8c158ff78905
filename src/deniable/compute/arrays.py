"""Operations on arrays that are implemented once per kind of memory: this process's, or a GPU's.

`ArrayKernels` has all operations that an analysis needs: compute likelihood rows from packed
reports, keep them for many passes, solve linear systems, and screen candidates. `compute.cpu`
implements it with NumPy and compiled loops, `compute.gpu` with tensors. Functions that are sent to
workers carry the kernels of their backend, so kernels can be pickled.
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
    """Likelihoods P(report | category) of N reports, one row per report.

    rows : float32[N, m]; the largest entry of every row is 1;
    log_scale : float64[N], natural logarithm of the removed factor: P = rows * exp(log_scale).
    """

    rows: DeviceArray
    log_scale: DeviceArray

    def __post_init__(self) -> None:
        """Raise InputError if the shapes do not fit."""
        if self.rows.ndim != 2 or self.log_scale.shape != self.rows.shape[:1]:
            raise InputError(
                f"rows must be [N, m] and log_scale [N], got {self.rows.shape} and "
                f"{self.log_scale.shape}"
            )


class System(Protocol):
    """The quadratic function ½ xᵀHx + cᵀx, with H float64[c, c]."""

    def minimiser(self, free: Mask, shift: float) -> tuple[Floats, float]:
        """Return the minimiser over the free variables, and the shift of H's diagonal used for it.

        All other variables are 0. `shift` is added to the diagonal of H; it is multiplied by 10
        until H is positive definite.
        """
        ...

    def slope(self, x: Floats) -> Floats:
        """Return the gradient Hx + c."""
        ...


class ArrayKernels(Protocol):
    """Operations on arrays in one kind of memory."""

    @property
    def screening(self) -> ScreeningKernels:
        """Kernels that score candidate strings."""
        ...

    def bloom_rows(self, tables: BloomTables, bits: Bytes, stratum: Integers) -> Likelihood:
        """Return likelihood rows of packed reports u8[N, B] for hashed candidates."""
        ...

    def bloom_mixture(
        self, tables: BloomTables, share: Floats, bits: Bytes, stratum: Integers
    ) -> DeviceArray:
        """Return log-likelihoods float64[N] of a mixture of candidates and unlisted strings.

        share : float64[m + 1], shares of the candidates, then of unlisted strings
        """
        ...

    def hash_rows(self, tables: HashTables, sent: SentNumbers) -> Likelihood:
        """Return likelihood rows of reports by local hashing."""
        ...

    def hash_mixture(self, tables: HashTables, share: Floats, sent: SentNumbers) -> DeviceArray:
        """Return log-likelihoods of a mixture, as `bloom_mixture`, of reports by local hashing."""
        ...

    def channel_rows(self, tables: ChannelTables, bits: Bytes, stratum: Integers) -> Likelihood:
        """Return likelihood rows of packed reports for categories with any P(bit = 1)."""
        ...

    def append_column(self, likelihood: Likelihood, column: DeviceArray) -> Likelihood:
        """Append a category given by its log-likelihoods float64[N], and rescale the rows."""
        ...

    def lay_out(
        self, rows: RowArrays, weights: Weights = None, strata: Strata = None
    ) -> LikelihoodRows:
        """Store likelihood rows, one float32[N, m] per variable, for many passes.

        Raises InputError if the largest entry of a row is not 1.
        """
        ...

    def to_device(self, array: DeviceArray) -> DeviceArray:
        """Return an array in this memory; it may be there already."""
        ...

    def to_numpy(self, array: DeviceArray) -> DeviceArray:
        """Return an array of this memory as a NumPy array."""
        ...

    def row_maxima(self, rows: DeviceArray) -> DeviceArray:
        """Return the largest entry of every row, [N, 1]."""
        ...

    def product(self, x: DeviceArray, y: DeviceArray, weights: DeviceArray | None = None) -> Floats:
        """Return Σ_k w_k x_k y_kᵀ, computed in float64; weights : [N, 1].

        In float32, rounding errors would look like a direction in which ratios vary.
        """
        ...

    def shuffle(self, strata: Sequence[RowArrays], seed: int, scores: Singles) -> None:
        """Fill scores float32[shuffles, mn] with Σ x yᵀ over random shuffles of y within strata.

        strata : x, y and weights per stratum; each row is repeated as often as its weight says.
        """
        ...

    def system(self, hessian: Floats, linear: Floats) -> System:
        """Return the quadratic function ½ xᵀHx + cᵀx."""
        ...
