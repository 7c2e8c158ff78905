"""Evidence: every report's likelihood rows, laid out for many passes over them.

A joint distribution is estimated from per-report likelihood rows alone (Fanti, Pihur, Erlingsson,
"Building a RAPPOR with the Unknown", section on joint distributions): for report k, a_k over the
first variable's categories, b_k over the second's, and so on. Tables of three or more variables are
folded to a matrix, first variable against all others; the others' products are made block by block.

The rows stay in pieces where they were made: a pass sends a table to them and adds up, piece after
piece in a fixed order, the sums that come back.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from deniable.compute.backend import Executor, Held, default_executor
from deniable.compute.cpu.pieces import Floats, Integers, Piece, Rows, Shard, lay_out
from deniable.errors import InputError

_PIECE = 32_768
_WORTHWHILE = 2048
FEW = 1 << 18
"""Reports of a sample that may travel, so that the many passes over it need not."""


@dataclass(frozen=True)
class Evaluation:
    """One pass: total log-likelihood in nats, and the gradient *per report* (at most 1 at best)."""

    log_likelihood: float
    gradient: Floats


@dataclass(frozen=True, eq=False)
class Evidence:
    """All reports about one table: pieces of them, and the executor that keeps those.

    shape : categories per variable
    counts, weights : int64[P] and float64[P], rows and reports of each piece
    """

    shape: tuple[int, ...]
    pieces: Held[Piece]
    counts: npt.NDArray[np.int64]
    weights: Floats
    executor: Executor

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
        sums = self.pieces.sum(partial(likelihood_pass, table.astype(kind)))
        return Evaluation(float(sums[-1]), sums[:-1].reshape(table.shape) / self.weight)

    def only(self, *variables: int) -> "Evidence":
        """Return the same reports' evidence about some of the variables."""
        pieces = self.pieces.hold(partial(_only, variables))
        shape = tuple(self.shape[v] for v in variables)
        return Evidence(shape, pieces, self.counts, self.weights, self.executor)

    def mixed(self, mixing: Sequence[Rows]) -> "Evidence":
        """Return the same reports' evidence about other categories; see `Piece.mixed`."""
        pieces = self.pieces.hold(partial(_mixed, mixing))
        shape = tuple(matrix.shape[1] for matrix in mixing)
        return Evidence(shape, pieces, self.counts, self.weights, self.executor)

    def sample(self, count: int, rng: np.random.Generator) -> "Evidence":
        """Return `count` reports drawn with replacement, or all of them if there are few rows.

        They are drawn where the pieces are, and stay there if they are many.
        """
        if 2 * count >= self.count:
            return self
        counts = rng.multinomial(count, self.weights / self.weight)
        seeds = rng.integers(1 << 63, size=len(counts))
        hold = self.pieces.few if count <= FEW else self.pieces.hold
        pieces = hold(_drawn, counts.tolist(), seeds.tolist())
        return Evidence(self.shape, pieces, counts, counts.astype(np.float64), self.executor)

    def stratified(self, strata: npt.ArrayLike) -> "Evidence":
        """Return the same evidence, with an integer for each row, in the order of the shards."""
        labels = np.asarray(strata)
        if labels.shape != (self.count,):
            raise InputError(
                f"strata must be {self.count} integers, one per row, got shape {labels.shape}"
            )
        cut = np.split(labels, np.cumsum(self.counts)[:-1])
        pieces = self.pieces.hold(_stratified, cut)
        return Evidence(self.shape, pieces, self.counts, self.weights, self.executor)


def gather(
    shards: Iterable[Shard], shape: Sequence[int], *, executor: Executor | None = None
) -> Evidence:
    """Check shards of likelihood rows, cut them into even pieces and lay these out as blocks.

    shards : tuples of float32[N, m], float32[N, n], … (one per entry of `shape`; each row scaled so
    that its largest entry is 1), and optionally weights [N], for instance how often a row occurred.
    """
    sizes = tuple(int(size) for size in shape)
    if not sizes or min(sizes) < 1:
        raise InputError(f"shape needs at least one category per variable, got {sizes}")
    executor = executor or default_executor()
    cut = [part for shard in shards for part in _cut(_checked(shard, sizes))]
    held = executor.hold(partial(_laid_out, layout_of(executor), len(sizes)), cut)
    return evidence_of(held, sizes, executor)


def evidence_of(pieces: Held[Piece], shape: Sequence[int], executor: Executor) -> Evidence:
    """The evidence that these pieces are, wherever they are kept."""
    sizes = list(pieces.map(_size))
    counts = np.array([count for count, _ in sizes], np.int64)
    weights = np.array([weight for _, weight in sizes], np.float64)
    if not weights.sum() > 0:
        raise InputError("no reports: shards hold no row with a weight above 0")
    return Evidence(tuple(shape), pieces, counts, weights, executor)


def layout_of(executor: Executor) -> Any:
    """What makes pieces for this executor: its own `lay_out`, if it has one; see `piece.lay_out`.

    The function is sent to where the rows are, so it must be one that can be pickled.
    """
    return getattr(executor, "lay_out", lay_out)


# --- what is done to each piece, where it is: module-level functions, which can be sent ---------


def likelihood_pass(table: npt.NDArray[np.floating[Any]], piece: Piece) -> Floats:
    """One piece's part of a pass: the gradient row by row, then the log-likelihood."""
    total, gradient = piece.evaluate(table)
    return np.append(gradient, total)


def _only(variables: Sequence[int], piece: Piece) -> Piece:
    return piece.only(variables)


def _mixed(mixing: Sequence[Rows], piece: Piece) -> Piece:
    return piece.mixed(mixing)


def _drawn(piece: Piece, count: int, seed: int) -> Piece:
    return piece.drawn(count, seed)


def _stratified(piece: Piece, strata: Integers) -> Piece:
    return piece.stratified(strata)


def _size(piece: Piece) -> tuple[int, float]:
    return piece.count, piece.weight


def _laid_out(layout: Any, variables: int, shard: Shard) -> Piece:
    weights = shard[variables] if len(shard) > variables else None
    piece: Piece = layout(shard[:variables], weights, None)
    return piece


def _checked(shard: Shard, sizes: tuple[int, ...]) -> Shard:
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


def _cut(shard: Shard) -> list[Shard]:
    count = len(shard[0])
    parts = max(-(-count // _PIECE), min(4, count // _WORTHWHILE))
    edges = [count * part // parts for part in range(parts + 1)] if parts else [0]
    return [tuple(array[low:high] for array in shard) for low, high in pairwise(edges)]
