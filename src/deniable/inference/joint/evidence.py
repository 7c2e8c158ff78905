"""Evidence: every report's likelihood rows, laid out for many passes over them.

A joint distribution is estimated from per-report likelihood rows alone (Fanti, Pihur, Erlingsson,
"Building a RAPPOR with the Unknown", section on joint distributions): for report k, a_k over the
first variable's categories, b_k over the second's, and so on. Tables of three or more variables are
folded to a matrix, first variable against all others; the others' products are made block by block.

The rows stay in parts where they were made: a pass sends a table to them and adds up, part after
part in a fixed order, the sums that come back.

The log-likelihood Σ_k w_k log Σ_c p_c v_kc is concave in the table p, so its maximum can be
*certified*. With the gradient per report g_c = (1/N) Σ_k w_k v_kc / d_k, Jensen's inequality gives
for any table q
    l(q) − l(p) = Σ_k w_k log(Σ_c q_c v_kc / d_k) ≤ N log Σ_c q_c g_c ≤ N log max_c g_c.
That gap, in nats for the whole data set, decides when to stop; small steps prove nothing.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from math import inf, isfinite, log

import numpy as np
import numpy.typing as npt

from deniable.compute.arrays import ArrayKernels
from deniable.compute.backend import Backend, Held, MethodCall
from deniable.compute.named import default_backend
from deniable.compute.rows import LikelihoodRows
from deniable.errors import InputError
from deniable.kernels.array_types import Floats, Indices, Int64s, RowShard, Singles

ROWS_PER_PART = 32_768
WORTHWHILE_ROWS = 2048
"""Rows from which on a part of their own pays."""
MAX_GATHERED = 1 << 18
"""Reports of a sample that may travel, so that the many passes over it need not."""


@dataclass(frozen=True)
class Evaluation:
    """One pass: total log-likelihood in nats, and the gradient *per report* (at most 1 at best).

    weight : number of reports, N
    """

    log_likelihood: float
    gradient: Floats
    weight: float

    @property
    def gap(self) -> float:
        """Nats by which the maximum may exceed the log-likelihood, at a table that sums to 1."""
        if not isfinite(self.log_likelihood):
            return inf
        # max g ≥ Σ p g = 1; rounding may put it a hair below.
        return self.weight * max(0.0, log(float(self.gradient.max())))

    def em_step(self, table: Floats) -> Floats:
        """Return the next iterate of the paper's algorithm, p_c g_c, rescaled against rounding."""
        following: Floats = table * self.gradient
        following /= following.sum()
        return following


@dataclass(frozen=True, eq=False)
class Evidence:
    """All reports about one table.

    shape : categories per variable
    rows : the reports' likelihood rows, in parts that stay where they were made
    counts, weights : int64[P] and float64[P], rows and reports of each part
    arrays : the kernels of the memory that the rows are in
    """

    shape: tuple[int, ...]
    rows: Held[LikelihoodRows]
    counts: Int64s
    weights: Floats
    arrays: ArrayKernels

    @property
    def folded(self) -> tuple[int, int]:
        """The table's shape as a matrix: first variable × all others."""
        return self.shape[0], int(np.prod(self.shape[1:], dtype=np.int64))

    @property
    def count(self) -> int:
        """Number of rows; less than `weight` where equal rows were collapsed."""
        return int(self.counts.sum())

    @property
    def weight(self) -> float:
        """Number of reports, counting weights."""
        return float(self.weights.sum())

    def evaluate(self, table: Floats, *, precise: bool = True) -> Evaluation:
        """Pass over all reports at a table float64[m, n], in float64 if precise, else float32."""
        kind = np.float64 if precise else np.float32
        sums = self.rows.sum(MethodCall(LikelihoodRows.evaluate, table.astype(kind)))
        gradient = sums[:-1].reshape(table.shape) / self.weight
        return Evaluation(float(sums[-1]), gradient, self.weight)

    def information(self, table: Floats) -> Floats:
        """Observed information Σ_k w_k v_k v_kᵀ / d_k², float64[mn, mn], at a table float64[m, n].

        With v_k = vec(a_k b_kᵀ), each entry sums products of two pairs, (a_i a_i′)(b_j b_j′).
        Listing each unordered pair once makes the whole matrix one product of sizes
        m(m+1)/2 × n(n+1)/2 over the reports, half the arithmetic of a symmetric product of the
        N × cells array and a quarter of a plain one (`LikelihoodRows.pair_sums`).
        """
        sums = self.rows.sum(MethodCall(LikelihoodRows.pair_sums, table))
        left, right = (_pair_index(size) for size in table.shape)
        full = sums[left[:, None, :, None], right[None, :, None, :]]
        return np.ascontiguousarray(full).reshape(table.size, table.size)

    def only(self, *variables: int) -> "Evidence":
        """Return the same reports' evidence about some of the variables."""
        rows = self.rows.hold(MethodCall(LikelihoodRows.only, variables))
        return replace(self, shape=tuple(self.shape[v] for v in variables), rows=rows)

    def mixed(self, mixing: Sequence[Singles]) -> "Evidence":
        """Return the same reports' evidence about other categories; see `LikelihoodRows.mixed`."""
        rows = self.rows.hold(MethodCall(LikelihoodRows.mixed, mixing))
        return replace(self, shape=tuple(matrix.shape[1] for matrix in mixing), rows=rows)

    def sample(self, count: int, rng: np.random.Generator) -> "Evidence":
        """Return `count` reports drawn with replacement, or all of them if there are few rows.

        They are drawn where the rows are, and stay there if they are many.
        """
        if 2 * count >= self.count:
            return self
        counts = rng.multinomial(count, self.weights / self.weight)
        seeds = rng.integers(1 << 63, size=len(counts))
        hold = self.rows.gather_small if count <= MAX_GATHERED else self.rows.hold
        rows = hold(MethodCall(LikelihoodRows.drawn), counts.tolist(), seeds.tolist())
        return replace(self, rows=rows, counts=counts, weights=counts.astype(np.float64))

    def stratified(self, strata: npt.ArrayLike) -> "Evidence":
        """Return the same evidence, with an integer for each row, in the order of the shards."""
        labels = np.asarray(strata)
        if labels.shape != (self.count,):
            raise InputError(
                f"strata must be {self.count} integers, one per row, got shape {labels.shape}"
            )
        cut = np.split(labels, np.cumsum(self.counts)[:-1])
        return replace(self, rows=self.rows.hold(MethodCall(LikelihoodRows.stratified), cut))


