"""Draw bit counts directly, without simulating reports.

Given the values, the bits of one report per client are independent. The count of a bit in a stratum
is therefore Binomial(clients that set it, q*) + Binomial(other clients, p*). This is exact for
marginal estimates and fast enough for hundreds of replications. Hash functions are random.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from deniable.inference.marginal.bit_counts import BitCounts
from deniable.inference.models.bloom import BloomModel
from deniable.kernels.array_types import Floats, Int32s, Int64s, Integers


def random_positions(
    candidates: int, rng: np.random.Generator, *, strata: int = 64, k: int = 128, h: int = 2
) -> Int32s:
    """int32[strata, candidates, h]: bits of strings that are hashed at random."""
    return rng.integers(0, k, size=(strata, candidates, h), dtype=np.int32)


def values_by_stratum(
    shares: Floats,
    reports: int,
    strata: int,
    rng: np.random.Generator,
    weights: Floats | None = None,
) -> Int64s:
    """int64[strata, values]: number of reports of each stratum with each value."""
    even = np.full(strata, 1 / strata)
    totals = rng.multinomial(reports, even if weights is None else weights)
    return np.stack([rng.multinomial(n, shares) for n in totals])


def bit_counts(
    values: Int64s,
    positions: Int32s,
    k: int,
    p_star: ArrayLike,
    q_star: ArrayLike,
    rng: np.random.Generator,
) -> BitCounts:
    """Draw the bit counts of clients with these values, which set the bits at these positions."""
    strata = positions.shape[0]
    n1 = set_bits(values, positions, k)
    total = values.sum(axis=1)
    p = np.broadcast_to(np.asarray(p_star, float), strata)[:, None]
    q = np.broadcast_to(np.asarray(q_star, float), strata)[:, None]
    return BitCounts(rng.binomial(n1, q) + rng.binomial(total[:, None] - n1, p), total)


def set_bits(values: Int64s, positions: Integers, k: int) -> Int64s:
    """int64[strata, k]: number of clients that set each bit."""
    strata = positions.shape[0]
    ordered = np.sort(positions, axis=2)
    first = np.ones(ordered.shape, dtype=bool)
    first[:, :, 1:] = ordered[:, :, 1:] != ordered[:, :, :-1]
    flat = ordered + (np.arange(strata) * k)[:, None, None]
    weight = np.broadcast_to(values[:, :, None], ordered.shape)
    holders = np.bincount(flat[first], weights=weight[first], minlength=strata * k)
    return holders.astype(np.int64).reshape(strata, k)


def draw(
    shares: Floats,
    reports: int,
    rng: np.random.Generator,
    *,
    listed: int | None = None,
    strata: int = 64,
    k: int = 128,
    h: int = 2,
    p: float = 0.25,
    q: float = 0.75,
    f: float = 0.0,
    weights: Floats | None = None,
) -> tuple[BitCounts, BloomModel]:
    """Draw the counts of a population; return them and a model of its first `listed` strings."""
    p_star, q_star = (1 - f / 2) * p + f / 2 * q, (1 - f / 2) * q + f / 2 * p
    positions = random_positions(len(shares), rng, strata=strata, k=k, h=h)
    values = values_by_stratum(shares, reports, strata, rng, weights)
    counts = bit_counts(values, positions, k, p_star, q_star, rng)
    known = np.ascontiguousarray(positions[:, :listed])
    return counts, BloomModel(known, k, p_star, q_star)
