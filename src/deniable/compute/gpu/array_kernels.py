"""Array kernels for a GPU: PyTorch tensors in its memory."""

from __future__ import annotations

from collections.abc import Sequence

from deniable.compute.arrays import Likelihood
from deniable.compute.gpu import likelihood_rows, tensor_rows
from deniable.compute.gpu.screening import TensorScreening
from deniable.compute.gpu.tensors import Tensor, device, to_device, to_numpy, torch
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
"""Rows that are copied to double precision at a time."""


class TensorKernels:
    """Array kernels for the memory of a device; see `compute.arrays.ArrayKernels`.

    name : "cuda", "cuda:1", or "cpu", which runs the same code on CPUs.
    """

    def __init__(self, name: str) -> None:
        self.device = device(name)
        self.screening = TensorScreening(name)

    def bloom_rows(self, tables: BloomTables, bits: Bytes, stratum: Integers) -> Likelihood:
        """Return likelihood rows of packed reports for hashed candidates."""
        return likelihood_rows.BloomRatios(tables, *self._to_device(bits, stratum)).rows()

    def bloom_mixture(
        self, tables: BloomTables, share: Floats, bits: Bytes, stratum: Integers
    ) -> Tensor:
        """Return log-likelihoods of a mixture of candidates and unlisted strings."""
        return likelihood_rows.BloomRatios(tables, *self._to_device(bits, stratum)).mixture(share)

    def hash_rows(self, tables: HashTables, sent: SentNumbers) -> Likelihood:
        """Return likelihood rows of reports by local hashing."""
        return likelihood_rows.HashChances(tables, *self._to_device(*sent)).rows()

    def hash_mixture(self, tables: HashTables, share: Floats, sent: SentNumbers) -> Tensor:
        """Return log-likelihoods of a mixture, of reports by local hashing."""
        return likelihood_rows.HashChances(tables, *self._to_device(*sent)).mixture(share)

    def channel_rows(self, tables: ChannelTables, bits: Bytes, stratum: Integers) -> Likelihood:
        """Return likelihood rows of packed reports for categories with any P(bit = 1)."""
        return likelihood_rows.channel_rows(tables, *self._to_device(bits, stratum))

    def append_column(self, likelihood: Likelihood, column: Tensor) -> Likelihood:
        """Append a category given by its log-likelihoods, and rescale the rows."""
        return likelihood_rows.append_column(likelihood, column)

    def lay_out(
        self, rows: RowArrays, weights: Weights = None, strata: Strata = None
    ) -> tensor_rows.TensorRows:
        """Store likelihood rows in the memory of the device."""
        return tensor_rows.lay_out(self, rows, weights, strata)

    def to_device(self, array: DeviceArray) -> Tensor:
        """Return an array as a tensor in the memory of the device."""
        return to_device(array, self.device)

    def to_numpy(self, array: Tensor) -> DeviceArray:
        """Return a tensor as a NumPy array."""
        return to_numpy(array)

    def row_maxima(self, rows: Tensor) -> Tensor:
        """Return the largest entry of every row, [N, 1]."""
        return rows.amax(dim=1, keepdim=True)

    def product(self, x: Tensor, y: Tensor, weights: Tensor | None = None) -> Floats:
        """Return Σ w x yᵀ in float64, computed chunk by chunk."""
        t = torch()
        product = t.zeros((x.shape[1], y.shape[1]), dtype=t.float64, device=x.device)
        for start in range(0, len(x), ROWS_PER_PRODUCT):
            chunk = slice(start, start + ROWS_PER_PRODUCT)
            left = x[chunk].double() if weights is None else x[chunk].double() * weights[chunk]
            product += left.mT @ y[chunk].double()
        return to_numpy(product)

    def shuffle(self, strata: Sequence[RowArrays], seed: int, scores: Singles) -> None:
        """Fill scores with Σ x yᵀ over random shuffles of y within strata."""
        t = torch()
        generator = t.Generator(self.device).manual_seed(seed & (2**63 - 1))
        repeated = [
            [side.repeat_interleave(weights.long(), 0) for side in (x, y)]
            for x, y, weights in strata
        ]
        for score in scores:
            orders = (t.randperm(len(y), generator=generator, device=y.device) for _, y in repeated)
            parts = [x.mT @ y[order] for (x, y), order in zip(repeated, orders, strict=True)]
            score[:] = to_numpy(sum(parts[1:], parts[0])).ravel()

    def system(self, hessian: Floats, linear: Floats) -> TensorSystem:
        """Return the quadratic function ½ xᵀHx + cᵀx."""
        return TensorSystem(*self._to_device(hessian, linear))

    def _to_device(self, *arrays: object) -> list[Tensor]:
        """Return arrays as tensors in the memory of the device."""
        return [self.to_device(array) for array in arrays]


class TensorSystem:
    """The quadratic function ½ xᵀHx + cᵀx on a device; see `compute.arrays.System`."""

    def __init__(self, hessian: Tensor, linear: Tensor) -> None:
        self._hessian, self._linear = hessian, linear

    def minimiser(self, free: Mask, shift: float) -> tuple[Floats, float]:
        """Return the minimiser over the free variables, and the shift that it needed."""
        t = torch()
        chosen = to_device(free, self._hessian.device).nonzero()[:, 0]
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
        return to_numpy(x), shift

    def slope(self, x: Floats) -> Floats:
        """Return the gradient Hx + c, float64[c]."""
        return to_numpy(self._hessian @ to_device(x, self._hessian.device) + self._linear)
