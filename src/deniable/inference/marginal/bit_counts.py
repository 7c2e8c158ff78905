"""Bit counts: all that a marginal needs to know about the reports.

A stratum is a group of reports that share Bloom hashes and noise: a cohort, or a cohort and a slot.
Counts of disjoint sets of reports can be added, so shards and days can be merged.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from deniable.columns import Column
from deniable.errors import InputError
from deniable.kernels.array_types import Floats, Int64s
from deniable.kernels.counting.bit_sums import count_ones
from deniable.mechanisms import Mechanism


@dataclass(frozen=True)
class Repetition:
    """How many reports each client sent, and how much its reports have in common.

    Reports of one client share its value and its permanent noise. Two of them, about a bit with
    P(1) = r, have the covariance (r − p)(q − r), where p and q are P(1) given the permanent bit.

    Parameters
    ----------
    reports_per_client : float
        Number of reports of each client, R.
    flip : float
        Probability that the permanent bit is 1 if the client does not set the bit, φ.
    keep : float, optional
        Probability that the permanent bit is 1 if the client sets the bit, κ. By default 1 − φ.
    """

    reports_per_client: float = 1.0
    flip: float = 0.0
    keep: float | None = None

    @classmethod
    def of(cls, mechanism: Mechanism, reports_per_client: float) -> Repetition:
        """Return what reports of this mechanism share; a report that supports a value is a 1."""
        return cls(reports_per_client, *mechanism.permanent_support)

    def moments(self, r: Floats, p_star: Floats, q_star: Floats) -> tuple[Floats, Floats]:
        """Return second and third cumulants of the sum of a client's reports, divided by R.

        r, p_star, q_star : P(bit = 1) of all clients, and of clients that do not and do set the bit
        """
        others = self.reports_per_client - 1
        p, q = self.given_permanent_bit(p_star, q_star)
        shared = others * np.maximum((r - p) * (q - r), 0.0)
        variance = r * (1 - r) + shared
        third = variance * (1 - 2 * r) + shared * (2 * (1 - 2 * r) + (others - 1) * (p + q - 2 * r))
        return variance, third

    def given_permanent_bit(self, p_star: Floats, q_star: Floats) -> tuple[Floats, Floats]:
        """Return P(bit = 1) of clients whose permanent bit is 0, and of those whose bit is 1."""
        # p* = p + φ(q − p) and q* = p + κ(q − p).
        keep = 1 - self.flip if self.keep is None else self.keep
        gain = (q_star - p_star) / (keep - self.flip)
        return p_star - self.flip * gain, q_star + (1 - keep) * gain


ONE_REPORT = Repetition()


@dataclass(frozen=True, eq=False)
class BitCounts:
    """Number of reports with each bit set, per stratum.

    Parameters
    ----------
    ones : int array of shape (S, k)
        Reports of stratum s with bit b set.
    total : int array of shape (S,)
        Reports of stratum s. A stratum may be empty.
    repetition : Repetition
        Number of reports per client, and what they share. By default one report per client.

    Examples
    --------
    >>> one = BitCounts(np.array([[3, 1]]), np.array([4]))
    >>> int((one + one).total[0])
    8
    """

    ones: Int64s
    total: Int64s
    repetition: Repetition = ONE_REPORT

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

    def repeated(self, repetition: Repetition) -> BitCounts:
        """Return the same counts of clients that sent several reports each."""
        return replace(self, repetition=repetition)

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
