"""Bit counts: all that a marginal needs to know about the reports.

A stratum is a group of reports that share Bloom hashes and noise: a cohort, or a cohort and a slot.
Counts of disjoint sets of reports can be added, so shards and days can be merged.
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
    """Number of reports with each bit set, per stratum.

    Parameters
    ----------
    ones : int array of shape (S, k)
        Reports of stratum s with bit b set.
    total : int array of shape (S,)
        Reports of stratum s. A stratum may be empty.

    Examples
    --------
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
                "pass numbers of reports, not frequencies"
            )
        if ones.ndim != 2 or total.shape != ones.shape[:1]:
            raise InputError(
                f"expected ones[S, k] and total[S], got shapes {ones.shape} and {total.shape}"
            )
        if ones.size and (ones.min() < 0 or bool((ones > total[:, None]).any())):
            raise InputError(
                "each count must lie between 0 and the total of its stratum, got "
                f"ones in [{ones.min()}, {ones.max()}] with totals up to {total.max()}"
            )
        object.__setattr__(self, "ones", ones.astype(np.int64))
        object.__setattr__(self, "total", total.astype(np.int64))

    @property
    def reports(self) -> int:
        """Number of reports, N."""
        return int(self.total.sum())

    def rescaled(self, reports: float) -> BitCounts:
        """Return counts with the same frequencies for another number of reports, rounded."""
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
                f"cannot add counts of shapes {self.ones.shape} and {other.ones.shape}: "
                "both must come from the same survey and question"
            )
        return BitCounts(self.ones + other.ones, self.total + other.total)


def count_bits(column: Column, *, threads: int | None = None) -> BitCounts:
    """Count the bits of one part of a question. Stratum = slot·cohorts + cohort.

    threads : number of threads; 1 if batches run in parallel already, None for all processors
    """
    width, strata = column.mechanism.width, column.strata
    return BitCounts(*count_ones(column.bits, width, column.stratum, strata, threads=threads))
