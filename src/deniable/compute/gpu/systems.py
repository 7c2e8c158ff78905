"""Positive definite systems of equations in a device's memory."""

from __future__ import annotations

from deniable.compute.gpu.tensors import Tensor, on_host, placed, torch
from deniable.kernels.array_types import Floats, Mask


class TensorSystem:
    """½ xᵀHx + cᵀx with H float64[c, c] in a device's memory; see `compute.arrays.System`."""

    def __init__(self, hessian: Tensor, linear: Tensor) -> None:
        self._hessian, self._linear = hessian, linear

    def minimiser(self, free: Mask, shift: float) -> tuple[Floats, float]:
        """By Cholesky factorisation."""
        t = torch()
        chosen = placed(free, self._hessian.device).nonzero()[:, 0]
        x = t.zeros_like(self._linear)
        if len(chosen):
            block = self._hessian[chosen[:, None], chosen]
            diagonal = block.diagonal().clone()
            while True:
                block.diagonal().copy_(diagonal + shift)
                factor, failed = t.linalg.cholesky_ex(block)
                if not int(failed):
                    break
                shift *= 10.0
            x[chosen] = t.cholesky_solve(-self._linear[chosen, None], factor)[:, 0]
        return on_host(x), shift

    def slope(self, x: Floats) -> Floats:
        """Hx + c, float64[c]."""
        return on_host(self._hessian @ placed(x, self._hessian.device) + self._linear)
