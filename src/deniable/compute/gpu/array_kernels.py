"""The array kernels of a GPU: PyTorch tensors in its memory."""

from __future__ import annotations

from collections.abc import Sequence

from deniable.compute.arrays import Likelihood
from deniable.compute.gpu import likelihood_rows as making
from deniable.compute.gpu import tensor_rows
from deniable.compute.gpu.screening import TensorScreening
from deniable.compute.gpu.tensors import Tensor, device, on_host, placed, torch
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

ROWS_PER_PRODUCT = 1 << 20
"""Rows whose copies in double precision exist together."""


class TensorKernels:
    """Array kernels for the memory of the device of this name; see `compute.arrays.ArrayKernels`.

    name : "cuda", "cuda:1", or "cpu", the same code on processors.
    """

    def __init__(self, name: str) -> None:
        self.device = device(name)
        self.screening = TensorScreening(name)

    def bloom_rows(self, tables: BloomTables, bits: Bytes, stratum: Integers) -> Likelihood:
        """Likelihood rows of packed reports about hashed candidates."""
        return making.BloomRatios(tables, *self._placed(bits, stratum)).rows()

    def bloom_mixture(
        self, tables: BloomTables, share: Floats, bits: Bytes, stratum: Integers
    ) -> Tensor:
        """Log-likelihood of a mixture of candidates and unlisted strings."""
        return making.BloomRatios(tables, *self._placed(bits, stratum)).mixture(share)

    def hash_rows(self, tables: HashTables, sent: SentNumbers) -> Likelihood:
        """Likelihood rows of reports that are numbers."""
        return making.HashChances(tables, *self._placed(*sent)).rows()

    def hash_mixture(self, tables: HashTables, share: Floats, sent: SentNumbers) -> Tensor:
        """Log-likelihood of a mixture, of reports that are numbers."""
        return making.HashChances(tables, *self._placed(*sent)).mixture(share)

    def channel_rows(self, tables: ChannelTables, bits: Bytes, stratum: Integers) -> Likelihood:
        """Likelihood rows of packed reports about categories with any P(bit = 1)."""
        return making.channel_rows(tables, *self._placed(bits, stratum))

    def append_column(self, likelihood: Likelihood, column: Tensor) -> Likelihood:
        """Append a category given by its log-likelihood, and rescale the rows."""
        return making.append_column(likelihood, column)

    def lay_out(
        self, rows: RowArrays, weights: Weights = None, strata: Strata = None
    ) -> tensor_rows.TensorRows:
        """Put rows into the device's memory."""
        return tensor_rows.lay_out(self, rows, weights, strata)

    def placed(self, array: DeviceArray) -> Tensor:
        """A tensor in the device's memory."""
        return placed(array, self.device)

    def on_host(self, array: Tensor) -> DeviceArray:
        """A NumPy array."""
        return on_host(array)

    def row_maxima(self, rows: Tensor) -> Tensor:
        """The largest entry of every row, [N, 1]."""
        return rows.amax(dim=1, keepdim=True)

    def product(self, x: Tensor, y: Tensor, weights: Tensor | None = None) -> Floats:
        """Chunk by chunk."""
        t = torch()
        product = t.zeros((x.shape[1], y.shape[1]), dtype=t.float64, device=x.device)
        for start in range(0, len(x), ROWS_PER_PRODUCT):
            chunk = slice(start, start + ROWS_PER_PRODUCT)
            left = x[chunk].double() if weights is None else x[chunk].double() * weights[chunk]
            product += left.mT @ y[chunk].double()
        return on_host(product)

    def shuffle(self, strata: Sequence[RowArrays], seed: int, scores: Singles) -> None:
        """By the device's generator."""
        t = torch()
        generator = t.Generator(self.device).manual_seed(seed & (2**63 - 1))
        whole = [
            [side.repeat_interleave(weights.long(), 0) for side in (x, y)]
            for x, y, weights in strata
        ]
        for score in scores:
            orders = (t.randperm(len(y), generator=generator, device=y.device) for _, y in whole)
            parts = [x.mT @ y[order] for (x, y), order in zip(whole, orders, strict=True)]
            score[:] = on_host(sum(parts[1:], parts[0])).ravel()

    def system(self, hessian: Floats, linear: Floats) -> TensorSystem:
        """Equations that the device solves."""
        return TensorSystem(*self._placed(hessian, linear))

    def _placed(self, *arrays: object) -> list[Tensor]:
        return [self.placed(array) for array in arrays]


class TensorSystem:
    """½ xᵀHx + cᵀx with H float64[c, c] in a device's memory; see `compute.arrays.System`."""

    def __init__(self, hessian: Tensor, linear: Tensor) -> None:
        self._hessian, self._linear = hessian, linear

    def minimiser(self, free: Mask, shift: float) -> tuple[Floats, float]:
        """By Cholesky factorisation."""
        t = torch()
        chosen = placed(free, self._hessian.device).nonzero()[:, 0]
        x = t.zeros_like(self._linear)
        if len(chosen):
            block = self._hessian[chosen[:, None], chosen]
            diagonal = block.diagonal().clone()
            while True:
                block.diagonal().copy_(diagonal + shift)
                factor, failed = t.linalg.cholesky_ex(block)
                if not int(failed):
                    break
                shift *= 10.0
            x[chosen] = t.cholesky_solve(-self._linear[chosen, None], factor)[:, 0]
        return on_host(x), shift

    def slope(self, x: Floats) -> Floats:
        """Hx + c, float64[c]."""
        return on_host(self._hessian @ placed(x, self._hessian.device) + self._linear)
