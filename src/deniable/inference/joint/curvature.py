"""Curvature of the log-likelihood: Σ_k w_k v_k v_kᵀ / d_k², v_k = vec(a_k b_kᵀ), without N × cells.

Each entry is a sum of products of two pairs, (a_i a_i′)(b_j b_j′). Listing each unordered pair once
makes the whole matrix one product of sizes m(m+1)/2 × n(n+1)/2 over the reports, half the
arithmetic of a symmetric product of the N × cells array and a quarter of a plain one
(`LikelihoodRows.pair_sums`).
"""

import numpy as np

from deniable.compute.backend import MethodCall
from deniable.compute.rows import LikelihoodRows
from deniable.inference.joint.evidence import Evidence
from deniable.kernels.array_types import Floats, Indices


def information(evidence: Evidence, table: Floats) -> Floats:
    """Observed information float64[mn, mn] of all reports at a table float64[m, n]."""
    m, n = table.shape
    return _unfold(evidence.rows.sum(MethodCall(LikelihoodRows.pair_sums, table)), m, n)


def _unfold(sums: Floats, m: int, n: int) -> Floats:
    """Spread pair sums to the full symmetric matrix over cells (i, j), row-major."""
    left, right = _pair_index(m), _pair_index(n)
    full = sums[left[:, None, :, None], right[None, :, None, :]]
    return np.ascontiguousarray(full).reshape(m * n, m * n)


def _pair_index(size: int) -> Indices:
    """Where the unordered pair (i, i′) stands in the pair sums, as intp[size, size]."""
    index = np.zeros((size, size), np.intp)
    rows, columns = np.triu_indices(size)
    index[rows, columns] = index[columns, rows] = np.arange(len(rows))
    return index
