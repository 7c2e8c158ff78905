"""Non-negative quadratic programs, by block principal pivoting.

Minimise ½ xᵀHx + cᵀx over x ≥ 0, with H positive definite. Each round solves for the free variables
only, and exchanges all variables of the wrong sign at once (Júdice and Pires 1994; Kim and Park
2011). If that stops making progress, only the last of them is exchanged, which cannot cycle.
"""

import numpy as np
from scipy.linalg.lapack import dpotrf, dpotrs

from deniable.kernels.array_types import Floats, Mask

_PATIENCE = 3
"""Rounds without progress before variables are exchanged one at a time."""


def minimise_quadratic(
    hessian: Floats,
    linear: Floats,
    free: Mask,
    *,
    ridge: float = 1e-10,
    rounds: int | None = None,
) -> Floats:
    """Return the minimiser of ½ xᵀHx + cᵀx over x ≥ 0.

    Parameters
    ----------
    hessian : float64 array of shape (c, c)
        H, symmetric and positive semidefinite.
    linear : float64 array of shape (c,)
        The linear term.
    free : bool array of shape (c,)
        Initial guess of the variables above 0.
    ridge : float
        Multiple of the mean diagonal that is added to H. It is raised tenfold if a factorisation
        fails.
    rounds : int, optional
        Maximum number of rounds, 100 + 50 per variable by default. Blocks need few rounds, but
        exchanging single variables can take many. After the last round, the iterate with the fewest
        wrong signs is returned with its negative entries set to 0.

    Examples
    --------
    >>> minimise_quadratic(np.eye(2), np.array([-1.0, 1.0]), np.array([True, True])).round(6)
    array([1., 0.])
    """
    free = free.copy()
    fewest, patience = len(linear) + 1, _PATIENCE
    shift = ridge * max(float(np.mean(np.diagonal(hessian))), 1e-300)
    tolerance = 1e-12 * max(1.0, float(np.abs(linear).max()))
    x = kept = np.zeros(len(linear))
    for _ in range(100 + 50 * len(linear) if rounds is None else rounds):
        x, shift = _minimiser(hessian, linear, free, shift)
        slope = hessian @ x + linear
        wrong = np.where(free, x < 0.0, slope < -tolerance)
        count = int(np.count_nonzero(wrong))
        if count == 0:
            return x
        if count < fewest:
            fewest, patience, kept = count, _PATIENCE, x
        elif patience > 0:
            patience -= 1
        else:
            wrong[: np.flatnonzero(wrong)[-1]] = False
        free ^= wrong
    return np.maximum(kept, 0.0)


def _minimiser(hessian: Floats, linear: Floats, free: Mask, shift: float) -> tuple[Floats, float]:
    """Return the minimiser over the free variables, and the shift of H's diagonal used for it.

    All other variables are 0. The shift is multiplied by 10 until H is positive definite.
    """
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
