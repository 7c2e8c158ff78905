"""Discovery by the paper's protocol (section IV): clients report full strings and n-grams.

Count the reports, decode each position, propose and test strings by one of two readings, and
estimate the discovered strings.
"""

from __future__ import annotations

import numpy as np
from scipy.special import ndtri_exp
from scipy.stats import norm

from deniable.compute.executors import one_blas_thread
from deniable.discovery.ngrams.gram_reports import GramReports
from deniable.discovery.ngrams.paper_reading import read_paper
from deniable.discovery.ngrams.peeling import read_fused
from deniable.discovery.shared.run import DiscoveryRun
from deniable.discovery.shared.selection import Cut, SelectedStrings
from deniable.errors import InputError, did_you_mean
from deniable.kernels.array_types import Floats
from deniable.protocols import NGrams
from deniable.results import Discovery, Marginal

READINGS = ("fused", "paper")
LOG_HALF = float(np.log(0.5))


def check_reading(reading: str | None, delta: float | None) -> None:
    """Raise InputError for settings that do not exist, or do not fit together."""
    if reading not in (None, *READINGS):
        hint = did_you_mean(reading, READINGS)
        raise InputError(f"expected reading 'fused' or 'paper', got {reading!r}.{hint}")
    if delta is not None and reading != "paper":
        raise InputError("delta is the pair threshold of reading='paper': set that, too")


def discover_ngrams(
    run: DiscoveryRun[NGrams], reading: str | None = None, delta: float | None = None
) -> Discovery:
    """Find the strings of an `ngrams` question; see `discover` for the parameters."""
    # While other threads are busy, small matrix products on several BLAS threads are slow.
    with one_blas_thread():
        reports = GramReports.of(run)
        read = read_fused(reports) if reading != "paper" else read_paper(reports, delta)
        found, summary = read
        fitted = reports.estimate(found.rows)
    return run.result(found, selected(fitted, found.easiest), found.score, summary)


def selected(fitted: Marginal, easiest: Floats) -> SelectedStrings:
    """Return the strings with what they had to exceed, given the largest cut-off of each.

    The test is made on the same reports as the estimate. A string that cannot be told from others
    is not corrected: its standard error is as large as its estimate.
    """
    z = -ndtri_exp(np.minimum(fitted.log_p_value, LOG_HALF))
    height = fitted.estimate * norm.isf(easiest) / np.maximum(z, 1e-9)
    error = fitted.standard_error
    # A string passed its test, although the joint fit may lower its estimate again.
    height = np.where(fitted.identified, np.minimum(height, fitted.estimate), -np.inf)
    cut = Cut(height, error, np.ones(len(error)))
    total_error = float(np.sqrt((error[np.isfinite(fitted.estimate)] ** 2).sum()))
    ends = fitted.estimate - fitted.low, fitted.high - fitted.estimate
    reach = np.where(fitted.identified, np.stack(ends) / error, 0.0)
    return SelectedStrings(fitted.estimate, error, cut, total_error, reach)
