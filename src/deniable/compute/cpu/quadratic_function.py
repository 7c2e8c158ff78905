"""Quadratic functions, minimised by LAPACK. Joint tables need them; other analyses do not."""

from __future__ import annotations

import numpy as np
from scipy.linalg.lapack import dpotrf, dpotrs

from deniable.kernels.array_types import Floats, Mask


class CpuSystem:
    """The quadratic function ½ xᵀHx + cᵀx, minimised by LAPACK; see `compute.arrays.System`."""

    def __init__(self, hessian: Floats, linear: Floats) -> None:
        self._hessian, self._linear = hessian, linear

    def minimiser(self, free: Mask, shift: float) -> tuple[Floats, float]:
        """Return the minimiser over the free variables, and the shift that it needed."""
        x = np.zeros(len(self._linear))
        chosen = np.flatnonzero(free)
        if not len(chosen):
            return x, shift
        block = self._hessian[np.ix_(chosen, chosen)]
        diagonal = np.diagonal(block).copy()
        while True:
            np.fill_diagonal(block, diagonal + shift)
            factor, failed = dpotrf(block, lower=1, clean=0)
            if not failed:
                break
            shift *= 10.0
        x[chosen] = dpotrs(factor, -self._linear[chosen], lower=1)[0]
        return x, shift

    def slope(self, x: Floats) -> Floats:
        """Return the gradient Hx + c."""
        return np.asarray(self._hessian @ x + self._linear)
