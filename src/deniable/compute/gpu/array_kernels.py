"""The array kernels of a GPU: PyTorch tensors in its memory."""

from __future__ import annotations

from collections.abc import Sequence

from deniable.compute.array_types import Bytes, Floats, Integers, Table
from deniable.compute.arrays import Likelihood, append_column
from deniable.compute.gpu import likelihood_rows as making
from deniable.compute.gpu import tensor_rows
from deniable.compute.gpu.screening import TensorScreening
from deniable.compute.gpu.systems import TensorSystem
from deniable.compute.gpu.tensors import Tensor, device, placed, torch
from deniable.kernels.likelihood.bit_rows import BloomTables, ChannelTables
from deniable.kernels.likelihood.hash_rows import HashTables, SentNumbers


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
        return append_column(torch(), likelihood, column)

    def lay_out(
        self,
        rows: Sequence[Tensor],
        weights: Table | None = None,
        strata: Integers | None = None,
    ) -> tensor_rows.TensorRows:
        """Put rows into the device's memory."""
        return tensor_rows.lay_out(self._placed(*rows), weights, strata)

    def system(self, hessian: Floats, linear: Floats) -> TensorSystem:
        """Equations that the device solves."""
        return TensorSystem(*self._placed(hessian, linear))

    def _placed(self, *arrays: object) -> list[Tensor]:
        return [placed(array, self.device) for array in arrays]
