"""Sums over pairs of categories, from which the information matrix of a joint table is made.

For likelihood rows a_k and b_k and mixture likelihoods d_k, the sums are
    S[ii′, jj′] = Σ_k w_k (a_ki a_ki′)(b_kj b_kj′) / d_k²,
one for each unordered pair of categories of either variable. As a product of matrices they would
take N · m(m+1)/2 · n(n+1)/2 multiplications. Most of these are avoided. Few bits of a report are
ones, so that many categories share the smallest likelihood of a row, its *background*. Each row of
the first variable is split into the background x_k0 and the excess x_ki ≥ 0 over it:
    a_ki = β_i x_k0 + x_ki.
Sums over pairs of the m + 1 entries of x need only the reports in which both are positive: about a
fifth of them for two hash functions with p = ¼ and q = ¾. The sums over pairs of categories follow,
    a_i a_i′ = β_i β_i′ x_0² + β_i x_0 x_i′ + β_i′ x_0 x_i + x_i x_i′,
without cancellation, because no term is negative. β_i is 1, except for categories such as Other,
whose likelihoods are unlike those of the rest and often the smallest (`shares_background`).
"""

import numpy as np

from deniable.kernels.array_types import Floats, Singles
from deniable.kernels.compiled import compiled
from deniable.kernels.likelihood.add_rows import TILE, add_rows
from deniable.kernels.likelihood.mixture_pass import (
    BLOCK,
    MIN_MIXTURE_LIKELIHOOD,
    mix,
    multiply_out,
)
from deniable.kernels.likelihood.pairs import pair_index

REPORTS = 128
"""Reports whose products are in memory at a time: a tile of them fits a cache of 32 kB."""
EQUAL = 1e-6
"""Relative difference up to which a likelihood counts as equal to the background."""
MAX_LOWEST = 0.05
"""Share of rows in which a category that shares the background may be below all others."""


def shares_background(rows: Singles) -> Singles:
    """Return β from some likelihood rows float32[K, m]: 1 for categories that share the background.

    A category does not if it often has the smallest likelihood of its row all by itself.
    """
    if not len(rows):
        return np.ones(rows.shape[1], np.float32)
    lowest = rows <= rows.min(axis=1, keepdims=True) * (1 + EQUAL)
    alone = lowest & (lowest.sum(axis=1, keepdims=True) == 1)
    return np.asarray(alone.mean(axis=0) <= MAX_LOWEST, np.float32)


