"""Inner loops of the E-step: mixture likelihoods and their gradient, block by block.

For report k with likelihood rows a_k and b_k and a table p, one pass computes
    d_k = Σ_ij p_ij a_ki b_kj,   G_ij = Σ_k w_k a_ki b_kj / d_k,   L = Σ_k w_k log d_k.

Rows are stored as *blocks* of 256 reports, category by category (float32[B, m, 256]). Every inner
loop then runs along reports and fills vector registers, and a block with its temporary arrays fits
into the first two cache levels. There is never an array of size N × cells. The sums of each block
are added to float64 totals, so float32 accumulates over at most 256 reports.

`compiled_sums` lets the compiler split a sum over vector lanes and fuse a product with an addition.
Both only reorder or drop roundings of sums of non-negative terms, which cannot cancel; infinities
and NaNs keep their meaning.
"""

import numpy as np

from deniable.kernels.compiled import compiled, compiled_sums

BLOCK = 256
"""Reports per block."""

MIN_LIKELIHOOD = 1e-30
"""Mixture likelihoods up to this value count as 0; the product of eight still fits a float64."""
MIN_MIXTURE_LIKELIHOOD = 1e-15
"""Lower bound of mixture likelihoods d_k, whose squared reciprocals must fit into float32.

At the maximum of the log-likelihood d_k is never below w_k / N.
"""
LEAST_PRODUCT = 1e-60
"""Products below this are not multiplied by eight more likelihoods."""


@compiled
def to_blocks(rows, blocks):  # type: ignore[no-untyped-def]
    """Transpose likelihood rows float32[N, m] into blocks float32[B, m, 256], padded with ones.

    Returns how far the rows are from being scaled: the maximum of |largest entry of a row − 1|, or
    infinity if an entry is negative or not a number.
    """
    count, categories = rows.shape
    largest = np.empty(BLOCK, rows.dtype)
    worst = 0.0
    for block in range(blocks.shape[0]):
        first = block * BLOCK
        size = min(BLOCK, count - first)
        largest[:] = 0.0
        for i in range(categories):
            for lane in range(size):
                value = rows[first + lane, i]
                blocks[block, i, lane] = value
                largest[lane] = max(largest[lane], value)
                if not value >= 0.0:
                    worst = np.inf
            for lane in range(size, BLOCK):
                blocks[block, i, lane] = 1.0
        for lane in range(size):
            worst = max(worst, abs(largest[lane] - 1.0))
    return worst


@compiled
def multiply_out(others, sizes, out):  # type: ignore[no-untyped-def]
    """Fill out[Π sizes, 256] with the products of one category from each stacked variable."""
    filled = sizes[0]
    for j in range(filled):
        for lane in range(BLOCK):
            out[j, lane] = others[j, lane]
    offset = filled
    for size in sizes[1:]:
        # In descending order, so that no row is overwritten before it is read.
        for j in range(filled - 1, -1, -1):
            for c in range(size - 1, -1, -1):
                for lane in range(BLOCK):
                    out[j * size + c, lane] = out[j, lane] * others[offset + c, lane]
        filled *= size
        offset += size


@compiled_sums
def mix(a, b, table, d):  # type: ignore[no-untyped-def]
    """Compute d[256] = Σ_ij table_ij a_i b_j of one block."""
    m, n = table.shape
    d[:] = 0.0
    for i in range(0, m, 2):
        # The last row of an odd number is paired with itself at weight 0.
        k = min(i + 1, m - 1)
        second = table.dtype.type(k - i)
        for j in range(0, n - 3, 4):
            p0, p1, p2, p3 = table[i, j], table[i, j + 1], table[i, j + 2], table[i, j + 3]
            q0, q1 = second * table[k, j], second * table[k, j + 1]
            q2, q3 = second * table[k, j + 2], second * table[k, j + 3]
            for lane in range(BLOCK):
                b0, b1, b2, b3 = b[j, lane], b[j + 1, lane], b[j + 2, lane], b[j + 3, lane]
                d[lane] += a[i, lane] * (p0 * b0 + p1 * b1 + p2 * b2 + p3 * b3) + a[k, lane] * (
                    q0 * b0 + q1 * b1 + q2 * b2 + q3 * b3
                )
        for j in range(n - n % 4, n):
            p0, q0 = table[i, j], second * table[k, j]
            for lane in range(BLOCK):
                d[lane] += (p0 * a[i, lane] + q0 * a[k, lane]) * b[j, lane]


