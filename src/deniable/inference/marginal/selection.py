"""Choose the candidates that are fitted jointly if there are too many to fit all of them.

A screen in one pass keeps the candidates with the best scores, a non-negative LASSO selects among
them, and rounds of refitting add candidates that heavy strings had hidden. Selection only decides
which columns are removed from the estimates of others. No estimate is penalised, and every
candidate gets one, so a false candidate that is selected costs one degree of freedom and no more.
"""

import warnings

import numpy as np
from scipy import sparse

from deniable.inference.distributions import normal_quantile
from deniable.inference.marginal.clipping import clipped_scores, clipping_point, clipping_shift
from deniable.inference.marginal.design import BloomDesign
from deniable.inference.marginal.regression import BitTable, RegressionFit, fit_columns
from deniable.kernels.array_types import Floats, Indices

MAX_ROUNDS = 6
"""Maximum number of rounds of refitting."""
MAX_JOINT = 2000
"""Maximum number of candidates that are fitted jointly."""
EXPECTED_FALSE = 5.0
"""Expected number of false candidates in the selection.

It is small, since each reduces the residual variance by more than its degree of freedom.
"""


def joint_limit(table: BitTable) -> int:
    """Return the largest number of candidates for which all are fitted jointly.

    A sixteenth of the rows inflates each variance by at most 16/15. Above that, selection detects
    more (about 41 instead of 39 of 100 strings among 1,000 false ones, N = 10^6) and is faster. In
    a small design, in which a string shares bits with many others, it is up to half of the rows.
    """
    rows = int(table.live.sum()) * table.frequency.shape[1]
    return int(min(MAX_JOINT, max(rows // 16, min(rows // 2, 64))))


def fit_selected(table: BitTable, design: BloomDesign) -> tuple[Indices, RegressionFit]:
    """Return the selected candidates, sorted, and their joint fit.

    About five of them are expected to be false, each with a z just above the entry threshold.
    """
    limit = joint_limit(table)
    z_enter = normal_quantile(min(0.02, EXPECTED_FALSE / design.candidates))
    none = np.zeros(0, dtype=np.intp)
    fit = fit_columns(table, design.indicator(none))
    z = _standardised(table, design, fit, none, z_enter)
    kept = np.sort(_largest(z, 2 * MAX_JOINT))
    active = np.sort(kept[_lasso(table, design, kept, fit, z_enter, limit)])
    for _ in range(MAX_ROUNDS):
        selection_squares = min(EXPECTED_FALSE, active.size) * z_enter**2
        fit = fit_columns(table, design.indicator(active), selection_squares)
        z = _standardised(table, design, fit, active, z_enter)
        entering = np.flatnonzero(z > z_enter)
        room = limit - active.size
        if entering.size == 0 or room <= 0:
            return active, fit
        entering = entering[_largest(z[entering], room)]
        active = np.union1d(active, entering)
    selection_squares = min(EXPECTED_FALSE, active.size) * z_enter**2
    return active, fit_columns(table, design.indicator(active), selection_squares)


def _standardised(
    table: BitTable, design: BloomDesign, fit: RegressionFit, active: Indices, z_enter: float
) -> Floats:
    """Return the clipped scores of all candidates; minus infinity for active ones."""
    level = clipping_point(table, design, z_enter)
    sums, relative = clipped_scores(table, design, fit, np.zeros(design.candidates), level)
    length = np.maximum(sums[0], 0.0)
    z = np.full(design.candidates, -np.inf)
    np.divide(sums[1], np.sqrt(length), out=z, where=length > 0)
    z -= clipping_shift(sums) * np.sqrt(length)
    z /= np.sqrt(relative)
    z[active] = -np.inf
    return z


def _largest(z: Floats, count: int) -> Indices:
    """Return the indices of the `count` largest entries."""
    if z.size <= count:
        return np.arange(z.size)
    return np.argpartition(-z, count)[:count]


def _lasso(
    table: BitTable,
    design: BloomDesign,
    kept: Indices,
    fit: RegressionFit,
    z_enter: float,
    limit: int,
) -> Indices:
    """Return the kept candidates to which a non-negative LASSO gives weight, at most `limit`."""
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.linear_model import Lasso

    root = np.sqrt(fit.weight.ravel())
    columns = design.indicator(kept).multiply(root[:, None])
    length = float(np.median(np.asarray(columns.multiply(columns).sum(axis=0))))
    parts = [columns]
    if table.background:
        strata, bits = fit.weight.shape
        block = np.repeat(np.arange(strata), bits)
        # Scaled up so that the penalty does not affect the background.
        constant = (1e3 * root, (np.arange(block.size), block))
        parts.append(sparse.csc_matrix(constant, shape=(block.size, strata)))
    matrix = sparse.hstack(parts, format="csc")
    # A column is selected if its score exceeds rows * penalty, that is at z = z_enter.
    penalty = z_enter * np.sqrt(length) / root.size
    model = Lasso(alpha=penalty, positive=True, fit_intercept=False, tol=1e-3)
    with warnings.catch_warnings():
        # The refits that follow do not need a fully converged LASSO.
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(matrix, root * table.frequency.ravel())
    coefficient = np.asarray(model.coef_[: kept.size])
    chosen = np.flatnonzero(coefficient > 0)
    return chosen[_largest(coefficient[chosen], limit)]
