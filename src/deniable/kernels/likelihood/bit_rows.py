"""Likelihood rows of packed reports.

A report is B bytes; its bit i is bit i % 8, least significant first, of byte i // 8. Rows are
scaled so that their largest entry is 1; the logarithm of the scale is returned with them. The empty
filter is that of a value which sets no bits. An unlisted string is one that is not a candidate:
the positions of its bits are unknown.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from deniable.kernels.array_types import Bytes, Floats, Int32s, Int64s, Integers, Singles
from deniable.kernels.compiled import compiled

POPCOUNT = np.array([bin(value).count("1") for value in range(256)], dtype=np.int64)


class BloomTables(NamedTuple):
    """Tables from which likelihood rows of m hashed candidates are made, for S strata.

    width : number of bits of a report, k;
    positions : int32[S, m, h], the distinct[s, i] different positions first;
    distinct : int32[S, m], 0 if the positions are unknown, as those of an unlisted string;
    ratio : float64[S, h + 1, h + 1], likelihood ratio to the empty filter at
    [s, distinct bits, ones among them];
    unlisted : float64[S, k + 1], likelihood ratio of an unlisted string, by number of ones;
    empty : float64[S, k + 1], log-likelihood of the empty filter, by number of ones.
    """

    width: int
    positions: Int32s
    distinct: Int32s
    ratio: Floats
    unlisted: Floats
    empty: Floats


class ChannelTables(NamedTuple):
    """Tables from which likelihood rows of any m categories are made, for S strata.

    The channel is P(bit = 1 | category), any probability for each bit and category.

    logit : float64[S, k, m], contribution of each set bit to the log-likelihood;
    base : float64[S, m], log-likelihood of a report without set bits.
    """

    logit: Floats
    base: Floats


@compiled
def ones_in_reports(bits: Bytes, width: int, out: Int64s) -> None:
    """Count the ones among the first `width` bits of every report, int64[N]."""
    whole = width // 8
    last = np.uint8((1 << (width % 8)) - 1)
    for r in range(bits.shape[0]):
        ones = 0
        for byte in range(whole):
            ones += POPCOUNT[bits[r, byte]]
        if last:
            ones += POPCOUNT[bits[r, whole] & last]
        out[r] = ones


@compiled
def bloom_rows(
    bits: Bytes,
    stratum: Integers,
    ones: Int64s,
    tables: BloomTables,
    rows: Singles,
    log_scale: Floats,
) -> None:
    """Compute likelihood rows of candidates from their likelihood ratios to the empty filter.

    ones : int64[N], ones in each report; rows : float32[N, m]; log_scale : float64[N].
    """
    _, positions, distinct, ratio, unlisted, empty = tables
    candidates = positions.shape[1]
    ratios = np.empty(candidates)
    for r in range(bits.shape[0]):
        s = stratum[r]
        largest = 0.0 if candidates else 1.0
        for i in range(candidates):
            count = 0
            for a in range(distinct[s, i]):
                b = positions[s, i, a]
                count += (bits[r, b >> 3] >> (b & 7)) & 1
            value = ratio[s, distinct[s, i], count] if distinct[s, i] else unlisted[s, ones[r]]
            ratios[i] = value
            largest = max(largest, value)
        inverse = 1.0 / largest
        for i in range(candidates):
            rows[r, i] = ratios[i] * inverse
        log_scale[r] = empty[s, ones[r]] + np.log(largest)


@compiled
def mixture_column(
    bits: Bytes, stratum: Integers, ones: Int64s, tables: BloomTables, share: Floats, out: Floats
) -> None:
    """Compute the likelihood ratio of a mixture of candidates and unlisted strings.

    Arguments as for `bloom_rows`; share : float64[m + 1], that of unlisted strings last;
    out : float64[N].
    """
    _, positions, distinct, ratio, unlisted, _ = tables
    candidates = positions.shape[1]
    for r in range(bits.shape[0]):
        s = stratum[r]
        unknown = unlisted[s, ones[r]]
        total = share[candidates] * unknown
        for i in range(candidates):
            count = 0
            for a in range(distinct[s, i]):
                b = positions[s, i, a]
                count += (bits[r, b >> 3] >> (b & 7)) & 1
            total += share[i] * (ratio[s, distinct[s, i], count] if distinct[s, i] else unknown)
        out[r] = total


@compiled
def append_column(
    rows: Singles, log_scale: Floats, column: Floats, out: Singles, out_scale: Floats
) -> None:
    """Append a column of log-likelihoods to scaled rows, and scale them again.

    rows : float32[N, m]; log_scale, column, out_scale : float64[N]; out : float32[N, m + 1].
    """
    width = rows.shape[1]
    for r in range(rows.shape[0]):
        # The new entry and the largest old one: the larger becomes 1, the other this ratio.
        log_ratio = column[r] - log_scale[r] if width else 0.0
        ratio = np.exp(-abs(log_ratio))
        factor = np.float32(ratio if log_ratio > 0.0 else 1.0)
        for i in range(width):
            out[r, i] = rows[r, i] * factor
        out[r, width] = 1.0 if log_ratio > 0.0 else ratio
        out_scale[r] = max(column[r], log_scale[r]) if width else column[r]


@compiled
def nibble_table(logit: Floats, base: Floats, table: Floats) -> None:
    """Sum the logits over the set bits of every value of each nibble, which is four bits.

    The sums of the first nibble include `base`, so that adding up one sum per nibble gives the
    log-likelihood of a report.

    logit : float64[k, m]; base : float64[m]; table : float64[ceil(k / 4), 16, m].
    """
    width, categories = logit.shape
    for nibble in range(table.shape[0]):
        for value in range(16):
            for i in range(categories):
                total = base[i] if nibble == 0 else 0.0
                for j in range(4):
                    if (value >> j) & 1 and 4 * nibble + j < width:
                        total += logit[4 * nibble + j, i]
                table[nibble, value, i] = total


@compiled
def channel_rows(
    bits: Bytes, order: Int64s, table: Floats, rows: Singles, log_scale: Floats
) -> None:
    """Compute likelihood rows of the reports `order` of one stratum from its nibble table."""
    nibbles, _, categories = table.shape
    total = np.empty(categories)
    for index in range(order.shape[0]):
        r = order[index]
        total[:] = 0.0
        for nibble in range(nibbles):
            value = (bits[r, nibble >> 1] >> (4 * (nibble & 1))) & 15
            for i in range(categories):
                total[i] += table[nibble, value, i]
        largest = total[0]
        for i in range(1, categories):
            largest = max(largest, total[i])
        for i in range(categories):
            rows[r, i] = np.exp(np.float32(total[i] - largest))
        log_scale[r] = largest
