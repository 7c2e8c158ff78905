"""Unknown dictionaries by the paper's protocol: full strings and n-grams (section IV).

Counting, decoding of each position, a reading that proposes and tests strings, and the account of
what was found.
"""

from __future__ import annotations

from functools import partial, reduce
from operator import add
from typing import Literal

import numpy as np
from scipy import stats

from deniable.analysis.decoding import provenance
from deniable.analysis.source import Source
from deniable.compute.backend import Executor, one_blas_thread
from deniable.discovery.ngrams.grams import full_design
from deniable.discovery.ngrams.paper_reading import read_paper
from deniable.discovery.ngrams.peeling import read_fused
from deniable.discovery.ngrams.positions import DECODED, Position, decode_position, tally
from deniable.discovery.ngrams.state import Found, GramReports, Log
from deniable.discovery.shared.candidate_strings import Accept, predicate, string_noise
from deniable.errors import InputError
from deniable.inference.marginal.estimate import estimate_marginal
from deniable.protocols import NGrams
from deniable.protocols.alphabet import PAD
from deniable.results import Discovery, Measured

ReadingName = Literal["paper", "fused"]


def discover_ngrams(
    source: Source,
    question: str,
    *,
    accept: Accept,
    alpha: float,
    reading: str | None,
    delta: float | None,
    executor: Executor,
) -> Discovery:
    """Find strings from reports of an `ngrams` question; see `discover`."""
    protocol = source.survey.question(question).protocol
    assert isinstance(protocol, NGrams)
    if reading not in (None, "paper", "fused"):
        raise InputError(f"expected reading 'paper' or 'fused', got {reading!r}")
    if delta is not None and reading != "paper":
        raise InputError("delta is the pair threshold of reading='paper'; the other has none")
    predicate(accept)
    # Beside busy threads, small matrix products on several BLAS threads are slow.
    with one_blas_thread():
        evidence = _gathered(source, question, protocol, alpha, executor)
        if reading == "paper":
            found = read_paper(evidence, accept=accept, alpha=alpha, delta=delta)
        else:
            found = read_fused(evidence, accept=accept, alpha=alpha)
        return _account(evidence, found, alpha, reading or "fused")


def _gathered(
    source: Source, question: str, protocol: NGrams, alpha: float, executor: Executor
) -> GramReports:
    """Count everything, and decode every position."""
    log = Log()
    with log.stage("counted") as stage:
        tallies = reduce(add, source.map(executor, partial(tally, question)))
        stage.count(tallies.full.reports, tallies.full.reports)
    if tallies.full.reports == 0:
        raise InputError("expected reports, got none")
    with log.stage("grams significant") as stage:
        positions = tuple(
            decode_position(protocol, tallies, g, alpha) for g in range(protocol.positions)
        )
        kept = sum(len(p.significant) for p in positions)
        each = ", ".join(str(len(p.significant)) for p in positions)
        stage.count(kept, sum(p.looked_at for p in positions), f"by position: {each}")
    return GramReports(protocol, question, source, executor, tallies, positions, log)


def _account(evidence: GramReports, found: Found, alpha: float, reading: str) -> Discovery:
    """Estimates with intervals of what was found, and the rest of the account."""
    protocol, counts = evidence.protocol, evidence.tallies.full
    text = protocol.alphabet.text
    fitted = estimate_marginal(counts, full_design(protocol, found.rows), alpha=alpha)
    order = np.argsort(-np.nan_to_num(fitted.estimate), kind="stable")
    noise = string_noise(protocol, evidence.reports)
    total = float(np.nansum(fitted.estimate))
    spread = float(np.sqrt(np.sum(fitted.standard_error[np.isfinite(fitted.estimate)] ** 2)))
    asked = evidence.source.survey.question(evidence.question)
    return Discovery(
        strings=tuple(text(found.rows[i].tobytes()) for i in order),
        symbols=found.rows[order],
        estimate=fitted.estimate[order],
        standard_error=fitted.standard_error[order],
        low=fitted.low[order],
        high=fitted.high[order],
        p_value=found.p_value[order],
        evidence=found.evidence[order],
        level=found.level[order],
        evidence_name=found.evidence_name,
        candidates=found.candidates,
        correction=found.paid,
        truncation=found.cut,
        stages=tuple(evidence.log.stages),
        detection_threshold=float(stats.norm.isf(found.mildest)) * noise,
        mass_found=Measured.normal(total, spread),
        mass_unexplained=Measured.normal(1 - total, spread),
        mass_at_end=_mass_at_end(evidence.positions[-1]),
        reports=evidence.reports,
        alpha=alpha,
        reading=reading,
        question=evidence.question,
        graph=found.graph,
        provenance=provenance(evidence.source, (asked,), evidence.reports),
    )


def _mass_at_end(last: Position) -> Measured | None:
    """The share of clients whose string reaches the last symbol: all but those that end before.

    None where grams were screened: those left out would be missing from the sum.
    """
    if last.looked_at > DECODED:
        return None
    ended = last.grams[:, -1] == PAD
    ended &= np.isfinite(last.marginal.estimate)
    total = float(last.marginal.estimate[ended].sum())
    return Measured.normal(
        1 - total, float(np.sqrt((last.marginal.standard_error[ended] ** 2).sum()))
    )
