"""The default reading of n-grams ("fused"): search, test, remove what was found, search again.

Each pass looks for strings of about one frequency f, common ones first. Gram reports alone propose
strings and order them (`gram_search`), and the full-string reports test them. What is found is
removed from the gram tables, so that strings which share grams with common ones become visible.

Why the tests are valid. Passes share alpha, and within a pass the cut-offs of the strings add up to
its share: Bonferroni, weighted by the evidence of the gram reports (`inference.power.cutoffs`).
Later passes depend on the full-string reports only through the strings found before, whose
estimates are independent of the test of any other string (it is made on the residual of a
regression). So a pass accepts a false string with probability at most its share, unless a false
string was found before, which is an error already. Common strings pass any test, so each pass has
twice the share of the one before.

In the hash trial (12 crowds) cut-offs by odds find 16.8 strings, cut-offs by rank (1/r) 15.9, and
cut-offs by odds with rising shares 17.3. Strings below 3.5 standard errors do not justify a pass:
with passes down to 2.8, 2.3 and 2.0 standard errors it was 17.2, 17.1 and 17.0.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from scipy.stats import norm

from deniable.compute.progress import report_progress
from deniable.discovery.ngrams.gram_reports import GramReports, ScoredStrings
from deniable.discovery.ngrams.passes import (
    WIDTH,
    GramTables,
    KnownStrings,
    PassTables,
    power_of,
)
from deniable.discovery.shared.run import SearchSummary
from deniable.discovery.shared.strings import Rows
from deniable.inference.marginal.regression import BitTable, fit_columns
from deniable.inference.marginal.scan import scan_candidates
from deniable.inference.marginal.tails import log_upper_tail, p_values
from deniable.inference.power.cutoffs import cutoff_height, cutoffs_at
from deniable.inference.power.gram_search import MIN_CUTOFF, PassLimits
from deniable.kernels.array_types import Floats, Indices

FREQUENCY_STEP = 1.6
"""Ratio of the frequencies of two passes; their shares of alpha differ by a factor of two."""
MIN_DEVIATIONS = 3.5
"""Strings below this many standard errors of the full-string test are not searched for."""


def read_fused(reports: GramReports) -> tuple[ScoredStrings, SearchSummary]:
    """Return the strings found by passes over falling frequencies."""
    run, tables = reports.run, GramTables.of(reports)
    kept = sum(len(each.grams) for each in tables.kept)
    run.stage("pairs of grams coupled", kept, sum(len(p.grams) for p in reports.positions) - kept)
    frequencies = _frequencies(reports, tables) if not tables.gap else []
    found = ScoredStrings.none(run.protocol.max_length)
    passes, dropped, limits = len(frequencies), False, list[PassLimits]()
    for i, f in enumerate(frequencies):
        report_progress("passes over falling frequencies", i / passes)
        searched = PassTables.of(tables, KnownStrings.of(reports, found.rows), f)
        beam = searched.search()
        dropped |= beam.dropped
        strings = tables.strings(beam)
        new = _unknown(strings, found.rows)
        new = new[run.accepted(strings[new])]
        run.candidates += len(new)
        share = run.alpha * 2.0**i / (2.0**passes - 1)
        z = np.full(len(new), f / reports.string_error)
        height = cutoff_height(beam.score[new], z, share)
        cutoff = cutoffs_at(height, beam.score[new], z)
        # A string that was found before could have been found in this pass as well.
        expected = np.full(len(found), f / reports.string_error)
        now = np.minimum(cutoffs_at(height, found.score, expected), share)
        found = replace(found, easiest=np.maximum(found.easiest, now))
        tested, cutoff = new[cutoff > MIN_CUTOFF], cutoff[cutoff > MIN_CUTOFF]
        p_value, error = string_p_values(
            reports, found.rows, strings[tested], cutoff.min(initial=0.05)
        )
        learnt = searched.neighbours is not None
        limits.append(PassLimits(f, searched.left, beam.least, height, share, learnt, error))
        tests = ScoredStrings(strings[tested], p_value, cutoff, beam.score[tested], cutoff)
        accepted = tests.take(tests.passed)
        found = ScoredStrings.joined((found, accepted))
        run.stage(f"pass at {f:.4f}", len(accepted), len(new) - len(accepted))
    truncation = f"each pass kept the {WIDTH * len(tables.kept):,} best strings" * dropped
    return found, SearchSummary(
        reading="fused",
        correction=f"{passes} passes, each with twice the share of alpha of the one before; in "
        "each, levels by n-gram evidence that add up to the share"
        if passes
        else "no string was tested",
        detection_threshold=_threshold(reports, tables, limits, found.rows),
        mass_at_end=reports.mass_at_end,
        evidence_name="log-odds from n-grams, nats",
        truncation=tables.gap or truncation,
    )


def _threshold(
    reports: GramReports, tables: GramTables, limits: list[PassLimits], found: Rows
) -> float:
    """Return the frequency at which half of the strings like those found are found."""
    if not limits:
        return 1.0
    rest = PassTables.of(tables, KnownStrings.of(reports, found), limits[-1].frequency)
    return power_of(reports, limits, rest, found).threshold()


def string_p_values(
    reports: GramReports, known: Rows, strings: Rows, smallest_cutoff: float
) -> tuple[Floats, float]:
    """Return p-values of strings on the residual of a fit of the known ones, float64[n].

    Also returns the standard error of the frequency of a typical string.

    The full-string reports take no part in proposing a candidate, and their noise is independent of
    the noise of the gram reports. So a test is valid however the candidate was proposed, as long as
    every candidate that was looked at is counted.
    """
    if len(strings) == 0:
        return np.empty(0), reports.string_error
    design = reports.design(np.concatenate([known, strings]))
    table = BitTable.of(reports.full, design, True)
    active = np.arange(len(known), dtype=np.intp)
    fit = fit_columns(table, design.indicator(active))
    scan = scan_candidates(table, design, active, fit, float(norm.isf(smallest_cutoff)))
    log_p = np.where(scan.identified, log_upper_tail(scan.test, scan.skewness), 0.0)
    error = float(np.median(scan.test_error[len(known) :]))
    return p_values(log_p[len(known) :]), error


def _frequencies(reports: GramReports, tables: GramTables) -> list[float]:
    """Return the frequencies of the passes, from the largest possible to the least detectable."""
    lightest = MIN_DEVIATIONS * reports.string_error
    heaviest = min(1.0, *(float(each.marginal.estimate.max(initial=0.0)) for each in tables.kept))
    count = int(np.ceil(np.log(max(heaviest / lightest, 1.0)) / np.log(FREQUENCY_STEP))) + 1
    return [lightest * FREQUENCY_STEP**i for i in range(count - 1, -1, -1)]


def _unknown(strings: Rows, known: Rows) -> Indices:
    """Return the indices of strings that are not among the known."""
    whole = np.dtype((np.void, strings.shape[1]))
    have = np.ascontiguousarray(known).view(whole).ravel()
    return np.flatnonzero(~np.isin(np.ascontiguousarray(strings).view(whole).ravel(), have))
