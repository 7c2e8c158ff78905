"""Bit counts: all that a marginal estimate needs to know about the reports.

A stratum is a group of reports that share Bloom hashes and noise (a cohort, or a cohort at one
position or level). Counts of disjoint sets of reports add, so shards and days can be merged.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from deniable.columns import Column
from deniable.errors import InputError
from deniable.kernels.array_types import Int64s
from deniable.kernels.counting.bit_sums import count_ones


@dataclass(frozen=True, eq=False)
class BitCounts:
    """How often each bit was 1, per stratum.

    ones : int64[S, k], reports of stratum s with bit b set.
    total : int64[S], reports of stratum s. A stratum may be empty.

    >>> one = BitCounts(np.array([[3, 1]]), np.array([4]))
    >>> int((one + one).total[0])
    8
    """

    ones: Int64s
    total: Int64s

    def __post_init__(self) -> None:
        """Validate shapes and 0 <= ones <= total."""
        ones = np.ascontiguousarray(self.ones)
        total = np.ascontiguousarray(self.total)
        if ones.dtype.kind not in "iu" or total.dtype.kind not in "iu":
            raise InputError(
                f"counts must be integers, got {ones.dtype} and {total.dtype}; "
                "count reports, do not pass frequencies"
            )
        if ones.ndim != 2 or total.shape != ones.shape[:1]:
            raise InputError(
                f"expected ones[S, k] and total[S], got shapes {ones.shape} and {total.shape}"
            )
        if ones.size and (ones.min() < 0 or bool((ones > total[:, None]).any())):
            raise InputError(
                "every count must lie between 0 and its stratum's total, got "
                f"ones in [{ones.min()}, {ones.max()}] with totals up to {total.max()}"
            )
        object.__setattr__(self, "ones", ones.astype(np.int64))
        object.__setattr__(self, "total", total.astype(np.int64))

    @property
    def reports(self) -> int:
        """Reports over all strata, N."""
        return int(self.total.sum())

    def rescaled(self, reports: float) -> BitCounts:
        """Return the same frequencies as if from so many reports, to the nearest count."""
        factor = reports / self.reports if self.reports else 1.0
        total = np.rint(self.total * factor).astype(np.int64)
        ones = np.rint(self.ones * factor).astype(np.int64)
        return BitCounts(np.minimum(ones, total[:, None]), total)

    def __add__(self, other: BitCounts) -> BitCounts:
        """Return the counts of both sets of reports together."""
        if not isinstance(other, BitCounts):
            return NotImplemented
        if self.ones.shape != other.ones.shape:
            raise InputError(
                f"counts of shape {self.ones.shape} and {other.ones.shape} do not add; "
                "both must come from the same survey and question"
            )
        return BitCounts(self.ones + other.ones, self.total + other.total)


def count_bits(column: Column, *, threads: int | None = None) -> BitCounts:
    """Return the counts of one part of one question; strata are slots times cohorts, slot first.

    threads : 1 where batches are spread over threads already; None takes all processors
    """
    width, strata = column.mechanism.width, column.strata
    return BitCounts(*count_ones(column.bits, width, column.stratum, strata, threads=threads))
