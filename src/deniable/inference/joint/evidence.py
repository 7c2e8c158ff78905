"""Evidence about a joint table: the likelihood rows of all reports, and passes over them.

A joint distribution is estimated from likelihood rows alone (Fanti, Pihur, Erlingsson, "Building a
RAPPOR with the Unknown", section on joint distributions). For report k, a_k holds the likelihoods
of the first variable's categories, b_k those of the second's, and so on. Tables of three or more
variables are folded to a matrix, the first variable against all others; products over the others
are computed block by block.

The rows stay in parts on the workers that made them. A pass sends a table to the parts, and adds up
their sums in a fixed order.

The log-likelihood Σ_k w_k log Σ_c p_c v_kc is concave in the table p, so the distance to its
maximum has an upper bound, a *certificate*. With the gradient per report g_c = (1/N) Σ_k w_k v_kc /
d_k, Jensen's inequality gives for any table q
    l(q) − l(p) = Σ_k w_k log(Σ_c q_c v_kc / d_k) ≤ N log Σ_c q_c g_c ≤ N log max_c g_c.
This gap, in nats for all reports together, decides when a fit has converged. Small steps would
prove nothing.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from math import inf, isfinite, log

import numpy as np
import numpy.typing as npt

from deniable.compute.executors import AnyExecutor, Held, executor_of
from deniable.compute.rows import LikelihoodRows
from deniable.errors import InputError
from deniable.kernels.array_types import Floats, Int64s, RowShard, Singles
from deniable.kernels.likelihood.pairs import pair_index

MAX_ROWS_PER_PART = 65_536
"""Maximum number of rows of a part."""
MIN_ROWS_PER_PART = 2048
"""Number of rows below which cutting a part does not pay."""
MAX_GATHERED_SAMPLE = 1 << 18
"""Maximum size of a sample that is gathered, so that passes over it need no communication."""


@dataclass(frozen=True)
class Evaluation:
    """Result of one pass over all reports.

    Parameters
    ----------
    log_likelihood : float
        Log-likelihood of all reports, in nats.
    gradient : float64 array
        Its gradient *per report*. At the maximum, no entry exceeds 1.
    weight : float
        Number of reports, N.
    """

    log_likelihood: float
    gradient: Floats
    weight: float

    @property
    def gap(self) -> float:
        """Upper bound of the distance to the maximum, in nats, at a table that sums to 1."""
        if not isfinite(self.log_likelihood):
            return inf
        # max g ≥ Σ p g = 1, except for rounding.
        return self.weight * max(0.0, log(float(self.gradient.max())))

    def em_step(self, table: Floats) -> Floats:
        """Return the next iterate of expectation maximisation, the paper's algorithm: p_c g_c."""
        new: Floats = table * self.gradient
        new /= new.sum()  # against rounding
        return new


@dataclass(frozen=True, eq=False)
class Evidence:
    """Likelihood rows of all reports about one table.

    Parameters
    ----------
    shape : tuple of int
        Number of categories of each variable.
    rows : Held of LikelihoodRows
        The rows, in P parts that stay on their workers.
    counts : int64 array of shape (P,)
        Number of rows of each part.
    weights : float64 array of shape (P,)
        Number of reports of each part.
    """

    shape: tuple[int, ...]
    rows: Held[LikelihoodRows]
    counts: Int64s
    weights: Floats

    @property
    def folded(self) -> tuple[int, int]:
        """Shape of the table as a matrix: first variable × all others."""
        return self.shape[0], int(np.prod(self.shape[1:], dtype=np.int64))

    @property
    def count(self) -> int:
        """Number of rows. It is less than `weight` if a row stands for several reports."""
        return int(self.counts.sum())

    @property
    def weight(self) -> float:
        """Number of reports."""
        return float(self.weights.sum())

    def evaluate(self, table: Floats, *, precise: bool = True) -> Evaluation:
        """Return log-likelihood and gradient at a table float64[m, n], from one pass.

        precise : compute in float64, else in float32
        """
        dtype = np.float64 if precise else np.float32
        sums = self.rows.sum(partial(LikelihoodRows.evaluate, table=table.astype(dtype)))
        gradient = sums[:-1].reshape(table.shape) / self.weight
        return Evaluation(float(sums[-1]), gradient, self.weight)

    def information(self, table: Floats) -> Floats:
        """Return the observed information Σ_k w_k v_k v_kᵀ / d_k² at a table float64[m, n].

        The result is float64[mn, mn]. With v_k = vec(a_k b_kᵀ), each entry sums products of two
        pairs, (a_i a_i′)(b_j b_j′), so each unordered pair is needed only once
        (`LikelihoodRows.pair_sums`): a quarter of the entries.
        """
        sums = self.rows.sum(partial(LikelihoodRows.pair_sums, table=table))
        left, right = (pair_index(size) for size in table.shape)
        full = sums[left[:, None, :, None], right[None, :, None, :]]
        return np.ascontiguousarray(full).reshape(table.size, table.size)

    def only(self, *variables: int) -> "Evidence":
        """Return the evidence of the same reports about some of the variables."""
        rows = self.rows.hold(partial(LikelihoodRows.only, variables=variables))
        return replace(self, shape=tuple(self.shape[v] for v in variables), rows=rows)

    def mixed(self, mixing: Sequence[Singles]) -> "Evidence":
        """Return the evidence of the same reports about mixtures of the categories."""
        rows = self.rows.hold(partial(LikelihoodRows.mixed, mixing=mixing))
        return replace(self, shape=tuple(matrix.shape[1] for matrix in mixing), rows=rows)

    def sample(self, count: int, rng: np.random.Generator) -> "Evidence":
        """Return `count` reports drawn with replacement, or all reports if there are few rows.

        A large sample stays on the workers.
        """
        if 2 * count >= self.count:
            return self
        counts = rng.multinomial(count, self.weights / self.weight)
        seeds = rng.integers(1 << 63, size=len(counts))
        rows = self.rows.hold(LikelihoodRows.drawn, counts.tolist(), seeds.tolist())
        if count <= MAX_GATHERED_SAMPLE:
            rows = rows.gathered()
        return replace(self, rows=rows, counts=counts, weights=counts.astype(np.float64))

    def stratified(self, strata: npt.ArrayLike) -> "Evidence":
        """Return the same evidence with the stratum of each row, in the order of the shards."""
        labels = np.asarray(strata)
        if labels.shape != (self.count,):
            raise InputError(
                f"strata must have one integer for each of the {self.count} rows, got shape "
                f"{labels.shape}"
            )
        cut = np.split(labels, np.cumsum(self.counts)[:-1])
        return replace(self, rows=self.rows.hold(LikelihoodRows.stratified, cut))


