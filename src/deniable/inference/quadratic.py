"""Non-negative quadratic programs by block principal pivoting.

Minimise ½ xᵀHx + cᵀx over x ≥ 0, H positive definite. Each round solves for the free variables
alone and exchanges every variable of the wrong sign at once (Júdice and Pires 1994; Kim and Park
2011); when that stops making progress, only the last wrong one is exchanged, which cannot cycle.
"""

import numpy as np
import numpy.typing as npt
from scipy.linalg.lapack import dpotrf, dpotrs

from deniable.inference.piece import Floats

_PATIENCE = 3


def minimise_quadratic(
    hessian: Floats,
    linear: Floats,
    free: npt.NDArray[np.bool_],
    *,
    ridge: float = 1e-10,
    rounds: int | None = None,
) -> Floats:
    """Return the minimiser of ½ xᵀHx + cᵀx over x ≥ 0.

    hessian : float64[c, c], symmetric, at least positive semidefinite; `ridge` times its mean
    diagonal is added, and raised tenfold where a factorisation fails.
    free : bool[c], a guess of the variables above 0 (any guess will do).
    Out of rounds (100 and 50 a variable, unless given: blocks settle in a few, but moving one
    variable at a time, the way out of cycles, can take many) the iterate with the fewest wrong
    signs is returned with its negative entries set to 0.

    >>> minimise_quadratic(np.eye(2), np.array([-1.0, 1.0]), np.array([True, True])).round(6)
    array([1., 0.])
    """
    free = free.copy()
    best, patience = len(linear) + 1, _PATIENCE
    shift = ridge * max(float(np.mean(np.diagonal(hessian))), 1e-300)
    tolerance = 1e-12 * max(1.0, float(np.abs(linear).max()))
    x = kept = np.zeros(len(linear))
    for _ in range(100 + 50 * len(linear) if rounds is None else rounds):
        x, shift = _solve_free(hessian, linear, free, shift)
        slope = hessian @ x + linear
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


def _solve_free(
    hessian: Floats, linear: Floats, free: npt.NDArray[np.bool_], shift: float
) -> tuple[Floats, float]:
    x = np.zeros(len(linear))
    chosen = np.flatnonzero(free)
    if not len(chosen):
        return x, shift
    block = hessian[np.ix_(chosen, chosen)]
    diagonal = np.diagonal(block).copy()
    while True:
        np.fill_diagonal(block, diagonal + shift)
        factor, failed = dpotrf(block, lower=1, clean=0)
        if not failed:
            break
        shift *= 10.0
    x[chosen] = dpotrs(factor, -linear[chosen], lower=1)[0]
    return x, shift
