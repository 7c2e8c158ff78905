"""Likelihood ratios in a device's memory, for the score test: `inference.association.score.Ratios`
on tensors.

Sums over reports run in double precision, stratum by stratum, so that rounding does not pass for a
direction in which ratios vary.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deniable.compute.gpu.tensors import Tensor, on_host, placed, torch

Floats = NDArray[np.float64]
Rows = NDArray[np.float32]
Integers = NDArray[np.integer[Any]]
STEP = 1 << 20
"""Reports whose copies in double precision exist together."""


@dataclass(frozen=True, eq=False)
class TensorRatios:
    """α − 1 and β − 1, float32[N, m] and float32[N, n], ordered by stratum.

    weights : float64[N]; labels : the strata among them, ascending; edges : where each begins,
    and N.
    """

    x: Tensor
    y: Tensor
    weights: Tensor
    labels: Integers
    edges: Integers

    @classmethod
    def of(
        cls,
        rows: Sequence[Tensor],
        margins: Sequence[Rows],
        weights: Tensor | None,
        strata: Integers | None,
    ) -> TensorRatios:
        """At two margins, float32[m] and float32[n]."""
        t, where, count = torch(), rows[0].device, len(rows[0])
        labels, edges = np.zeros(1, np.intp), np.array([0, count])
        if weights is None:
            weights = t.ones(count, dtype=t.float64, device=where)
        if strata is not None:
            sorted_strata, order = t.sort(placed(strata.astype(np.int64), where), stable=True)
            rows, weights = [each[order] for each in rows], weights[order]
            labels, starts = np.unique(on_host(sorted_strata), return_index=True)
            edges = np.append(starts, count)
        x, y = (
            each / (each @ placed(margin, where)).clamp_min_(1e-30)[:, None] - 1
            for each, margin in zip(rows, margins, strict=True)
        )
        return cls(x, y, weights, labels, edges)

    def totals(self) -> tuple[Integers, Floats, Floats, Floats, bool]:
        """Labels, reports, Σ w x and Σ w y per stratum; whether weights are whole numbers."""
        weight = np.array([float(self.weights[rows].sum()) for _, rows in self._layers()])
        x, y = (
            np.array([on_host(_product(self.weights[rows, None], side[rows]))[0]
                      for _, rows in self._layers()]).reshape(-1, side.shape[1])
            for side in (self.x, self.y)
        )  # fmt: skip
        return self.labels, weight, x, y, bool((self.weights == self.weights.round()).all())

    def centred(self, labels: Integers, x: Floats, y: Floats) -> TensorRatios:
        """Deviations from means of these strata; labels become their places, others are left out.

        labels : ascending; x, y : float64[S, m] and float64[S, n]
        """
        t = torch()
        places = np.searchsorted(labels, self.labels)
        inside = np.minimum(places, len(labels) - 1)
        kept = labels[inside] == self.labels
        sizes = np.diff(self.edges)
        each = placed(np.repeat(np.where(kept, inside, -1), sizes), self.x.device)
        chosen = (each >= 0).nonzero()[:, 0]
        at = each[chosen]
        moved = [
            side[chosen] - placed(mean.astype(np.float32), side.device)[at]
            for side, mean in ((self.x, x), (self.y, y))
        ]
        edges = np.append(0, np.cumsum(sizes[kept]))
        return replace(
            self, x=moved[0], y=moved[1], weights=t.take(self.weights, chosen),
            labels=inside[kept], edges=edges,
        )  # fmt: skip

    def scatters(self, strata: int) -> tuple[Floats, Floats, Floats]:
        """Σ w x xᵀ and Σ w y yᵀ, float64[strata, m, m] and [strata, n, n]; Σ w x yᵀ of all."""
        m, n = self.x.shape[1], self.y.shape[1]
        xx, yy, xy = np.zeros((strata, m, m)), np.zeros((strata, n, n)), np.zeros((m, n))
        for place, rows in self._layers():
            x, y, w = self.x[rows], self.y[rows], self.weights[rows, None]
            xx[place] += on_host(_product(x, x, w))
            yy[place] += on_host(_product(y, y, w))
            xy += on_host(_product(x, y, w))
        return xx, yy, xy

    def fourth_powers(self, roots: Sequence[Rows]) -> Floats:
        """Σ w |x|⁴ and Σ w |y|⁴ of whitened rows, float64[2]."""
        sums = []
        for side, root in zip((self.x, self.y), roots, strict=True):
            lengths = (side @ placed(root, side.device)).square_().sum(dim=1)
            sums.append(float((self.weights * lengths.double().square_()).sum()))
        return np.array(sums)

    def shuffled(self, shuffles: int, seed: int) -> Rows:
        """Σ x yᵀ over random shuffles within strata, float32[shuffles, mn]; whole weights."""
        t = torch()
        generator = t.Generator(self.x.device).manual_seed(seed & (2**63 - 1))
        times = self.weights.long()
        layers = [
            (self.x[rows].repeat_interleave(times[rows], 0),
             self.y[rows].repeat_interleave(times[rows], 0))
            for _, rows in self._layers()
        ]  # fmt: skip
        scores = np.zeros((shuffles, self.x.shape[1] * self.y.shape[1]), np.float32)
        for shuffle in range(shuffles):
            score: Any = 0.0
            for x, y in layers:
                order = t.randperm(len(y), generator=generator, device=y.device)
                score = score + x.mT @ y[order]
            scores[shuffle] = on_host(score).ravel()
        return scores

    def on_host(self) -> tuple[Rows, Rows, Floats, Integers, Integers]:
        """x, y, weights, labels and edges, in this process's memory."""
        return on_host(self.x), on_host(self.y), on_host(self.weights), self.labels, self.edges

    def _layers(self) -> Iterator[tuple[int, slice]]:
        for i, label in enumerate(self.labels):
            yield int(label), slice(int(self.edges[i]), int(self.edges[i + 1]))


def _product(x: Tensor, y: Tensor, weights: Tensor | None = None) -> Tensor:
    """Σ_k w_k x_k y_kᵀ, float64[m, n]."""
    t = torch()
    total = t.zeros((x.shape[1], y.shape[1]), dtype=t.float64, device=x.device)
    for start in range(0, len(x), STEP):
        some = slice(start, start + STEP)
        left = x[some].double()
        if weights is not None:
            left = left * weights[some]
        total += left.mT @ y[some].double()
    return total