def empty_sums(m: int, n: int) -> Singles:
    """Return zeros for sums over pairs of m + 1 entries and of n categories, in whole tiles."""
    tiles = -(-(n * (n + 1) // 2) // TILE)
    return np.asarray(_zeros((m + 1) * (m + 2) // 2, tiles))


def without_background(sums: Floats, shared: Singles, n: int) -> Floats:
    """Return sums over pairs of categories, from those over pairs of background and excesses.

    sums : float64[(m+1)(m+2)/2, tiles, TILE]; shared : β, float32[m]
    The result is float64[m(m+1)/2, n(n+1)/2].
    """
    by_pair = sums.reshape(len(sums), -1)[:, : n * (n + 1) // 2]
    index, beta = pair_index(len(shared) + 1), shared.astype(np.float64)
    i, k = np.triu_indices(len(shared))
    out = by_pair[index[i + 1, k + 1]]
    out += beta[i, None] * by_pair[index[0, k + 1]]
    out += beta[k, None] * by_pair[index[0, i + 1]]
    out += (beta[i] * beta[k])[:, None] * by_pair[0]
    return np.asarray(out)


@compiled
def _zeros(first, second):  # type: ignore[no-untyped-def]
    """Return zeros float32[first, second, TILE], aligned so that no vector crosses a cache line."""
    size = first * second * TILE
    memory = np.zeros(size + 16, np.float32)
    start = (-memory.ctypes.data % 64) // 4
    return memory[start : start + size].reshape(first, second, TILE)


@compiled
def _split(a, shared, x):  # type: ignore[no-untyped-def]
    """Split a block a[m, 256] into background and excess, x[m + 1, 256]."""
    x[0] = np.inf
    for i in range(a.shape[0]):
        if shared[i]:
            for lane in range(BLOCK):
                x[0, lane] = min(x[0, lane], a[i, lane])
    if not np.any(shared):
        x[0] = 0.0
    for i in range(a.shape[0]):
        for lane in range(BLOCK):
            background = shared[i] * x[0, lane]
            excess = a[i, lane] - background
            x[i + 1, lane] = excess if excess > EQUAL * background else 0.0


@compiled
def _list_pairs(x, scale, first, values, starts, edges):  # type: ignore[no-untyped-def]
    """List the reports in which both entries of a pair of x are positive.

    x, scale  float32[m + 1, 256], float32[256]: products are scale · x_u · x_v
    first     the first of the REPORTS reports of the block to look at
    values    filled with the products, pair after pair
    starts    filled with the places of the reports' rows in a tile
    edges     filled with where each pair's products begin
    """
    chosen = np.empty(REPORTS, np.int64)
    scaled = np.empty(REPORTS, np.float32)
    at = pair = 0
    for u in range(x.shape[0]):
        count = 0
        for report in range(REPORTS):
            value = scale[first + report] * x[u, first + report]
            chosen[count] = report
            scaled[count] = value
            count += value > 0.0
        for v in range(u, x.shape[0]):
            edges[pair] = at
            pair += 1
            for c in range(count):
                value = scaled[c] * x[v, first + chosen[c]]
                values[at] = value
                starts[at] = chosen[c] * TILE
                at += value > 0.0
    edges[pair] = at


@compiled
def _fill_tiles(b, scale, first, tiles):  # type: ignore[no-untyped-def]
    """Fill tiles[t, report, column] with scale · b_j · b_j′, for pairs jj′ = t · TILE + column."""
    n = b.shape[0]
    row = np.empty(n, b.dtype)
    products = np.zeros(tiles.shape[0] * TILE, b.dtype)
    for report in range(REPORTS):
        for j in range(n):
            row[j] = b[j, first + report]
        pair = 0
        for j in range(n):
            scaled = scale[first + report] * row[j]
            for k in range(n - j):
                products[pair + k] = scaled * row[j + k]
            pair += n - j
        for tile in range(tiles.shape[0]):
            for column in range(TILE):
                tiles[tile, report, column] = products[tile * TILE + column]


@compiled
def add_pair_sums(a, others, sizes, weights, count, table, shared, sums):  # type: ignore[no-untyped-def]
    """Add sums over pairs of some blocks to `sums`; arguments are as in `mixture_pass.expect`.

    table   float32[m, n]
    shared  float32[m], from `shares_background`
    sums    float32[(m+1)(m+2)/2, tiles, TILE], from `empty_sums`

    A report whose d is below 1e-15 counts as if it were that, so that products fit into float32.
    """
    m, n = table.shape
    b = np.empty((n, BLOCK), table.dtype)
    d = np.empty(BLOCK, table.dtype)
    x = np.empty((m + 1, BLOCK), table.dtype)
    left_scale = np.empty(BLOCK, table.dtype)
    right_scale = np.empty(BLOCK, table.dtype)
    tiles = _zeros(sums.shape[1], REPORTS)
    values = np.empty(sums.shape[0] * REPORTS + 1, table.dtype)
    starts = np.empty(values.size, np.int64)
    edges = np.empty(sums.shape[0] + 1, np.int64)
    least = table.dtype.type(MIN_MIXTURE_LIKELIHOOD)
    for block in range(a.shape[0]):
        multiply_out(others[block], sizes, b)
        mix(a[block], b, table, d)
        _split(a[block], shared, x)
        for lane in range(BLOCK):
            left_scale[lane] = right_scale[lane] = 1 / max(d[lane], least)
        left_scale[max(0, count - block * BLOCK) :] = 0.0  # the padding of the last block
        if weights.shape[1]:
            for lane in range(BLOCK):
                right_scale[lane] *= weights[block, lane]
        for first in range(0, BLOCK, REPORTS):
            _list_pairs(x, left_scale, first, values, starts, edges)
            _fill_tiles(b, right_scale, first, tiles)
            for tile in range(sums.shape[1]):
                products = tiles[tile]
                for pair in range(sums.shape[0]):
                    start, end = edges[pair], edges[pair + 1]
                    place = (pair * sums.shape[1] + tile) * TILE
                    # Numba passes the first argument, the typing context, itself.
                    add_rows(values, starts, start, end, products, sums, place)  # type: ignore[call-arg]
