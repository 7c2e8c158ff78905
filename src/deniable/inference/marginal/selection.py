"""Choose the candidates that are fitted jointly when there are too many to fit them all.

A one-pass screen keeps the best-scoring candidates, a non-negative LASSO picks among them, and
rounds of refitting bring in what the heavy strings had hidden. Selection only decides which
columns are cleared from the others' estimates: nobody's estimate is penalised and nobody is left
without one, so a false candidate that slips in costs one degree of freedom and no more.
"""

import warnings

import numpy as np
from scipy import sparse, stats

from deniable.inference.marginal.clipping import clip_level, clipped_away, scores
from deniable.inference.marginal.design import BloomDesign
from deniable.inference.marginal.regression import BitTable, RegressionFit, fit_columns
from deniable.kernels.array_types import Floats, Indices

ROUNDS = 6
MOST_JOINT = 2000
# Few, because each takes more than its degree of freedom out of the residual variance.
EXPECTED_FALSE = 5.0


def joint_limit(table: BitTable) -> int:
    """How many candidates may be fitted without a penalty.

    A sixteenth of the rows inflates every variance by at most 16/15. Above that, selection finds
    more (about 41 against 39 of 100 strings beside 1,000 false ones, N = 10^6), and is faster.
    In a small design, where one string shares bits with many, up to half of the rows.
    """
    rows = int(table.live.sum()) * table.frequency.shape[1]
    return int(min(MOST_JOINT, max(rows // 16, min(rows // 2, 64))))


def fit_selected(table: BitTable, design: BloomDesign) -> tuple[Indices, RegressionFit]:
    """Return the candidates to fit jointly, sorted, and their fit.

    About five false ones are expected among them, each with a z just above the entrance.
    """
    limit = joint_limit(table)
    z_enter = float(stats.norm.isf(min(0.02, EXPECTED_FALSE / design.candidates)))
    none = np.zeros(0, dtype=np.intp)
    fit = fit_columns(table, design.indicator(none))
    z = _standardised(table, design, fit, none, z_enter)
    kept = np.sort(_largest(z, 2 * MOST_JOINT))
    active = np.sort(kept[_lasso(table, design, kept, fit, z_enter, limit)])
    for _ in range(ROUNDS):
        spent = min(EXPECTED_FALSE, active.size) * z_enter**2
        fit = fit_columns(table, design.indicator(active), spent)
        z = _standardised(table, design, fit, active, z_enter)
        entering = np.flatnonzero(z > z_enter)
        room = limit - active.size
        if entering.size == 0 or room <= 0:
            return active, fit
        entering = entering[_largest(z[entering], room)]
        active = np.union1d(active, entering)
    spent = min(EXPECTED_FALSE, active.size) * z_enter**2
    return active, fit_columns(table, design.indicator(active), spent)


def _standardised(
    table: BitTable, design: BloomDesign, fit: RegressionFit, active: Indices, z_enter: float
) -> Floats:
    """Clipped scores against the residual; minus infinity where already active."""
    level = clip_level(table, design, z_enter)
    sums, relative = scores(table, design, fit, np.zeros(design.candidates), level)
    length = np.maximum(sums[0], 0.0)
    z = np.full(design.candidates, -np.inf)
    np.divide(sums[1], np.sqrt(length), out=z, where=length > 0)
    z -= clipped_away(sums) * np.sqrt(length)
    z /= np.sqrt(relative)
    z[active] = -np.inf
    return z


def _largest(z: Floats, count: int) -> Indices:
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
    """Return which of the kept candidates a non-negative LASSO gives weight, at most `limit`."""
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.linear_model import Lasso

    root = np.sqrt(fit.weight.ravel())
    columns = design.indicator(kept).multiply(root[:, None])
    length = float(np.median(np.asarray(columns.multiply(columns).sum(axis=0))))
    parts = [columns]
    if table.background:
        strata, bits = fit.weight.shape
        block = np.repeat(np.arange(strata), bits)
        # Scaled up so that the common penalty is nothing to the background.
        constant = (1e3 * root, (np.arange(block.size), block))
        parts.append(sparse.csc_matrix(constant, shape=(block.size, strata)))
    matrix = sparse.hstack(parts, format="csc")
    # A column enters when its score exceeds rows * penalty, that is at z = z_enter.
    penalty = z_enter * np.sqrt(length) / root.size
    model = Lasso(alpha=penalty, positive=True, fit_intercept=False, tol=1e-3)
    with warnings.catch_warnings():
        # The unpenalised refit and the rounds after it do not need the last digit of the path.
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(matrix, root * table.frequency.ravel())
    coefficient = np.asarray(model.coef_[: kept.size])
    chosen = np.flatnonzero(coefficient > 0)
    return chosen[_largest(coefficient[chosen], limit)]
