"""Sum table entries at the bit positions of each candidate.

Tables are float64[S, k] and fit into the first-level cache; positions are read once, in the order
in which they are stored. A million candidates over 64 strata take about a second. A position of −1
is skipped: the stratum holds no evidence for the candidate.
"""

from __future__ import annotations

from deniable.kernels.array_types import Floats, Int32s, Words
from deniable.kernels.compiled import compiled, inlined


@inlined
def _distinct(positions: Int32s, s: int, j: int, a: int) -> int:
    """Return positions[s, j, a], or −1 if an earlier one of the candidate is equal."""
    b = int(positions[s, j, a])
    for earlier in range(a):
        if positions[s, j, earlier] == b:
            b = -1
    return b


@compiled
def gather_sums(
    positions: Int32s,
    weight: Floats,
    residual: Floats,
    limit: Floats,
    cube: Floats,
    shift: Floats,
    inverse_mass: Floats,
    mean_excess: Floats,
    inverse_clients: Floats,
    relative_variance: Floats,
    out: Floats,
) -> None:
    """Accumulate seven sums over the distinct positions of every candidate.

    positions : int32[S, m, h];
    weight, residual : float64[S, k], of each bit in the regression;
    limit : float64[S, k], size at which a residual is clipped;
    cube : float64[S, k], third moment of the weighted noise of each bit;
    shift : float64[m], estimate that is added to the residuals at a candidate's own positions;
    inverse_mass : float64[S], 1 / sum of weights, 0 to keep the stratum mean;
    mean_excess : float64[S], weighted mean of what clipping removes from the residuals;
    inverse_clients : float64[S], 1 / number of clients, 0 to skip a stratum;
    relative_variance : float64[S], variance of clipped relative to unclipped residuals;
    out : float64[7, m], zeroed by the caller.

    With w, the weights at the positions of a candidate in a stratum, and
    mu = sum(w) * inverse_mass, the rows of `out` are:
      0: sum of w, less (sum w)^2 * inverse_mass: squared length after removing stratum means
      1: sum of w * residual
      2: sum of w * (part of residual + shift beyond +-limit, less mean_excess)
      3: sum of cube * (1 - 3 mu + 3 mu^2): third powers after removing stratum means
      4: sum over strata of ((sum w)^2 - sum w^2) * inverse_clients: pairs of bits
      5: sum of w
      6: as 0, each stratum times its relative_variance
    """
    strata, candidates, hashes = positions.shape
    for s in range(strata):
        if inverse_clients[s] == 0.0:
            continue
        w_s, r_s, l_s, c_s = weight[s], residual[s], limit[s], cube[s]
        for j in range(candidates):
            mass = 0.0
            squares = 0.0
            products = 0.0
            beyond = 0.0
            cubes = 0.0
            for a in range(hashes):
                b = _distinct(positions, s, j, a)
                if b < 0:
                    continue
                w = w_s[b]
                mass += w
                squares += w * w
                products += w * r_s[b]
                u = r_s[b] + shift[j]
                excess = max(u - l_s[b], 0.0) + min(u + l_s[b], 0.0)
                beyond += w * (excess - mean_excess[s])
                cubes += c_s[b]
            mu = mass * inverse_mass[s]
            out[0, j] += mass - mass * mu
            out[1, j] += products
            out[2, j] += beyond
            out[3, j] += cubes * (1.0 - 3.0 * mu + 3.0 * mu * mu)
            out[4, j] += (mass * mass - squares) * inverse_clients[s]
            out[5, j] += mass
            out[6, j] += (mass - mass * mu) * relative_variance[s]


@compiled
def gather_cross(
    positions: Int32s,
    start: int,
    stop: int,
    weight: Floats,
    row_start: Int32s,
    columns: Int32s,
    cross: Floats,
    mass: Floats,
) -> None:
    """Compute the weighted overlap of candidates start..stop-1 with the columns of a 0/1 matrix.

    row_start, columns : CSR pointers and indices of the sparse matrix[S * k, a];
    cross : float64[stop - start, a], the overlaps; mass : float64[stop - start, S], the sums of
    weights per stratum; both are zeroed by the caller.
    """
    strata, _, hashes = positions.shape
    bits = weight.shape[1]
    for s in range(strata):
        for j in range(start, stop):
            for a in range(hashes):
                b = _distinct(positions, s, j, a)
                if b < 0:
                    continue
                w = weight[s, b]
                mass[j - start, s] += w
                row = s * bits + b
                for i in range(row_start[row], row_start[row + 1]):
                    cross[j - start, columns[i]] += w


@compiled
def position_set_fingerprints(positions: Int32s, keys: Words, out: Words) -> None:
    """Compute a fingerprint of each candidate's set of positions: the sum of keys[s, b], mod 2^64.

    keys : uint64[S, k]; out : uint64[m], zeroed by the caller.
    """
    strata, candidates, hashes = positions.shape
    for s in range(strata):
        for j in range(candidates):
            for a in range(hashes):
                b = _distinct(positions, s, j, a)
                if b >= 0:
                    out[j] += keys[s, b]
