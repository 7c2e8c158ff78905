"""Make likelihood rows of simulated reports, without going through report bytes.

Bits are independent, so the likelihood of category c, relative to no category at all, is a product
over the bits of c: q/p where the bit is set and (1−q)/(1−p) where it is not. Up to a factor common
to all categories with equally many bits, it is (q(1−p) / (p(1−q))) ** (bits of c that are set).
"""

import numpy as np

from deniable.kernels.array_types import Floats, Int64s, Singles


def basic_rows(
    values: Int64s, categories: int, *, rng: np.random.Generator, p: float = 0.25, q: float = 0.75
) -> Singles:
    """float32[N, categories]: rows of Basic RAPPOR (one bit per category), largest entry 1."""
    return _rows(values, np.eye(categories, dtype=np.float32), p, q, rng)


def bloom_rows(
    values: Int64s,
    categories: int,
    *,
    rng: np.random.Generator,
    cohorts: Int64s,
    p: float = 0.25,
    q: float = 0.75,
    k: int = 128,
    h: int = 2,
) -> Singles:
    """float32[N, categories]: rows of Bloom filters with k bits and h hashes, largest entry 1.

    cohorts : int64[N], cohort of each client; the same for all variables of a client
    """
    rows = np.empty((len(values), categories), np.float32)
    for cohort in range(int(cohorts.max()) + 1):
        bits = np.argsort(rng.random((categories, k)), axis=1)[:, :h]
        filters = np.zeros((categories, k), np.float32)
        np.put_along_axis(filters, bits, 1.0, axis=1)
        chosen = np.flatnonzero(cohorts == cohort)
        rows[chosen] = _rows(values[chosen], filters, p, q, rng)
    return rows


def zipf(categories: int, exponent: float = 1.0) -> Floats:
    """Return probabilities proportional to 1 / rank**exponent."""
    weights = np.arange(1, categories + 1) ** -float(exponent)
    probabilities: Floats = weights / weights.sum()
    return probabilities


def dependent_table(rows: int, columns: int, *, strength: float, exponent: float = 1.0) -> Floats:
    """Return a table with Zipf margins; a share `strength` of it has dependent categories."""
    left, right = zipf(rows, exponent), zipf(columns, exponent)
    table = (1.0 - strength) * np.outer(left, right)
    for i in range(rows):
        table[i, i * columns // rows] += strength * left[i]
    return table


def draw_cells(table: Floats, count: int, rng: np.random.Generator) -> tuple[Int64s, ...]:
    """Draw the categories of clients from a joint table: one int64[count] per variable."""
    cells = rng.choice(table.size, size=count, p=table.ravel() / table.sum())
    return tuple(np.asarray(axis, np.int64) for axis in np.unravel_index(cells, table.shape))


def _rows(
    values: Int64s, filters: Singles, p: float, q: float, rng: np.random.Generator
) -> Singles:
    """Return the rows of one cohort, from the 0/1 filters float32[categories, k]."""
    probability = np.where(filters > 0, np.float32(q), np.float32(p))
    bits = rng.random((len(values), filters.shape[1]), dtype=np.float32) < probability[values]
    matches = bits.astype(np.float32) @ filters.T
    if len(matches):
        matches -= matches.max(axis=1, keepdims=True)
    ratio = np.float32(np.log(q * (1 - p) / (p * (1 - q))))
    rows: Singles = np.exp(ratio * matches)
    return rows
