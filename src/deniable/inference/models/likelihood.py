"""Likelihood rows: all that a joint estimate needs to know about a report.

Bits are independent given the value, so P(report | category) is a product over bits. For a sparse
design only the candidate's h bits differ from the empty filter's, so a row costs m * h bit tests;
for an arbitrary channel all k bits count, and sums of logits are looked up four bits at a time.
A local hash's report is a number, a candidate's own or not.

Given `place`, which puts an array on a device, rows are made there and stay there, as tensors.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deniable.columns.batch import numbers
from deniable.errors import InputError
from deniable.inference.marginal.design import BloomDesign
from deniable.inference.models.bit_channel import BitChannel
from deniable.inference.models.hash_design import HashDesign
from deniable.kernels.likelihood import bit_rows as kernels
from deniable.kernels.likelihood.hash_rows import number_mixture, number_rows

Floats = NDArray[np.float64]
# Reports sorted by stratum at a time: few enough to stay in the cache, many enough for a table.
BLOCK = 1 << 16
Place = Callable[[Any], Any]
POPCOUNT = np.array([bin(value).count("1") for value in range(256)], dtype=np.int64)


@dataclass(frozen=True, eq=False)
class Likelihood:
    """P(report | category) of N reports, row by row.

    rows : float32[N, m], largest entry of every row 1;
    log_scale : float64[N], natural logarithm of the factor removed: P = rows * exp(log_scale).
    Both are tensors where they were made on a device.
    """

    rows: Any
    log_scale: Any

    def __post_init__(self) -> None:
        """Validate shapes."""
        if self.rows.ndim != 2 or self.log_scale.shape != self.rows.shape[:1]:
            raise InputError(
                f"expected rows[N, m] and log_scale[N], got {self.rows.shape} and "
                f"{self.log_scale.shape}"
            )


def likelihood_rows(
    bits: NDArray[np.uint8],
    stratum: NDArray[np.integer[Any]],
    source: BloomDesign | BitChannel | HashDesign,
    place: Place | None = None,
) -> Likelihood:
    """Return the likelihood rows of packed reports.

    bits : uint8[N, B], bit i is bit i % 8, least significant first, of byte i // 8;
    stratum : uint16[N]. Of local hashes: the number, little-endian, and integers[N],
    stratum·lines + line.

    >>> design = Design(np.array([[[0], [1]]]), bits=2, p_star=.25, q_star=.75)
    >>> likelihood_rows(np.array([[0b01]], np.uint8), np.zeros(1, np.uint16), design).rows.round(3)
    array([[1.   , 0.111]], dtype=float32)
    """
    if isinstance(source, BloomDesign):
        check_reports(bits, stratum, source.strata, source.bits)
        require_open(source)
        return _design_rows(bits, stratum, source, place)
    if isinstance(source, HashDesign):
        return _hashed_rows(bits, stratum, source, place)
    check_reports(bits, stratum, source.theta.shape[0], source.theta.shape[2])
    return _channel_rows(bits, stratum, source, place)


def mixture_log(
    bits: NDArray[np.uint8],
    stratum: NDArray[np.integer[Any]],
    source: BloomDesign | HashDesign,
    share: Floats,
    place: Place | None = None,
) -> Any:
    """Log-likelihood of every report, float64[N], if its value is one of the candidates, each with
    its share, or else, with the last share, a string that nobody listed.

    share : float64[m + 1], which sum to 1
    """
    out = np.empty(bits.shape[0])
    if isinstance(source, HashDesign):
        number, where, line = _numbers(bits, stratum, source)
        if place is not None:
            return _numbers_on_device(number, where, line, source, place).mixture(share).log()
        number_mixture(
            number, where, line, source.line_digits, source.cell_digits, source.values,
            source.chance, share, out,
        )  # fmt: skip
        return np.asarray(np.log(out))
    check_reports(bits, stratum, source.strata, source.bits)
    require_open(source)
    if place is not None:
        sparse = _sparse_on_device(bits, stratum, source, place)
        base = place(empty_filter_log(source))[sparse.stratum, sparse.ones]
        return sparse.mixture(share).log() + base
    ones = count_ones(bits, source.bits)
    positions, distinct = distinct_first(source.positions)
    kernels.mixture_column(
        bits, stratum.astype(np.uint16, copy=False), ones, positions, distinct,
        ratio_table(source), unlisted_ratios(source), share, out,
    )  # fmt: skip
    return np.asarray(np.log(out) + empty_filter_log(source)[stratum, ones])


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


def count_ones(bits: NDArray[np.uint8], width: int) -> NDArray[np.int64]:
    """Ones among the first `width` bits of every report, int64[N]; padding is ignored."""
    out = np.empty(bits.shape[0], dtype=np.int64)
    kernels.ones_in_reports(bits, width, POPCOUNT, out)
    return out


def empty_filter_log(design: BloomDesign) -> Floats:
    """Log-likelihood if the value set no bit at all, by number of ones, float64[S, k + 1]."""
    ones = np.arange(design.bits + 1)
    zeros = design.bits - ones
    return np.asarray(ones * np.log(design.p)[:, None] + zeros * np.log1p(-design.p)[:, None])


def _numbers(
    bits: NDArray[np.uint8], stratum: NDArray[np.integer[Any]], hashed: HashDesign
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Numbers, strata and lines, int64[N] each."""
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
    return number, where, line