def gather(
    shards: Iterable[RowShard], shape: Sequence[int], *, executor: Backend | None = None
) -> Evidence:
    """Check shards of likelihood rows, cut them into even parts and lay these out.

    shards : tuples of float32[N, m], float32[N, n], … (one per entry of `shape`; each row scaled so
    that its largest entry is 1), and optionally weights [N], for instance how often a row occurred.
    """
    sizes = tuple(int(size) for size in shape)
    if not sizes or min(sizes) < 1:
        raise InputError(f"shape needs at least one category per variable, got {sizes}")
    backend = executor or default_backend()
    cut = [part for shard in shards for part in _cut(_checked(shard, sizes))]
    rows = backend.hold(partial(_laid_out, backend.arrays, len(sizes)), cut)
    return evidence_of(rows, sizes, backend.arrays)


def evidence_of(rows: Held[LikelihoodRows], shape: Sequence[int], arrays: ArrayKernels) -> Evidence:
    """The evidence that these rows are, wherever they are kept."""
    sizes = list(rows.map(MethodCall(LikelihoodRows.size)))
    counts = np.array([count for count, _ in sizes], np.int64)
    weights = np.array([weight for _, weight in sizes], np.float64)
    if not weights.sum() > 0:
        raise InputError("no reports: shards hold no row with a weight above 0")
    return Evidence(tuple(shape), rows, counts, weights, arrays)


def _pair_index(size: int) -> Indices:
    """Where the unordered pair (i, i′) stands in the pair sums, as intp[size, size]."""
    index = np.zeros((size, size), np.intp)
    rows, columns = np.triu_indices(size)
    index[rows, columns] = index[columns, rows] = np.arange(len(rows))
    return index


def _laid_out(arrays: ArrayKernels, variables: int, shard: RowShard) -> LikelihoodRows:
    weights = shard[variables] if len(shard) > variables else None
    return arrays.lay_out(shard[:variables], weights)


def _checked(shard: RowShard, sizes: tuple[int, ...]) -> RowShard:
    if len(shard) not in (len(sizes), len(sizes) + 1):
        raise InputError(
            f"a shard for shape {sizes} is {len(sizes)} arrays of likelihood rows and optionally "
            f"weights, got {len(shard)} arrays"
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
    count = len(shard[0])
    parts = max(-(-count // ROWS_PER_PART), min(4, count // WORTHWHILE_ROWS))
    edges = [count * part // parts for part in range(parts + 1)] if parts else [0]
    return [tuple(array[low:high] for array in shard) for low, high in pairwise(edges)]
