"""Non-negative quadratic programs by block principal pivoting.

Minimise ½ xᵀHx + cᵀx over x ≥ 0, H positive definite. Each round solves for the free variables
alone and exchanges every variable of the wrong sign at once (Júdice and Pires 1994; Kim and Park
2011); when that stops making progress, only the last wrong one is exchanged, which cannot cycle.
"""

from collections.abc import Callable
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
from scipy.linalg.lapack import dpotrf, dpotrs

from deniable.compute.cpu.pieces import Floats

_PATIENCE = 3


class System(Protocol):
    """½ xᵀHx + cᵀx, with H where the equations are solved; made of H float64[c, c] and c."""

    def minimiser(self, free: npt.NDArray[np.bool_], shift: float) -> tuple[Floats, float]:
        """Its minimiser over the free variables, the others 0, with `shift` on H's diagonal, or
        ten times that as often as it takes; and the shift that it took."""
        ...

    def slope(self, x: Floats) -> Floats:
        """Hx + c."""
        ...


def minimise_quadratic(
    hessian: Floats,
    linear: Floats,
    free: npt.NDArray[np.bool_],
    *,
    ridge: float = 1e-10,
    rounds: int | None = None,
    system: Callable[[Floats, Floats], System] | None = None,
) -> Floats:
    """Return the minimiser of ½ xᵀHx + cᵀx over x ≥ 0.

    hessian : float64[c, c], symmetric, at least positive semidefinite; `ridge` times its mean
    diagonal is added, and raised tenfold where a factorisation fails.
    free : bool[c], a guess of the variables above 0 (any guess will do).
    Out of rounds (100 and 50 a variable, unless given: blocks settle in a few, but moving one
    variable at a time, the way out of cycles, can take many) the iterate with the fewest wrong
    signs is returned with its negative entries set to 0.
    system : what solves the equations; processors unless given.

    >>> minimise_quadratic(np.eye(2), np.array([-1.0, 1.0]), np.array([True, True])).round(6)
    array([1., 0.])
    """
    equations = (system or HostSystem)(hessian, linear)
    free = free.copy()
    best, patience = len(linear) + 1, _PATIENCE
    shift = ridge * max(float(np.mean(np.diagonal(hessian))), 1e-300)
    tolerance = 1e-12 * max(1.0, float(np.abs(linear).max()))
    x = kept = np.zeros(len(linear))
    for _ in range(100 + 50 * len(linear) if rounds is None else rounds):
        x, shift = equations.minimiser(free, shift)
        slope = equations.slope(x)
        wrong = np.where(free, x < 0.0, slope < -tolerance)
        count = int(np.count_nonzero(wrong))
        if count == 0:
            return x
        if count < best:
            best, patience, kept = count, _PATIENCE, x
        elif patience > 0:
            patience -= 1
        else:
            wrong[: np.flatnonzero(wrong)[-1]] = False
        free ^= wrong
    return np.maximum(kept, 0.0)


class HostSystem:
    """The equations in this process's memory, solved by LAPACK."""

    def __init__(self, hessian: Floats, linear: Floats) -> None:
        self._hessian, self._linear = hessian, linear

    def minimiser(self, free: npt.NDArray[np.bool_], shift: float) -> tuple[Floats, float]:
        """By Cholesky factorisation."""
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
        """Hx + c."""
        return np.asarray(self._hessian @ x + self._linear)


def system_of(executor: Any) -> Callable[[Floats, Floats], System]:
    """What solves equations for this executor: its own `system`, if it has one."""
    found: Callable[[Floats, Floats], System] = getattr(executor, "system", HostSystem)
    return found
