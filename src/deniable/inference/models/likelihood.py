"""Likelihood rows of reports, and those of reports whose bits are independent given the category.

There P(report | category) is a product over all k bits. The kernels look up sums of logits, four
bits at a time.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from deniable.errors import InputError
from deniable.kernels.array_types import Bytes, Floats, Int64s, Integers, Singles
from deniable.kernels.likelihood import bit_rows
from deniable.kernels.likelihood.bit_rows import ChannelTables

REPORTS_PER_SORT = 1 << 16
"""Reports that are sorted by stratum at a time: they fit into the cache, and pay for a table."""


@dataclass(frozen=True, eq=False)
class Likelihood:
    """Likelihoods P(report | category) of N reports, one row per report.

    rows : float32[N, m]; the largest entry of every row is 1;
    log_scale : float64[N], natural logarithm of the removed factor: P = rows * exp(log_scale).
    """

    rows: Singles
    log_scale: Floats

    def __post_init__(self) -> None:
        """Raise InputError if the shapes do not fit."""
        if self.rows.ndim != 2 or self.log_scale.shape != self.rows.shape[:1]:
            raise InputError(
                f"rows must be [N, m] and log_scale [N], got {self.rows.shape} and "
                f"{self.log_scale.shape}"
            )

    @classmethod
    def empty(cls, reports: int, categories: int) -> Likelihood:
        """Return likelihood rows whose entries are not set."""
        return cls(np.empty((reports, categories), np.float32), np.empty(reports))

    def with_column(self, column: Floats) -> Likelihood:
        """Append a category given by its log-likelihoods float64[N], and rescale the rows."""
        reports, categories = self.rows.shape
        out = Likelihood.empty(reports, categories + 1)
        bit_rows.append_column(self.rows, self.log_scale, column, out.rows, out.log_scale)
        return out


def channel_rows(theta: Floats, bits: Bytes, stratum: Integers) -> Likelihood:
    """Return the likelihood rows of reports uint8[N, B], for any P(bit = 1 | category).

    theta : float64[S, m, k], P(bit b = 1 | category i, stratum s)

    >>> theta = np.array([[[0.75, 0.25], [0.25, 0.75]]])
    >>> reports = np.array([[0b01]], np.uint8)
    >>> channel_rows(theta, reports, np.zeros(1, np.uint16)).rows.round(3)
    array([[1.   , 0.111]], dtype=float32)
    """
    stratum = checked_strata(bits, stratum, theta.shape[0], theta.shape[2])
    if theta.size and not (theta.min() > 0 and theta.max() < 1):
        raise InputError(
            f"theta must lie strictly between 0 and 1, got [{theta.min()}, {theta.max()}]; "
            "otherwise a report could be impossible"
        )
    clear = np.log1p(-theta)
    logit = np.ascontiguousarray((np.log(theta) - clear).transpose(0, 2, 1))
    return rows_by_logits(ChannelTables(logit, clear.sum(axis=2)), bits, stratum)


def rows_by_logits(tables: ChannelTables, bits: Bytes, stratum: Integers) -> Likelihood:
    """Return likelihood rows from sums of logits, which are tabulated for four bits at a time."""
    strata, width, categories = tables.logit.shape
    out = Likelihood.empty(len(bits), categories)
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


def ones_per_report(bits: Bytes, width: int) -> Int64s:
    """Return the number of ones among the first `width` bits of every report, int64[N]."""
    out = np.empty(len(bits), dtype=np.int64)
    bit_rows.ones_in_reports(bits, width, out)
    return out


def checked_strata(bits: Bytes, stratum: Integers, strata: int, width: int) -> Integers:
    """Return the strata as uint16[N]; raise InputError for reports that do not fit."""
    needed = (width + 7) // 8
    if bits.ndim != 2 or bits.dtype != np.uint8 or bits.shape[1] != needed:
        raise InputError(
            f"reports of {width} bits must be uint8[N, {needed}], "
            f"got {bits.dtype}{list(bits.shape)}"
        )
    if stratum.shape != bits.shape[:1] or stratum.dtype.kind not in "iu":
        raise InputError(
            f"stratum must be integers[{bits.shape[0]}], got {stratum.dtype}{list(stratum.shape)}"
        )
    if stratum.size and int(stratum.max()) >= strata:
        raise InputError(f"stratum must be below {strata}, got {int(stratum.max())}")
    return stratum.astype(np.uint16, copy=False)
