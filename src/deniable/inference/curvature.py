"""Curvature of the log-likelihood: Σ_k w_k v_k v_kᵀ / d_k², v_k = vec(a_k b_kᵀ), without N × cells.

Each entry is a sum of products of two pairs, (a_i a_i′)(b_j b_j′). Listing each unordered pair once
makes the whole matrix one product of sizes m(m+1)/2 × n(n+1)/2 over the reports, half the
arithmetic of a symmetric product of the N × cells array and a quarter of a plain one. Products run
in float32 over chunks of 2,048 reports and are added up in float64.
"""

from functools import partial

import numpy as np
import numpy.typing as npt

from deniable.inference.evidence import Evidence, Floats, Piece, Rows, multiply_out

_CHUNK = 2048
# Squared reciprocals must stay inside float32; at an optimum d_k is never below w_k / N.
_SMALLEST = 1e-15


def information(evidence: Evidence, table: Floats) -> Floats:
    """Observed information float64[mn, mn] of all reports at a table float64[m, n]."""
    m, n = table.shape
    total = np.zeros((m * (m + 1) // 2, n * (n + 1) // 2))
    for part in evidence.executor.map(partial(_pair_sums, table), evidence.pieces):
        total += part
    return _unfold(total, m, n)


def _pair_sums(table: Floats, piece: Piece) -> Floats:
    m, n = table.shape
    total = np.zeros((m * (m + 1) // 2, n * (n + 1) // 2))
    single = table.astype(np.float32)
    left = np.empty((len(total), _CHUNK), np.float32)
    right = np.empty((total.shape[1], _CHUNK), np.float32)
    for start in range(0, piece.count, _CHUNK):
        chunk = slice(start, min(start + _CHUNK, piece.count))
        a, b = _pair_of_rows(piece, chunk)
        d = np.maximum(np.einsum("kj,kj->k", a @ single, b), _SMALLEST)
        scaled = np.ascontiguousarray((a / d[:, None]).T)
        size = scaled.shape[1]
        _pairs(scaled, left[:, :size])
        _pairs(np.ascontiguousarray(b.T), right[:, :size])
        if piece.weights is not None:
            right[:, :size] *= piece.weights[chunk].astype(np.float32)
        total += left[:, :size] @ right[:, :size].T
    return total


def _pair_of_rows(piece: Piece, chunk: slice) -> tuple[Rows, Rows]:
    first = piece.rows[0][chunk]
    if len(piece.rows) == 1:
        return first, np.ones((len(first), 1), np.float32)
    return first, multiply_out([rows[chunk] for rows in piece.rows[1:]])


def _pairs(rows: Rows, out: Rows) -> None:
    """Fill out[m(m+1)/2, N] with the products of every unordered pair of rows float32[m, N]."""
    start = 0
    for i in range(len(rows)):
        stop = start + len(rows) - i
        np.multiply(rows[i:], rows[i], out=out[start:stop])
        start = stop


def _unfold(sums: Floats, m: int, n: int) -> Floats:
    """Spread pair sums to the full symmetric matrix over cells (i, j), row-major."""
    left, right = _pair_index(m), _pair_index(n)
    full = sums[left[:, None, :, None], right[None, :, None, :]]
    return np.ascontiguousarray(full).reshape(m * n, m * n)


def _pair_index(size: int) -> npt.NDArray[np.intp]:
    """Where the unordered pair (i, i′) stands in `_pairs`, as intp[size, size]."""
    index = np.zeros((size, size), np.intp)
    rows, columns = np.triu_indices(size)
    index[rows, columns] = index[columns, rows] = np.arange(len(rows))
    return index
