"""Likelihood ratios in a device's memory, for the score test."""

from __future__ import annotations

import numpy as np

from deniable.compute.array_types import DeviceArray, Floats, Rows
from deniable.compute.cpu.ratios import CpuRatios
from deniable.compute.gpu.tensors import Tensor, on_host, placed, torch
from deniable.compute.ratios import LikelihoodRatios

ROWS_PER_PRODUCT = 1 << 20
"""Rows whose copies in double precision exist together."""


class TensorRatios(LikelihoodRatios):
    """Ratios as tensors."""

    def _placed(self, array: DeviceArray) -> Tensor:
        return placed(array, self.x.device)

    def _product(self, x: Tensor, y: Tensor, weights: Tensor | None = None) -> Floats:
        t = torch()
        product = t.zeros((x.shape[1], y.shape[1]), dtype=t.float64, device=x.device)
        for start in range(0, len(x), ROWS_PER_PRODUCT):
            some = slice(start, start + ROWS_PER_PRODUCT)
            left = x[some].double() if weights is None else x[some].double() * weights[some]
            product += left.mT @ y[some].double()
        return on_host(product)

    def shuffled(self, shuffles: int, seed: int) -> Rows:
        t = torch()
        generator = t.Generator(self.x.device).manual_seed(seed & (2**63 - 1))
        times = self.weights.long()
        whole = [
            [side[rows].repeat_interleave(times[rows], 0) for side in (self.x, self.y)]
            for _, rows in self._strata()
        ]
        scores = np.zeros((shuffles, self.x.shape[1] * self.y.shape[1]), np.float32)
        for shuffle in range(shuffles):
            score = t.zeros((self.x.shape[1], self.y.shape[1]), device=self.x.device)
            for x, y in whole:
                score += x.mT @ y[t.randperm(len(y), generator=generator, device=y.device)]
            scores[shuffle] = on_host(score).ravel()
        return scores

    def on_host(self) -> CpuRatios:
        x, y, weights = on_host(self.x), on_host(self.y), on_host(self.weights)
        return CpuRatios(x, y, weights, self.labels, self.edges)
