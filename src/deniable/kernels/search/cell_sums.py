"""Sum table entries over the cells of many strings, and compute likelihood ratios from them.

A string has one cell in the table of every family (as `positions.bloom_positions` with one hash). A
search scores millions of prefixes per prefix length, so positions are not stored: they are computed
and looked up together.
"""

import numpy as np

from deniable.kernels.array_types import Complexes, Floats, Int64s, Singles, Words
from deniable.kernels.compiled import compiled, compiled_sums
from deniable.kernels.hashing.positions import place_of

TINY = np.float32(1e-30)


@compiled
def cell_sums(x: Words, y: Words, tables: Singles, out: Singles) -> None:
    """Compute out[i] = sum over families c of tables[c, cell of string i in family c].

    x, y : u64[V] of `positions.hash_pairs`; tables : float32[C, K]; out : float32[V]
    """
    families, cells = tables.shape
    k = np.uint64(cells)
    for i in range(len(x)):
        z, total = x[i], np.float32(0)
        for family in range(families):
            z += y[i]
            total += tables[family, place_of(z, k)]
        out[i] = total


@compiled
def count_modulo(entries: Int64s, counts: Floats) -> None:
    """Add 1 to counts[entry modulo size] for every entry; the size is a power of 2."""
    mask = len(counts) - 1
    for i in range(len(entries)):
        counts[entries[i] & mask] += 1


@compiled
def multiply_moved(
    transforms: Complexes,
    first: int,
    was: Int64s,
    now: Int64s,
    turns: Complexes,
    product: Complexes,
) -> None:
    """Multiply product[F] by each of transforms[P, F], in which one entry moved from was to now.

    first : number of the first frequency
    turns : complex128[size], where size is a power of 2: exp(-2πi j / size) times the entry's share
    """
    mask = len(turns) - 1
    for i in range(len(transforms)):
        before, after = was[i] * first, now[i] * first
        for j in range(len(product)):
            product[j] *= transforms[i, j] + turns[after & mask] - turns[before & mask]
            before += was[i]
            after += now[i]


@compiled_sums
def log_mixtures(
    weight: Singles,
    parent: Int64s,
    evidence: Singles,
    masses: Singles,
    precision: np.float32,
    out: Singles,
) -> None:
    """Compute log-likelihood ratios of prefixes from their evidence.

    out[i] = log sum over masses f of weight[parent[i], f] exp(f e_i - f^2 precision / 2). It is
    the log-likelihood ratio of a prefix whose mass has these prior weights to a prefix of mass 0;
    e_i is its evidence, the precision-weighted sum of its cells.
    weight : float32[parents, masses]; parent : int64[n]; evidence, out : float32[n]
    """
    half = np.float32(0.5) * precision
    for i in range(len(evidence)):
        e = evidence[i]
        top = np.float32(-1e30)
        for f in masses:
            top = max(top, f * e - f * f * half)
        total = np.float32(0)
        for j in range(len(masses)):
            f = masses[j]
            total += weight[parent[i], j] * np.exp(f * e - f * f * half - top)
        out[i] = top + np.log(total + TINY)
