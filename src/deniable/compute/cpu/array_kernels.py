"""Array kernels for CPUs: NumPy and compiled loops."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np

from deniable.compute.arrays import Likelihood, System
from deniable.compute.cpu import row_blocks
from deniable.compute.screening import ScreeningKernels
from deniable.kernels.array_types import (
    Bytes,
    DeviceArray,
    Floats,
    Int64s,
    Integers,
    RowArrays,
    Singles,
    Strata,
    Weights,
)
from deniable.kernels.likelihood import bit_rows, hash_rows
from deniable.kernels.likelihood.bit_rows import BloomTables, ChannelTables
from deniable.kernels.likelihood.hash_rows import HashTables, SentNumbers

REPORTS_PER_SORT = 1 << 16
"""Reports that are sorted by stratum at a time: they fit into the cache, and pay for a table."""

ROWS_PER_PRODUCT = 2048
"""Rows that are copied to double precision at a time."""


class CpuKernels:
    """Array kernels for the memory of this process; see `compute.arrays.ArrayKernels`."""

    @cached_property
    def screening(self) -> ScreeningKernels:
        """Kernels that score candidate strings; only discovery needs them."""
        from deniable.compute.cpu.screening import CPU

        return CPU

    def bloom_rows(self, tables: BloomTables, bits: Bytes, stratum: Integers) -> Likelihood:
        """Return likelihood rows for hashed candidates; only bits that candidates set are read."""
        out = _empty(len(bits), tables.positions.shape[1])
        ones = ones_per_report(bits, tables.width)
        bit_rows.bloom_rows(bits, stratum, ones, tables, out.rows, out.log_scale)
        return out

    def bloom_mixture(
        self, tables: BloomTables, share: Floats, bits: Bytes, stratum: Integers
    ) -> Floats:
        """Return log-likelihoods of a mixture of candidates and unlisted strings."""
        out, ones = np.empty(len(bits)), ones_per_report(bits, tables.width)
        bit_rows.mixture_column(bits, stratum, ones, tables, share, out)
        return np.asarray(np.log(out) + tables.empty[stratum, ones])

    def hash_rows(self, tables: HashTables, sent: SentNumbers) -> Likelihood:
        """Return likelihood rows of reports by local hashing."""
        out = _empty(len(sent.number), tables.cells.shape[1])
        hash_rows.number_rows(sent, tables, out.rows, out.log_scale)
        return out

    def hash_mixture(self, tables: HashTables, share: Floats, sent: SentNumbers) -> Floats:
        """Return log-likelihoods of a mixture, of reports by local hashing."""
        out = np.empty(len(sent.number))
        hash_rows.number_mixture(sent, tables, share, out)
        return np.asarray(np.log(out))

    def channel_rows(self, tables: ChannelTables, bits: Bytes, stratum: Integers) -> Likelihood:
        """Return likelihood rows for any categories; sums of logits are tabulated for four bits."""
        strata, width, categories = tables.logit.shape
        out = _empty(len(bits), categories)
        out.log_scale[:] = 0.0
        table = np.empty(((width + 3) // 4, 16, categories))
        for start in range(0, len(bits) if categories else 0, REPORTS_PER_SORT):
            part = stratum[start : start + REPORTS_PER_SORT]
            order = np.argsort(part, kind="stable")
            edge = np.searchsorted(part[order], np.arange(strata + 1))
            for s in np.flatnonzero(np.diff(edge)):
                bit_rows.nibble_table(tables.logit[s], tables.base[s], table)
                reports = order[edge[s] : edge[s + 1]] + start
                bit_rows.channel_rows(bits, reports, table, out.rows, out.log_scale)
        return out

    def append_column(self, likelihood: Likelihood, column: DeviceArray) -> Likelihood:
        """Append a category given by its log-likelihoods, and rescale the rows."""
        rows, scale = likelihood.rows, likelihood.log_scale
        out = _empty(len(rows), rows.shape[1] + 1)
        bit_rows.append_column(rows, scale, column, out.rows, out.log_scale)
        return out

    def lay_out(
        self, rows: RowArrays, weights: Weights = None, strata: Strata = None
    ) -> row_blocks.RowBlocks:
        """Store likelihood rows, transposed into blocks."""
        return row_blocks.lay_out(self, rows, weights, strata)

    def to_device(self, array: DeviceArray) -> DeviceArray:
        """Return the array itself."""
        return array

    to_numpy = to_device

    def row_maxima(self, rows: Singles) -> Singles:
        """Return the largest entry of every row, [N, 1]."""
        return np.asarray(rows.max(axis=1, keepdims=True))

    def product(self, x: Singles, y: Singles, weights: Floats | None = None) -> Floats:
        """Return Σ w x yᵀ in float64, computed chunk by chunk."""
        product = np.zeros((x.shape[1], y.shape[1]))
        for start in range(0, len(x), ROWS_PER_PRODUCT):
            chunk = slice(start, start + ROWS_PER_PRODUCT)
            left = x[chunk] if weights is None else x[chunk] * weights[chunk]
            product += left.T @ y[chunk].astype(np.float64)
        return product

    def shuffle(self, strata: Sequence[RowArrays], seed: int, scores: Singles) -> None:
        """Fill scores with Σ x yᵀ over random shuffles of y within strata."""
        rng = np.random.default_rng(seed)
        repeated = [
            [np.repeat(side, weights.astype(np.int64), axis=0) for side in (x, y)]
            for x, y, weights in strata
        ]
        for score in scores:
            parts = (x.T @ y[rng.permutation(len(y))] for x, y in repeated)
            score[:] = sum(parts, np.zeros(())).ravel()

    def system(self, hessian: Floats, linear: Floats) -> System:
        """Return the quadratic function ½ xᵀHx + cᵀx."""
        from deniable.compute.cpu.quadratic_function import CpuSystem

        return CpuSystem(hessian, linear)


CPU_KERNELS = CpuKernels()


def ones_per_report(bits: Bytes, width: int) -> Int64s:
    """Return the number of ones among the first `width` bits of every report, int64[N]."""
    out = np.empty(len(bits), dtype=np.int64)
    bit_rows.ones_in_reports(bits, width, out)
    return out


def _empty(reports: int, categories: int) -> Likelihood:
    """Return likelihood rows whose entries are not set."""
    return Likelihood(np.empty((reports, categories), np.float32), np.empty(reports))