@compiled_sums
def _outer(a, b, share, scaled, gradient):  # type: ignore[no-untyped-def]
    """Add Σ_lane share a_i b_j of one block to gradient_ij; scaled[2, 256] is temporary."""
    m, n = gradient.shape
    zero = scaled.dtype.type(0.0)
    for i in range(0, m, 2):
        # The last row of an odd number is paired with itself at weight 0.
        k = min(i + 1, m - 1)
        second = scaled.dtype.type(k - i)
        for lane in range(BLOCK):
            scaled[0, lane] = a[i, lane] * share[lane]
            scaled[1, lane] = second * a[k, lane] * share[lane]
        for j in range(0, n - 3, 4):
            x0 = x1 = x2 = x3 = y0 = y1 = y2 = y3 = zero
            for lane in range(BLOCK):
                s, t = scaled[0, lane], scaled[1, lane]
                b0, b1, b2, b3 = b[j, lane], b[j + 1, lane], b[j + 2, lane], b[j + 3, lane]
                x0 += s * b0
                x1 += s * b1
                x2 += s * b2
                x3 += s * b3
                y0 += t * b0
                y1 += t * b1
                y2 += t * b2
                y3 += t * b3
            gradient[i, j] += x0
            gradient[i, j + 1] += x1
            gradient[i, j + 2] += x2
            gradient[i, j + 3] += x3
            gradient[k, j] += y0
            gradient[k, j + 1] += y1
            gradient[k, j + 2] += y2
            gradient[k, j + 3] += y3
        for j in range(n - n % 4, n):
            x0 = y0 = zero
            for lane in range(BLOCK):
                x0 += scaled[0, lane] * b[j, lane]
                y0 += scaled[1, lane] * b[j, lane]
            gradient[i, j] += x0
            gradient[k, j] += y0


@compiled
def _divide(d, weights, size, share):  # type: ignore[no-untyped-def]
    """Compute share = weight / d; return Σ weight·log d over the first `size` reports of a block.

    Without weights (length 0), one logarithm serves the product of many likelihoods, as long as
    the product is sure to fit a float64.
    """
    total = 0.0
    if weights.size:
        for lane in range(BLOCK):
            share[lane] = weights[lane] / d[lane]
            if weights[lane] > 0.0:
                total += weights[lane] * np.log(np.float64(d[lane]))
        return total
    for lane in range(BLOCK):
        share[lane] = 1.0 / d[lane]
    share[size:] = 0.0
    product = 1.0
    for first in range(0, size - 7, 8):
        eight = 1.0
        for lane in range(first, first + 8):
            eight *= d[lane]
        if not LEAST_PRODUCT < product < 1.0 / LEAST_PRODUCT:
            total += np.log(product)
            product = 1.0
        product *= eight
    total += np.log(product)
    for lane in range(size - size % 8, size):
        total += np.log(np.float64(d[lane]))
    return total


@compiled
def expect(a, others, sizes, weights, count, table, gradient):  # type: ignore[no-untyped-def]
    """Add the gradient of one pass to `gradient`, and return the log-likelihood.

    a        float32[B, m, 256]   blocks of the first variable
    others   float32[B, Σ sizes, 256]   blocks of the other variables, stacked
    sizes    int64[v]             numbers of categories of the others; their product is n
    weights  float64[B, 256]      one per report (0 in the padding), or float64[B, 0] for ones
    count    number of reports; the remainder of the last block is padding
    table    float32[m, n] or float64[m, n]; the arithmetic has the same type
    gradient float64[m, n]        Σ_k w_k a_ki b_kj / d_k is added to it

    A report whose d_k is not above 1e-30 makes the log-likelihood −∞.
    """
    n = table.shape[1]
    b = np.empty((n, BLOCK), table.dtype)
    d = np.empty(BLOCK, table.dtype)
    share = np.empty(BLOCK, table.dtype)
    scaled = np.empty((2, BLOCK), table.dtype)
    total = 0.0
    for block in range(a.shape[0]):
        size = min(BLOCK, count - block * BLOCK)
        multiply_out(others[block], sizes, b)
        mix(a[block], b, table, d)
        lowest = d[0]
        for lane in range(BLOCK):
            lowest = min(lowest, d[lane])
        if not lowest > MIN_LIKELIHOOD:
            total = -np.inf
            for lane in range(BLOCK):
                d[lane] = max(d[lane], table.dtype.type(MIN_LIKELIHOOD))
        total += _divide(d, weights[block], size, share)
        _outer(a[block], b, share, scaled, gradient)
    return total
