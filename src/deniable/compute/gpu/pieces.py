"""Likelihood rows in a device's memory, and everything that is done to them there.

The `Piece` of `compute.cpu.pieces` for tensors. A GPU is kept busy by much work at once, so the
pieces of all shards are joined to one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deniable.compute.gpu import expectation as estep
from deniable.compute.gpu.ratios import TensorRatios
from deniable.compute.gpu.tensors import Tensor, device, on_host, placed, torch
from deniable.errors import InputError

Floats = NDArray[np.float64]
Integers = NDArray[np.integer[Any]]


@dataclass(frozen=True, eq=False)
class TensorPiece:
    """held : one float32[N, m] a variable; held_weights : float64[N], or None for one each;
    strata : integers[N], in this process's memory."""

    held: tuple[Tensor, ...]
    held_weights: Tensor | None
    strata: Integers | None

    @property
    def rows(self) -> tuple[NDArray[np.float32], ...]:
        """The rows, copied to this process's memory."""
        return tuple(on_host(rows) for rows in self.held)

    @property
    def weights(self) -> Floats | None:
        """The weights, copied to this process's memory."""
        return None if self.held_weights is None else on_host(self.held_weights)

    @property
    def count(self) -> int:
        """Number of rows."""
        return len(self.held[0])

    @property
    def weight(self) -> float:
        """Number of reports, counting weights."""
        return float(self.count if self.held_weights is None else self.held_weights.sum())

    def evaluate(self, table: NDArray[np.floating[Any]]) -> tuple[float, Floats]:
        """One pass; see `estep.expect`, or `fused.expect` where that can stand in."""
        total, gradient = self._pass()(placed(table, self.held[0].device))
        return float(total), on_host(gradient)

    def pair_sums(self, table: Floats) -> Floats:
        """The curvature's sums; see `estep.pair_sums`."""
        at = placed(table, self.held[0].device)
        return on_host(estep.pair_sums(self.held, self.held_weights, at))

    def group_scores(
        self, table: Floats, order: NDArray[np.intp], edges: NDArray[np.intp]
    ) -> Floats:
        """One pass over each group's rows."""
        scores = np.zeros((len(edges) - 1, table.size + 1))
        sorted_rows = placed(order, self.held[0].device)
        for s in np.flatnonzero(np.diff(edges)):
            chosen = sorted_rows[int(edges[s]) : int(edges[s + 1])]
            weights = None if self.held_weights is None else self.held_weights[chosen]
            part = TensorPiece(tuple(held[chosen] for held in self.held), weights, None)
            scores[s] = np.append(part.evaluate(table)[1], part.weight)
        return scores

    def only(self, variables: Sequence[int]) -> TensorPiece:
        """The same reports' rows of some of the variables."""
        return replace(self, held=tuple(self.held[v] for v in variables))

    def mixed(self, mixing: Sequence[NDArray[np.float32]]) -> TensorPiece:
        """Rows over new categories."""
        new = [h @ placed(matrix, h.device) for h, matrix in zip(self.held, mixing, strict=True)]
        return replace(self, held=tuple(rows / rows.amax(dim=1, keepdim=True) for rows in new))

    def drawn(self, count: int, seed: int) -> TensorPiece:
        """Reports drawn with replacement."""
        positions = np.sort(np.random.default_rng(seed).random(count)) * self.weight
        at = placed(positions, self.held[0].device)
        if self.held_weights is None:
            chosen = at.long()
        else:
            chosen = torch().searchsorted(self.held_weights.cumsum(0), at, right=True)
        return self._chosen(chosen.clamp_max_(self.count - 1), None)

    def weighted(self, weights: Floats) -> TensorPiece:
        """The same rows with other weights, without those of weight 0."""
        new = placed(weights, self.held[0].device)
        kept = (new > 0).nonzero()[:, 0]
        return self._chosen(kept, new[kept])

    def stratified(self, strata: Integers) -> TensorPiece:
        """The same rows, of these strata."""
        return replace(self, strata=strata)

    def ratios(self, margins: Sequence[NDArray[np.float32]]) -> TensorRatios:
        """Likelihood ratios at two margins, for the score test."""
        return TensorRatios.of(self.held, margins, self.held_weights, self.strata)

    def _chosen(self, rows: Tensor, weights: Tensor | None) -> TensorPiece:
        strata = None if self.strata is None else self.strata[on_host(rows)]
        return TensorPiece(tuple(held[rows] for held in self.held), weights, strata)

    def _pass(self) -> Any:
        if len(self.held) == 2 and self.count and self.held[0].is_cuda:
            from deniable.compute.gpu import fused_expectation as fused

            a, b = self.held
            if fused.fits(a.shape[1], b.shape[1]):
                return lambda table: fused.expect(a, b, self.held_weights, table)
        return lambda table: estep.expect(self.held, self.held_weights, table)


def lay_out(
    name: str, rows: Sequence[Any], weights: Any | None, strata: Integers | None
) -> TensorPiece:
    """Put rows on the device of this name, and check that each row's largest entry is 1."""
    t, where = torch(), device(name)
    held = tuple(placed(array, where).to(t.float32).contiguous() for array in rows)
    for array in held:
        if len(array):
            low, high = (float(x) for x in array.aminmax())
            worst = float((array.amax(dim=1) - 1).abs().max())
            if not (low >= 0 and high < np.inf and worst <= 1e-5):
                raise InputError(
                    "likelihood rows must be at least 0 with largest entry 1 in each row "
                    f"(off by up to {max(worst, -low):.3g}); divide each row by its largest entry"
                )
    return TensorPiece(
        held, None if weights is None else placed(weights, where).to(t.float64), strata
    )


def joined(pieces: Sequence[TensorPiece]) -> TensorPiece:
    """All reports of these pieces, in order, as one piece."""
    if len(pieces) == 1:
        return pieces[0]
    t = torch()
    held = tuple(t.cat(parts) for parts in zip(*(p.held for p in pieces), strict=True))
    weights = strata = None
    if any(p.held_weights is not None for p in pieces):
        weights = t.cat([
            t.ones(p.count, dtype=t.float64, device=held[0].device)
            if p.held_weights is None else p.held_weights
            for p in pieces
        ])  # fmt: skip
    if all(p.strata is not None for p in pieces):
        strata = np.concatenate([p.strata for p in pieces if p.strata is not None])
    return TensorPiece(held, weights, strata)
