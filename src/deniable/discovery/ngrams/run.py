"""Unknown dictionaries by the paper's protocol: full strings and n-grams (section IV).

Counting, decoding of each position, a reading that proposes and tests strings, and the account of
what was found.
"""

from __future__ import annotations

import numpy as np

from deniable.compute.cpu.threads import one_blas_thread
from deniable.discovery.ngrams.paper_reading import read_paper
from deniable.discovery.ngrams.peeling import read_fused
from deniable.discovery.ngrams.state import GramReports
from deniable.discovery.shared.run import DiscoveryRun, StringEstimates
from deniable.errors import InputError
from deniable.protocols import NGrams
from deniable.results import Discovery, Measured


def discover_ngrams(
    run: DiscoveryRun[NGrams], reading: str | None = None, delta: float | None = None
) -> Discovery:
    """Find strings from reports of an `ngrams` question; see `discover`."""
    if reading not in (None, "paper", "fused"):
        raise InputError(f"expected reading 'paper' or 'fused', got {reading!r}")
    if delta is not None and reading != "paper":
        raise InputError("delta is the pair threshold of reading='paper'; the other has none")
    # Beside busy threads, small matrix products on several BLAS threads are slow.
    with one_blas_thread():
        reports = GramReports.of(run)
        if reading == "paper":
            found, account = read_paper(reports, delta)
        else:
            found, account = read_fused(reports)
        fitted = reports.estimate(found.rows)
    total = float(np.nansum(fitted.estimate))
    error = float(np.sqrt((fitted.standard_error[np.isfinite(fitted.estimate)] ** 2).sum()))
    estimates = StringEstimates(
        fitted.estimate,
        fitted.standard_error,
        fitted.low,
        fitted.high,
        evidence=found.score,
        total=Measured.normal(total, error),
    )
    return run.result(found, estimates, account)
