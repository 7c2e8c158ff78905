"""Marginals as the paper decodes them: LASSO, then least squares, as in RAPPOR (2014).

A non-negative LASSO selects candidates, a least-squares fit of the selected ones gives estimates
and standard errors, and p-values are compared with alpha over the number of candidates. There is no
term for strings that are not candidates, and candidates that were not selected have no estimate.
The paper prints no penalty; here it is so large that about one absent candidate is selected.
"""

from __future__ import annotations

import warnings

import numpy as np
from scipy import stats

from deniable.inference.marginal.bit_counts import BitCounts
from deniable.inference.marginal.design import BloomDesign
from deniable.inference.marginal.detection import Estimates, detect, threshold_of
from deniable.kernels.array_types import Mask
from deniable.results import Marginal, Measured


def original_marginal(counts: BitCounts, design: BloomDesign, *, alpha: float) -> Marginal:
    """Estimate the frequency of each candidate by LASSO and least squares.

    >>> design = BloomDesign(np.array([[[0, 1], [2, 3]]]), bits=8, p_star=.25, q_star=.75)
    >>> counts = BitCounts(np.array([[500, 500, 375, 375, 250, 250, 250, 250]]), np.array([1000]))
    >>> original_marginal(counts, design, alpha=.05).estimate.round(3)
    array([0.5 , 0.25])
    """
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.linear_model import Lasso

    p, q = design.p[:, None], design.q[:, None]
    total = counts.total[:, None]
    live = np.repeat(counts.total > 0, design.bits)
    response = ((counts.ones / np.maximum(total, 1) - p) / (q - p)).ravel()[live]
    noise = np.sqrt(p * (1 - p) / np.maximum(total, 1)) / np.abs(q - p)
    matrix = design.indicator()[live]
    rows, size = matrix.shape
    length = max(float(np.median(np.asarray(matrix.sum(axis=0)))), 1.0) if size else 1.0
    deviation = float(np.median(noise[counts.total > 0])) if live.any() else 1.0
    threshold = float(stats.norm.isf(min(0.5, 1 / max(size, 1))))
    chosen = np.empty(0, np.intp)
    if rows and size:
        penalty = max(threshold * deviation * np.sqrt(length) / rows, 1e-12)
        lasso = Lasso(alpha=penalty, positive=True, fit_intercept=False, tol=1e-3)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            coefficients = np.asarray(lasso.fit(matrix, response).coef_)
        ranked = np.argsort(-coefficients, kind="stable")[: rows // 2]
        chosen = np.sort(ranked[coefficients[ranked] > 0])
    selected = matrix[:, chosen]
    inverse = np.linalg.pinv(np.asarray((selected.T @ selected).todense()), hermitian=True)
    fitted = inverse @ (selected.T @ response)
    freedom = max(rows - len(chosen), 1)
    variance = float(((response - selected @ fitted) ** 2).sum()) / freedom
    covariance = variance * inverse
    value, error, log_p_value = np.zeros((3, size))
    value[chosen], error[chosen] = fitted, np.sqrt(np.diag(covariance))
    safe = np.maximum(error[chosen], 1e-300)
    log_p_value[chosen] = stats.t.logsf(fitted / safe, freedom)
    identified = np.isin(np.arange(size), chosen)

    def mass(detected: Mask, z_cut: float) -> Measured:
        inside = detected[chosen]
        return Measured.normal(
            float(fitted[inside].sum()), float(np.sqrt(covariance[np.ix_(inside, inside)].sum()))
        )

    typical = deviation / np.sqrt(length)
    estimates = Estimates(
        value, error, log_p_value, identified, threshold_of(typical), design.labels
    )
    return detect(estimates, counts, mass, alpha, "bonferroni")
