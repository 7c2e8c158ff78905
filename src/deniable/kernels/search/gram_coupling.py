"""Likelihood ratios of reports for many sets of bits, relative to independent bits.

Under independence the bits of a stratum have known frequencies mu. For a value that sets the bits S
the likelihood ratio is the product over S of q/mu (a bit that is 1) or (1-q)/(1-mu) (a bit that is
0).
"""

from __future__ import annotations

import numpy as np

from deniable.kernels.array_types import Bytes, Int32s, Int64s, Singles, UInt16s
from deniable.kernels.compiled import compiled


@compiled
def excess_rows(
    bits: Bytes,
    rows: Int64s,
    stratum: UInt16s,
    positions: Int32s,
    one: Singles,
    zero: Singles,
    out: Singles,
) -> None:
    """Compute the likelihood ratio less 1 of the chosen reports for every candidate.

    bits : uint8[N, B], least significant first; rows : int64[R], chosen reports;
    stratum : uint16[R]; positions : int32[S, A, h], where k replaces a repeated position;
    one, zero : float32[S, k + 1], factors of a set and of a clear bit, 1 in the last column;
    out : float32[R, A].
    """
    _, candidates, hashes = positions.shape
    width = one.shape[1] - 1
    factor = np.ones(width + 1, np.float32)
    for i in range(len(rows)):
        row, s = rows[i], int(stratum[i])
        for b in range(width):
            is_set = (bits[row, b >> 3] >> np.uint8(b & 7)) & np.uint8(1)
            factor[b] = one[s, b] if is_set else zero[s, b]
        if hashes == 2:
            for a in range(candidates):
                x, y = positions[s, a, 0], positions[s, a, 1]
                out[i, a] = factor[x] * factor[y] - np.float32(1)
        else:
            for a in range(candidates):
                product = np.float32(1)
                for j in range(hashes):
                    product *= factor[positions[s, a, j]]
                out[i, a] = product - np.float32(1)
