"""Positive definite systems of equations on a device, as `inference.joint.quadratic` asks for
them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from deniable.compute.gpu.tensors import device, on_host, placed, torch

Floats = NDArray[np.float64]


class TensorSystem:
    """½ xᵀHx + cᵀx with H float64[c, c] in the memory of the device of this name."""

    def __init__(self, name: str, hessian: Floats, linear: Floats) -> None:
        where = device(name)
        self._hessian, self._linear = placed(hessian, where), placed(linear, where)

    def minimiser(self, free: NDArray[np.bool_], shift: float) -> tuple[Floats, float]:
        """As `inference.joint.quadratic.System.minimiser`."""
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