def _numbers_on_device(
    number: NDArray[np.int64],
    where: NDArray[np.int64],
    line: NDArray[np.int64],
    hashed: HashDesign,
    place: Place,
) -> Any:
    from deniable.compute.gpu.likelihood import Numbers

    return Numbers(
        place(number), place(where), place(line), hashed.line_digits, hashed.cell_digits,
        hashed.values, hashed.chance,
    )  # fmt: skip


def _sparse_on_device(
    bits: NDArray[np.uint8], stratum: NDArray[np.integer[Any]], design: BloomDesign, place: Place
) -> Any:
    from deniable.compute.gpu.likelihood import Sparse

    return Sparse(
        place(bits), place(stratum), design.bits, *distinct_first(design.positions),
        ratio_table(design), unlisted_ratios(design),
    )  # fmt: skip


def _hashed_rows(
    bits: NDArray[np.uint8],
    stratum: NDArray[np.integer[Any]],
    hashed: HashDesign,
    place: Place | None,
) -> Likelihood:
    rows = np.empty((bits.shape[0], hashed.candidates), dtype=np.float32)
    log_scale = np.full(bits.shape[0], -np.log(hashed.values))
    if hashed.candidates:
        number, where, line = _numbers(bits, stratum, hashed)
        if place is not None:
            return Likelihood(*_numbers_on_device(number, where, line, hashed, place).rows())
        number_rows(
            number, where, line, hashed.line_digits, hashed.cell_digits, hashed.values,
            hashed.chance, rows, log_scale,
        )  # fmt: skip
    return _placed(Likelihood(rows, log_scale), place)


def _placed(made: Likelihood, place: Place | None) -> Likelihood:
    return made if place is None else Likelihood(place(made.rows), place(made.log_scale))


def _design_rows(
    bits: NDArray[np.uint8],
    stratum: NDArray[np.integer[Any]],
    design: BloomDesign,
    place: Place | None,
) -> Likelihood:
    base = empty_filter_log(design)
    if place is not None and design.candidates:
        return Likelihood(*_sparse_on_device(bits, stratum, design, place).rows(base))
    ones = count_ones(bits, design.bits)
    rows = np.empty((bits.shape[0], design.candidates), dtype=np.float32)
    if design.candidates == 0:
        return _placed(Likelihood(rows, np.asarray(base[stratum, ones])), place)
    log_scale = np.empty(bits.shape[0])
    positions, distinct = distinct_first(design.positions)
    kernels.sparse_rows(
        bits, stratum.astype(np.uint16, copy=False), ones, positions, distinct,
        ratio_table(design), unlisted_ratios(design), base, rows, log_scale,
    )  # fmt: skip
    return Likelihood(rows, log_scale)


def with_column(likelihood: Likelihood, log_likelihood: Any) -> Likelihood:
    """Append a category given by its log-likelihood, float64[N], and rescale the rows."""
    if not isinstance(likelihood.rows, np.ndarray):
        from deniable.compute.gpu.likelihood import append_column

        return Likelihood(*append_column(likelihood.rows, likelihood.log_scale, log_likelihood))
    reports, categories = likelihood.rows.shape
    rows = np.empty((reports, categories + 1), dtype=np.float32)
    log_scale = np.empty(reports)
    kernels.append_column(likelihood.rows, likelihood.log_scale, log_likelihood, rows, log_scale)
    return Likelihood(rows, log_scale)


def _channel_rows(
    bits: NDArray[np.uint8],
    stratum: NDArray[np.integer[Any]],
    channel: BitChannel,
    place: Place | None,
) -> Likelihood:
    theta = channel.theta
    if theta.size and not (theta.min() > 0 and theta.max() < 1):
        raise InputError(
            f"theta must lie strictly between 0 and 1, got [{theta.min()}, {theta.max()}]; "
            "clamp it, so that no report is impossible"
        )
    strata, categories, width = theta.shape
    rows = np.empty((bits.shape[0], categories), dtype=np.float32)
    log_scale = np.zeros(bits.shape[0])
    if categories == 0:
        return _placed(Likelihood(rows, log_scale), place)
    clear = np.log1p(-theta)
    base = clear.sum(axis=2)
    logit = np.ascontiguousarray((np.log(theta) - clear).transpose(0, 2, 1))
    if place is not None:
        from deniable.compute.gpu.likelihood import dense_rows

        return Likelihood(*dense_rows(place(bits), place(stratum), width, logit, base))
    table = np.empty(((width + 3) // 4, 16, categories))
    for start in range(0, bits.shape[0], BLOCK):
        part = stratum[start : start + BLOCK]
        order = np.argsort(part, kind="stable")
        edge = np.searchsorted(part[order], np.arange(strata + 1))
        for s in np.flatnonzero(np.diff(edge)):
            kernels.nibble_table(logit[s], base[s], table)
            kernels.dense_rows(bits, order[edge[s] : edge[s + 1]] + start, table, rows, log_scale)
    return Likelihood(rows, log_scale)
