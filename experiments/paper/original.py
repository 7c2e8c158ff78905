"""The paper's decoder of n-grams as a whole, with its own marginals and its own model of Other.

The steps are those of `discover(…, reading="paper")`. Other's bits are independent. Marginals are
decoded by LASSO, then least squares, as in RAPPOR (2014).
A non-negative LASSO selects candidates, a least-squares fit of the selected ones gives estimates
and standard errors, and p-values are compared with alpha over the number of candidates. There is no
term for strings that are not candidates, and candidates that were not selected have no estimate.
The paper prints no penalty; here it is so large that about one absent candidate is selected.
"""

from __future__ import annotations

import warnings
from dataclasses import replace

import numpy as np
from scipy import stats
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import Lasso

from deniable.analysis.source import Source
from deniable.columns import ReportBatch
from deniable.compute.executors import executor_of, one_blas_thread
from deniable.discovery.ngrams.gram_reports import GramReports, Position
from deniable.discovery.ngrams.paper_reading import read_paper
from deniable.discovery.ngrams.run import selected
from deniable.discovery.shared.run import DiscoveryRun
from deniable.inference.marginal.bit_counts import BitCounts
from deniable.inference.marginal.design import BloomDesign
from deniable.inference.marginal.detection import Estimates, detect, threshold_of
from deniable.inference.models.other import Other
from deniable.kernels.array_types import Indices, Mask
from deniable.protocols import NGrams
from deniable.results import Discovery, Marginal, Measured
from deniable.survey import Survey


class OriginalReports(GramReports):
    """Reports of n-grams that are decoded as the paper does."""

    @staticmethod
    def marginal(counts: BitCounts, design: BloomDesign, alpha: float) -> Marginal:
        """Estimate the frequency of each candidate by LASSO and least squares."""
        return original_marginal(counts, design, alpha=alpha)

    @staticmethod
    def other(position: Position, chosen: Indices) -> Other | None:
        """Return Other as independent bits."""
        known, estimate = position.design.take(chosen), position.marginal.estimate[chosen]
        return known.product_other("n-grams", position.counts, estimate)


def discover_original(
    survey: Survey, reports: ReportBatch, question: str, delta: float | None = None
) -> Discovery:
    """Find strings with the paper's decoder.

    Estimates are too high, since nothing stands for strings that are not candidates, and intervals
    do not cover. delta : minimum frequency of a pair of grams; None for the paper's formula
    """
    asked = survey.question(question)
    assert isinstance(asked.protocol, NGrams)
    source = Source(reports, survey)
    run = DiscoveryRun(source, asked, asked.protocol, None, 0.05, executor_of(None))
    with one_blas_thread():
        grams = OriginalReports.of(run)
        found, summary = read_paper(grams, delta)
        fitted = grams.estimate(found.rows)
    summary = replace(summary, reading="original")
    return run.result(found, selected(fitted, found.easiest), found.score, summary)


def original_marginal(counts: BitCounts, design: BloomDesign, *, alpha: float) -> Marginal:
    """Estimate the frequency of each candidate by LASSO and least squares.

    >>> design = BloomDesign(np.array([[[0, 1], [2, 3]]]), bits=8, p_star=.25, q_star=.75)
    >>> counts = BitCounts(np.array([[500, 500, 375, 375, 250, 250, 250, 250]]), np.array([1000]))
    >>> original_marginal(counts, design, alpha=.05).estimate.round(3)
    array([0.5 , 0.25])
    """
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
