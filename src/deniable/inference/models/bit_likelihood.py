"""Likelihood rows of reports whose bits are independent, given the category.

P(report | category) is a product over all k bits. The kernels look up sums of logits, four bits at
a time.
"""

import numpy as np

from deniable.compute.arrays import ArrayKernels, Likelihood
from deniable.compute.cpu.array_kernels import CPU_KERNELS
from deniable.errors import InputError
from deniable.kernels.array_types import Bytes, Floats, Integers
from deniable.kernels.likelihood.bit_rows import ChannelTables


def channel_rows(
    theta: Floats, bits: Bytes, stratum: Integers, arrays: ArrayKernels = CPU_KERNELS
) -> Likelihood:
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
    return arrays.channel_rows(ChannelTables(logit, clear.sum(axis=2)), bits, stratum)


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
