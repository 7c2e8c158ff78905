"""Sum table entries at the bit positions of each candidate.

Tables are float64[S, k] and fit into the first-level cache; positions are read once, in the order
in which they are stored. A million candidates over 64 strata take about a second. A position of −1
is skipped: the stratum holds no evidence for the candidate.

For few candidates NumPy computes the same sums, in the same order.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from deniable.kernels.array_types import Floats, Indices, Int32s, Mask, Words
from deniable.kernels.compiled import compiled, inlined, pays_off

NUMPY_SECONDS = 1e-7
"""Time that NumPy takes per position."""
POSITIONS_PER_BLOCK = 1 << 17
"""Positions that NumPy looks up at a time."""


@inlined
def _distinct(positions: Int32s, s: int, j: int, a: int) -> int:
    """Return positions[s, j, a], or −1 if an earlier one of the candidate is equal."""
    b = int(positions[s, j, a])
    for earlier in range(a):
        if positions[s, j, earlier] == b:
            b = -1
    return b


def _distinct_entries(positions: Int32s, bits: int) -> tuple[Indices, Mask]:
    """Return where positions int32[S, m, h] are in tables [S · bits], and which ones to add up."""
    distinct = positions >= 0
    for a in range(1, positions.shape[2]):
        for earlier in range(a):
            distinct[:, :, a] &= positions[:, :, a] != positions[:, :, earlier]
    first = np.arange(0, len(positions) * bits, bits)[:, None, None]
    return np.maximum(positions, 0) + first, distinct


class BitTables(NamedTuple):
    """Tables by stratum and bit, float64[S, k].

    weight, residual : of each bit in the regression;
    limit : size at which a residual is clipped;
    cube : third moment of the weighted noise of each bit
    """

    weight: Floats
    residual: Floats
    limit: Floats
    cube: Floats


class StratumTables(NamedTuple):
    """Tables by stratum, float64[S].

    inverse_mass : 1 / sum of weights, 0 to keep the stratum mean;
    mean_excess : weighted mean of what clipping removes from the residuals;
    inverse_clients : 1 / number of clients, 0 to skip a stratum;
    relative_variance : variance of clipped relative to unclipped residuals
    """

    inverse_mass: Floats
    mean_excess: Floats
    inverse_clients: Floats
    relative_variance: Floats


def gather_sums(
    positions: Int32s, by_bit: BitTables, by_stratum: StratumTables, shift: Floats
) -> Floats:
    """Return seven sums over the distinct positions of every candidate, float64[7, m].

    positions : int32[S, m, h];
    shift : float64[m], estimate that is added to the residuals at a candidate's own positions.

    With w, the weights at the positions of a candidate in a stratum, and
    mu = sum(w) * inverse_mass, the rows of the result are:
      0: sum of w, less (sum w)^2 * inverse_mass: squared length after removing stratum means
      1: sum of w * residual
      2: sum of w * (part of residual + shift beyond +-limit, less mean_excess)
      3: sum of cube * (1 - 3 mu + 3 mu^2): third powers after removing stratum means
      4: sum over strata of ((sum w)^2 - sum w^2) * inverse_clients: pairs of bits
      5: sum of w
      6: as 0, each stratum times its relative_variance
    """
    out = np.zeros((7, positions.shape[1]))
    if pays_off(NUMPY_SECONDS * positions.size):
        _add_sums(positions, by_bit, by_stratum, shift, out)
        return out
    used = by_stratum.inverse_clients != 0.0
    positions = positions[used]
    by_bit = BitTables(*(table[used] for table in by_bit))
    by_stratum = StratumTables(*(table[used, None] for table in by_stratum))
    step = max(POSITIONS_PER_BLOCK // max(positions[:, :1].size, 1), 1)
    for start in range(0, out.shape[1], step):
        block = slice(start, start + step)
        out[:, block] = _numpy_sums(positions[:, block], by_bit, by_stratum, shift[block])
    return out


def _numpy_sums(
    positions: Int32s, by_bit: BitTables, by_stratum: StratumTables, shift: Floats
) -> Floats:
    """Return the sums of some candidates; tables by stratum are float64[S, 1]."""
    entry, distinct = _distinct_entries(positions, by_bit.weight.shape[1])
    weight, residual, limit, cube = (table.ravel()[entry] for table in by_bit)
    weight, cube = weight * distinct, cube * distinct
    inverse_mass, mean_excess, inverse_clients, relative_variance = by_stratum
    u = residual + shift[:, None]
    excess = np.maximum(u - limit, 0.0) + np.minimum(u + limit, 0.0)
    mass = weight.sum(axis=2)
    mu = mass * inverse_mass
    squared_length = mass - mass * mu
    sums = (
        squared_length,
        (weight * residual).sum(axis=2),
        (weight * (excess - mean_excess[:, :, None])).sum(axis=2),
        cube.sum(axis=2) * (1.0 - 3.0 * mu + 3.0 * mu * mu),
        (mass * mass - (weight * weight).sum(axis=2)) * inverse_clients,
        mass,
        squared_length * relative_variance,
    )
    return np.array([each.sum(axis=0) for each in sums])


@compiled
def _add_sums(
    positions: Int32s, by_bit: BitTables, by_stratum: StratumTables, shift: Floats, out: Floats
) -> None:
    """Add the sums of `gather_sums` to out."""
    strata, candidates, hashes = positions.shape
    inverse_mass, mean_excess, inverse_clients, relative_variance = by_stratum
    for s in range(strata):
        if inverse_clients[s] == 0.0:
            continue
        w_s, r_s, l_s, c_s = by_bit.weight[s], by_bit.residual[s], by_bit.limit[s], by_bit.cube[s]
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


def position_set_fingerprints(positions: Int32s, keys: Words) -> Words:
    """Return a fingerprint of each candidate's set of positions: the sum of keys[s, b], mod 2^64.

    keys : uint64[S, k]
    """
    out = np.zeros(positions.shape[1], np.uint64)
    if pays_off(NUMPY_SECONDS * positions.size):
        _add_keys(positions, keys, out)
    else:
        entry, distinct = _distinct_entries(positions, keys.shape[1])
        out += (keys.ravel()[entry] * distinct).sum(axis=(0, 2))
    return out


@compiled
def _add_keys(positions: Int32s, keys: Words, out: Words) -> None:
    """Add the fingerprints of `position_set_fingerprints` to out."""
    strata, candidates, hashes = positions.shape
    for s in range(strata):
        for j in range(candidates):
            for a in range(hashes):
                b = _distinct(positions, s, j, a)
                if b >= 0:
                    out[j] += keys[s, b]
