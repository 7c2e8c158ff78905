"""Discovery by the paper's protocol (section IV): clients report full strings and n-grams.

Count the reports, decode each position, propose and test strings by one of three readings, and
estimate the discovered strings.
"""

from __future__ import annotations

import numpy as np

from deniable.compute.cpu.threads import one_blas_thread
from deniable.discovery.ngrams.gram_reports import GramReports
from deniable.discovery.ngrams.original_marginal import original_marginal
from deniable.discovery.ngrams.paper_reading import read_paper
from deniable.discovery.ngrams.peeling import read_fused
from deniable.discovery.shared.run import DiscoveryRun, StringEstimates
from deniable.errors import InputError, did_you_mean
from deniable.inference.marginal.estimate import estimate_marginal
from deniable.protocols import NGrams
from deniable.results import Discovery, Measured

READINGS = ("fused", "paper", "original")


def discover_ngrams(
    run: DiscoveryRun[NGrams], reading: str | None = None, delta: float | None = None
) -> Discovery:
    """Find the strings of an `ngrams` question; see `discover` for the parameters."""
    if reading not in (None, *READINGS):
        hint = did_you_mean(reading, READINGS)
        expected = "'fused', 'paper' or 'original'"
        raise InputError(f"expected reading {expected}, got {reading!r}.{hint}")
    if delta is not None and reading not in ("paper", "original"):
        raise InputError("delta is the pair threshold of reading='paper': set that, too")
    # While other threads are busy, small matrix products on several BLAS threads are slow.
    with one_blas_thread():
        original = reading == "original"
        reports = GramReports.of(run, original_marginal if original else estimate_marginal)
        if original or reading == "paper":
            found, summary = read_paper(reports, delta, original)
        else:
            found, summary = read_fused(reports)
        fitted = reports.estimate(found.rows)
    total = float(np.nansum(fitted.estimate))
    error = float(np.sqrt((fitted.standard_error[np.isfinite(fitted.estimate)] ** 2).sum()))
    estimates = fitted.estimate, fitted.standard_error, fitted.low, fitted.high, found.score
    strings = StringEstimates(found.rows, found.p_value, found.cutoff, *estimates)
    return run.result(strings, Measured.normal(total, error), summary)