def gather(
    shards: Iterable[RowShard], shape: Sequence[int], *, executor: AnyExecutor = None
) -> Evidence:
    """Return the evidence of shards of likelihood rows, cut into parts of equal size.

    Parameters
    ----------
    shards : iterable of tuples of arrays
        One float32[N, m] per entry of `shape`, each row scaled so that its largest entry is 1, and
        optionally weights [N]: the number of reports that each row stands for.
    shape : sequence of int
        Number of categories of each variable.
    executor : str or distributed.Client, optional
        Where the rows are kept. Threads of this process by default.
    """
    sizes = tuple(int(size) for size in shape)
    if not sizes or min(sizes) < 1:
        raise InputError(f"each variable needs at least one category, got the shape {sizes}")
    cut = [part for shard in shards for part in _cut(_checked(shard, sizes))]
    rows = executor_of(executor).hold(partial(_laid_out, len(sizes)), cut)
    return evidence_of(rows, sizes)


def evidence_of(rows: Held[LikelihoodRows], shape: Sequence[int]) -> Evidence:
    """Return the evidence of rows that an executor holds."""
    sizes = list(rows.map(LikelihoodRows.size))
    counts = np.array([count for count, _ in sizes], np.int64)
    weights = np.array([weight for _, weight in sizes], np.float64)
    if not weights.sum() > 0:
        raise InputError("there are no reports: no row has a weight above 0")
    return Evidence(tuple(shape), rows, counts, weights)


def _laid_out(variables: int, shard: RowShard) -> LikelihoodRows:
    """Return the rows of a shard, laid out for passes."""
    weights = shard[variables] if len(shard) > variables else None
    return LikelihoodRows.laid_out(shard[:variables], weights)


def _checked(shard: RowShard, sizes: tuple[int, ...]) -> RowShard:
    """Return a shard; raise InputError if its shapes or weights are wrong."""
    if len(shard) not in (len(sizes), len(sizes) + 1):
        raise InputError(
            f"a shard for the shape {sizes} must have {len(sizes)} arrays of likelihood rows, and "
            f"optionally weights, got {len(shard)} arrays"
        )
    count = len(shard[0])
    for position, (rows, size) in enumerate(zip(shard, sizes, strict=False)):
        if rows.shape != (count, size):
            raise InputError(
                f"rows of variable {position} have shape {rows.shape}, expected ({count}, {size})"
            )
    if len(shard) > len(sizes):
        weights = shard[-1]
        if weights.shape != (count,) or not np.all(np.isfinite(weights) & (weights >= 0)):
            raise InputError(
                f"weights must be {count} finite numbers of at least 0, got shape {weights.shape}"
            )
    return shard


def _cut(shard: RowShard) -> list[RowShard]:
    """Cut a shard into parts of equal size."""
    count = len(shard[0])
    parts = max(-(-count // MAX_ROWS_PER_PART), min(4, count // MIN_ROWS_PER_PART))
    edges = [count * part // parts for part in range(parts + 1)] if parts else [0]
    return [tuple(array[low:high] for array in shard) for low, high in pairwise(edges)]
