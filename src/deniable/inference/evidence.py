"""Evidence: every report's likelihood rows, laid out for many passes over them.

A joint distribution is estimated from per-report likelihood rows alone (Fanti, Pihur, Erlingsson,
"Building a RAPPOR with the Unknown", section on joint distributions): for report k, a_k over the
first variable's categories, b_k over the second's, and so on. Tables of three or more variables are
folded to a matrix, first variable against all others; the others' products are made block by block.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from deniable.compute.executor import Executor, default_executor
from deniable.errors import InputError
from deniable.kernels.estep import BLOCK, expect, to_blocks

Floats = npt.NDArray[np.float64]
Rows = npt.NDArray[np.float32]
Shard = tuple[npt.NDArray[Any], ...]
"""One float32[N, m] per variable, each row's largest entry 1; then, optionally, weights [N]."""

_PIECE = 32_768
_WORTHWHILE = 2048


@dataclass(frozen=True)
class Piece:
    """Reports worked on together: rows as given, weights, and the same rows as blocks."""

    rows: tuple[Rows, ...]
    weights: Floats | None
    first: Rows
    rest: Rows
    block_weights: Floats

    @property
    def count(self) -> int:
        """Number of rows."""
        return len(self.rows[0])

    @property
    def weight(self) -> float:
        """Number of reports, counting weights."""
        return float(self.count if self.weights is None else self.weights.sum())

    def rows_at(self, positions: Floats) -> npt.NDArray[np.intp]:
        """Rows that hold the reports at given positions between 0 and `weight`."""
        if self.weights is None:
            found = positions.astype(np.intp)
        else:
            found = np.searchsorted(np.cumsum(self.weights), positions, side="right")
        return np.minimum(found, self.count - 1)


@dataclass(frozen=True)
class Evaluation:
    """One pass: total log-likelihood in nats, and the gradient *per report* (at most 1 at best)."""

    log_likelihood: float
    gradient: Floats


@dataclass(frozen=True)
class Evidence:
    """All reports about one table, and the executor that passes over them.

    shape : categories per variable; weight : number of reports, counting weights.
    """

    shape: tuple[int, ...]
    pieces: tuple[Piece, ...]
    weight: float
    executor: Executor

    @property
    def folded(self) -> tuple[int, int]:
        """The table's shape as a matrix: first variable × all others."""
        return self.shape[0], int(np.prod(self.shape[1:], dtype=np.int64))

    @property
    def count(self) -> int:
        """Number of rows; less than `weight` where equal rows were collapsed."""
        return sum(piece.count for piece in self.pieces)

    def evaluate(self, table: Floats, *, precise: bool = True) -> Evaluation:
        """Pass over all reports at a table float64[m, n], in float64 if precise, else float32."""
        kind = np.float64 if precise else np.float32
        task = partial(_pass, np.array(self.shape[1:] or (1,)), table.astype(kind))
        total, gradient = 0.0, np.zeros(table.shape)
        for part, part_gradient in self.executor.map(task, self.pieces):
            total += part
            gradient += part_gradient
        return Evaluation(total, gradient / self.weight)

    def only(self, *variables: int) -> "Evidence":
        """Return the same reports' evidence about some of the variables."""
        shards: list[Shard] = [
            (*(piece.rows[v] for v in variables), *_weights_of(piece)) for piece in self.pieces
        ]
        return gather(shards, [self.shape[v] for v in variables], executor=self.executor)

    def sample(self, count: int, rng: np.random.Generator) -> "Evidence":
        """Return `count` reports drawn with replacement, or all of them if there are few rows."""
        if 2 * count >= self.count:
            return self
        ends = np.cumsum([piece.weight for piece in self.pieces])
        drawn = np.sort(rng.random(count)) * ends[-1]
        shards: list[Shard] = []
        for piece, end in zip(self.pieces, ends, strict=True):
            low, high = np.searchsorted(drawn, (end - piece.weight, end))
            chosen = piece.rows_at(drawn[low:high] - (end - piece.weight))
            shards.append(tuple(rows[chosen] for rows in piece.rows))
        joined = tuple(np.concatenate(arrays) for arrays in zip(*shards, strict=True))
        return gather([joined], self.shape, executor=self.executor)


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
    pieces = tuple(executor.map(partial(_lay_out, len(sizes)), cut))
    weight = sum(piece.weight for piece in pieces)
    if not weight > 0:
        raise InputError("no reports: shards hold no row with a weight above 0")
    return Evidence(sizes, pieces, weight, executor)


def multiply_out(rows: Sequence[Rows]) -> Rows:
    """Return [N, Π n_v]: for each report the products of one entry from each variable's row."""
    if not rows:
        raise InputError("rows of at least one variable are needed, got none")
    out = rows[0]
    for more in rows[1:]:
        out = (out[:, :, None] * more[:, None, :]).reshape(len(out), -1)
    return out


def _pass(sizes: npt.NDArray[np.int64], table: Floats, piece: Piece) -> tuple[float, Floats]:
    gradient = np.zeros(table.shape)
    total = expect(
        piece.first, piece.rest, sizes, piece.block_weights, piece.count, table, gradient
    )
    return float(total), gradient


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


def _lay_out(variables: int, shard: Shard) -> Piece:
    rows = tuple(np.ascontiguousarray(array, np.float32) for array in shard[:variables])
    count = len(rows[0])
    blocks = -(-count // BLOCK)
    laid = [_blocks(array, blocks) for array in rows]
    rest = laid[1:] or [np.ones((blocks, 1, BLOCK), np.float32)]
    weights, block_weights = None, np.empty((blocks, 0))
    if len(shard) > variables:
        weights = np.ascontiguousarray(shard[variables], np.float64)
        block_weights = np.zeros((blocks, BLOCK))
        block_weights.ravel()[:count] = weights
    stacked = rest[0] if len(rest) == 1 else np.concatenate(rest, axis=1)
    return Piece(rows, weights, laid[0], stacked, block_weights)


def _blocks(rows: Rows, blocks: int) -> Rows:
    out = np.empty((blocks, rows.shape[1], BLOCK), np.float32)
    worst = to_blocks(rows, out)
    if not worst <= 1e-5:
        raise InputError(
            "likelihood rows must be at least 0 with largest entry 1 in each row "
            f"(off by up to {worst:.3g}); divide each row by its largest entry"
        )
    return out


def _weights_of(piece: Piece) -> tuple[Floats, ...]:
    return () if piece.weights is None else (piece.weights,)
