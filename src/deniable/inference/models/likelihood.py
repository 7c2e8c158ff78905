"""Likelihood rows: all that a joint estimate needs to know about a report.

Bits are independent given the value, so P(report | category) is a product over bits. For a sparse
design only the candidate's h bits differ from the empty filter's, so a row costs m * h bit tests;
for an arbitrary channel all k bits count, and sums of logits are looked up four bits at a time.
A local hash's report is a number, a candidate's own or not.

Rows are made by the array kernels of the backend (`compute.arrays`), and stay in their memory.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from deniable.columns.batch import numbers
from deniable.compute.array_types import DeviceArray
from deniable.compute.arrays import ArrayKernels, Likelihood
from deniable.compute.cpu.array_kernels import CPU_KERNELS
from deniable.errors import InputError
from deniable.inference.marginal.design import BloomDesign
from deniable.inference.models.bit_channel import BitChannel
from deniable.inference.models.hash_design import HashDesign
from deniable.kernels.likelihood.bit_rows import BloomTables, ChannelTables
from deniable.kernels.likelihood.hash_rows import HashTables, SentNumbers

Floats = NDArray[np.float64]


def likelihood_rows(
    bits: NDArray[np.uint8],
    stratum: NDArray[np.integer[Any]],
    source: BloomDesign | BitChannel | HashDesign,
    arrays: ArrayKernels = CPU_KERNELS,
) -> Likelihood:
    """Return the likelihood rows of packed reports.

    bits : uint8[N, B], bit i is bit i % 8, least significant first, of byte i // 8;
    stratum : uint16[N]. Of local hashes: the number, little-endian, and integers[N],
    stratum·lines + line.

    >>> design = Design(np.array([[[0], [1]]]), bits=2, p_star=.25, q_star=.75)
    >>> likelihood_rows(np.array([[0b01]], np.uint8), np.zeros(1, np.uint16), design).rows.round(3)
    array([[1.   , 0.111]], dtype=float32)
    """
    if isinstance(source, HashDesign):
        return arrays.hash_rows(_hash_tables(source), _numbers(bits, stratum, source))
    if isinstance(source, BloomDesign):
        check_reports(bits, stratum, source.strata, source.bits)
        return arrays.bloom_rows(_bloom_tables(source), bits, stratum)
    check_reports(bits, stratum, source.theta.shape[0], source.theta.shape[2])
    return arrays.channel_rows(_channel_tables(source), bits, stratum)


def mixture_log(
    bits: NDArray[np.uint8],
    stratum: NDArray[np.integer[Any]],
    source: BloomDesign | HashDesign,
    share: Floats,
    arrays: ArrayKernels = CPU_KERNELS,
) -> DeviceArray:
    """Log-likelihood of every report, float64[N], if its value is one of the candidates, each with
    its share, or else, with the last share, a string that nobody listed.

    share : float64[m + 1], which sum to 1
    """
    if isinstance(source, HashDesign):
        return arrays.hash_mixture(_hash_tables(source), share, _numbers(bits, stratum, source))
    check_reports(bits, stratum, source.strata, source.bits)
    return arrays.bloom_mixture(_bloom_tables(source), share, bits, stratum)


def check_reports(
    bits: NDArray[np.uint8], stratum: NDArray[np.integer[Any]], strata: int, width: int
) -> None:
    """Refuse reports that do not fit the design."""
    needed = (width + 7) // 8
    if bits.ndim != 2 or bits.dtype != np.uint8 or bits.shape[1] != needed:
        raise InputError(
            f"reports of {width} bits must be uint8[N, {needed}], "
            f"got {bits.dtype}{list(bits.shape)}"
        )
    if stratum.shape != bits.shape[:1] or stratum.dtype != np.uint16:
        raise InputError(
            f"stratum must be uint16[{bits.shape[0]}], got {stratum.dtype}{list(stratum.shape)}"
        )
    if stratum.size and int(stratum.max()) >= strata:
        raise InputError(f"stratum must be below {strata}, got {int(stratum.max())}")


def require_open(design: BloomDesign) -> None:
    """Refuse probabilities of 0 or 1, under which a report can be impossible."""
    both = np.concatenate([design.p, design.q])
    if both.size and not (both.min() > 0 and both.max() < 1):
        raise InputError(
            "likelihoods need p* and q* strictly between 0 and 1, got "
            f"[{both.min()}, {both.max()}]; without noise count the values instead"
        )


def distinct_first(positions: NDArray[np.int32]) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """Move repeated positions to the end; return them and the distinct counts[S, m], 0 for -1."""
    ordered = np.sort(positions, axis=2)
    repeated = np.zeros(ordered.shape, dtype=bool)
    repeated[:, :, 1:] = ordered[:, :, 1:] == ordered[:, :, :-1]
    repeated |= ordered < 0
    rank = np.argsort(repeated, axis=2, kind="stable")
    count = (~repeated).sum(axis=2).astype(np.int32)
    return np.ascontiguousarray(np.take_along_axis(ordered, rank, axis=2)), count


def ratio_table(design: BloomDesign) -> Floats:
    """Likelihood ratio by [stratum, distinct bits, ones among them], float64[S, h + 1, h + 1]."""
    one, zero = bit_ratios(design)
    number = np.arange(design.hashes + 1)
    zeros = np.maximum(number[:, None] - number[None, :], 0)
    return np.asarray(one[:, None, None] ** number[None, None, :] * zero[:, None, None] ** zeros)


def bit_ratios(design: BloomDesign) -> tuple[Floats, Floats]:
    """q*/p* and (1-q*)/(1-p*), float64[S] each: what a set bit, and a clear one, is worth."""
    return design.q / design.p, (1 - design.q) / (1 - design.p)


def unlisted_ratios(design: BloomDesign) -> Floats:
    """Likelihood ratio of a string that nobody listed, by number of ones, float64[S, k + 1].

    Its h bits are anywhere: (mean over bits of the bit's ratio)^h.
    """
    ones = np.arange(design.bits + 1)
    one, zero = bit_ratios(design)
    mean = (ones * one[:, None] + (design.bits - ones) * zero[:, None]) / design.bits
    return np.asarray(mean**design.hashes)


def empty_filter_log(design: BloomDesign) -> Floats:
    """Log-likelihood if the value set no bit at all, by number of ones, float64[S, k + 1]."""
    ones = np.arange(design.bits + 1)
    zeros = design.bits - ones
    return np.asarray(ones * np.log(design.p)[:, None] + zeros * np.log1p(-design.p)[:, None])


def _bloom_tables(design: BloomDesign) -> BloomTables:
    require_open(design)
    return BloomTables(
        design.bits,
        *distinct_first(design.positions),
        ratio_table(design),
        unlisted_ratios(design),
        empty_filter_log(design),
    )


def _hash_tables(hashed: HashDesign) -> HashTables:
    return HashTables(hashed.values, hashed.line_digits, hashed.cell_digits, hashed.chance)


def _channel_tables(channel: BitChannel) -> ChannelTables:
    theta = channel.theta
    if theta.size and not (theta.min() > 0 and theta.max() < 1):
        raise InputError(
            f"theta must lie strictly between 0 and 1, got [{theta.min()}, {theta.max()}]; "
            "clamp it, so that no report is impossible"
        )
    clear = np.log1p(-theta)
    logit = np.ascontiguousarray((np.log(theta) - clear).transpose(0, 2, 1))
    return ChannelTables(logit, clear.sum(axis=2))


def _numbers(
    bits: NDArray[np.uint8], stratum: NDArray[np.integer[Any]], hashed: HashDesign
) -> SentNumbers:
    """Numbers, strata and lines of local hashes' reports."""
    number = numbers(bits)
    if stratum.shape != number.shape:
        raise InputError(f"expected stratum as integers[{len(number)}], got {stratum.shape}")
    if number.size and (
        int(stratum.max()) >= hashed.strata * hashed.lines or int(number.max()) >= hashed.values
    ):
        raise InputError(
            f"expected strata below {hashed.strata * hashed.lines} and numbers below "
            f"{hashed.values}, got up to {int(stratum.max())} and {int(number.max())}"
        )
    where, line = np.divmod(stratum.astype(np.int64), hashed.lines)
    return SentNumbers(number, where, line)
