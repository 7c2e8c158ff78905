"""The default reading of n-grams ("fused"): search, test, remove what was found, search again.

Each pass looks for strings of about one frequency f, common ones first. Gram reports alone propose
strings and order them (`gram_search`), and the full-string reports test them. What is found is
removed from the gram tables, so that strings which share grams with common ones become visible.

Why the tests are valid. Passes share alpha, and within a pass the cut-offs of the strings add up to
its share: Bonferroni, weighted by the evidence of the gram reports (`testing.cutoffs_by_odds`).
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

from dataclasses import dataclass, replace

import numpy as np
from scipy.stats import norm

from deniable.compute.progress import report_progress
from deniable.discovery.ngrams.coupling import Coupling, Scorer, couple
from deniable.discovery.ngrams.gram_reports import GramReports, Position, ScoredStrings
from deniable.discovery.ngrams.gram_search import MIN_STRINGS_TO_LEARN, GramBeam, Neighbours, search
from deniable.discovery.ngrams.grams import Pair, assemble, compatible, row_bits
from deniable.discovery.shared.run import SearchSummary
from deniable.discovery.shared.strings import Rows, StringArrays
from deniable.discovery.shared.testing import cutoffs_by_odds
from deniable.formatting import counted
from deniable.inference.marginal.randomisation import (
    SMALL_CROWD,
    log_hash_tail,
    remaining_counts,
)
from deniable.inference.marginal.regression import BitTable, fit_columns
from deniable.inference.marginal.scan import scan_candidates
from deniable.inference.marginal.tails import log_upper_tail, p_values
from deniable.kernels.array_types import Floats, Indices, Mask
from deniable.protocols import NGrams

MAX_PAIRS = 4_000_000
"""Pairs of grams, over all pairs of positions; it bounds the grams of a position."""
MAX_GRAMS = 512
"""Grams of a position."""
WIDTH = 10_000
"""Strings that a pass keeps and tests, per position."""
FREQUENCY_STEP = 1.6
"""Ratio of the frequencies of two passes; their shares of alpha differ by a factor of two."""
MODEL_ERROR = 0.03
"""Relative error of the effect of a known string on a pair, which is the mean of a model."""
MIN_DEVIATIONS = 3.5
"""Strings below this many standard errors of the full-string test are not searched for."""
MIN_CUTOFF = 1e-30
"""A cut-off that no string passes (11 standard errors): the string counts, but is not tested."""


@dataclass(frozen=True, eq=False)
class GramTables:
    """What the gram reports show.

    kept : grams kept at each position; scorers : their factors in a report
    couplings : excesses of each pair of positions
    fits : bool[A, B], which grams of each pair of positions fit into one string
    """

    protocol: NGrams
    kept: tuple[Position, ...]
    scorers: list[Scorer]
    couplings: dict[Pair, Coupling]
    fits: dict[Pair, Mask]

    @classmethod
    def of(cls, reports: GramReports) -> GramTables:
        """Couple the most frequent grams of every two positions."""
        protocol = reports.protocol
        pairs = protocol.positions * (protocol.positions - 1) // 2
        most = min(MAX_GRAMS, max(64, int((MAX_PAIRS / pairs) ** 0.5)))
        # A gram whose estimate is not positive costs time and hardly ever belongs to a string.
        kept = tuple(
            p.take(np.flatnonzero(p.marginal.identified & (p.marginal.estimate > 0))[:most])
            for p in reports.positions
        )
        scorers, couplings = couple(reports, kept)
        fits = {
            (g, h): compatible(protocol, g, h, kept[g].grams, kept[h].grams) for g, h in couplings
        }
        return cls(protocol, kept, scorers, couplings, fits)

    @property
    def gap(self) -> str:
        """Say why too few reports have come in to put strings together; empty if enough have."""
        too_few = "too few reports to put strings together: "
        if missing := sum(len(each.grams) == 0 for each in self.kept):
            return f"{too_few}{missing} of {counted(len(self.kept), 'position')} show no n-gram"
        pairs = len(self.kept) * (len(self.kept) - 1) // 2
        if missing := pairs - len(self.couplings):
            shown = counted(pairs, "pair")
            return f"{too_few}no client reported on {missing} of {shown} of positions"
        return ""

    def strings(self, beam: GramBeam) -> Rows:
        """Return the strings of a beam."""
        grams = [each.grams[beam.chosen[:, g]] for g, each in enumerate(self.kept)]
        return assemble(self.protocol, grams)


@dataclass(frozen=True, eq=False)
class _KnownStrings(StringArrays):
    """Strings found so far, with their frequencies and the variances of these."""

    frequency: Floats
    variance: Floats

    @classmethod
    def of(cls, reports: GramReports, rows: Rows) -> _KnownStrings:
        """Estimate strings from the full-string reports."""
        if len(rows) == 0:
            return cls(rows, np.empty(0), np.empty(0))
        marginal = reports.estimate(rows)
        frequency = np.clip(np.nan_to_num(marginal.estimate), 0.0, 1.0)
        return cls(rows, frequency, marginal.standard_error**2 + (MODEL_ERROR * frequency) ** 2)


def read_fused(reports: GramReports) -> tuple[ScoredStrings, SearchSummary]:
    """Return the strings found by passes over falling frequencies."""
    run, tables = reports.run, GramTables.of(reports)
    kept = sum(len(each.grams) for each in tables.kept)
    run.stage("pairs of grams coupled", kept, sum(len(p.grams) for p in reports.positions) - kept)
    frequencies = _frequencies(reports, tables) if not tables.gap else []
    found = ScoredStrings.none(run.protocol.max_length)
    passes, dropped, largest_cutoff = len(frequencies), False, 0.0
    for i, f in enumerate(frequencies):
        report_progress("passes over falling frequencies", i / passes)
        beam = _search(tables, _KnownStrings.of(reports, found.rows), f)
        dropped |= beam.dropped
        strings = tables.strings(beam)
        new = _unknown(strings, found.rows)
        new = new[run.accepted(strings[new])]
        run.candidates += len(new)
        share = run.alpha * 2.0**i / (2.0**passes - 1)
        z = np.full(len(new), f / reports.string_error)
        cutoff = cutoffs_by_odds(beam.score[new], z, share)
        tested, cutoff = new[cutoff > MIN_CUTOFF], cutoff[cutoff > MIN_CUTOFF]
        largest_cutoff = max(largest_cutoff, float(cutoff.max(initial=0.0)))
        p_value = string_p_values(reports, found.rows, strings[tested], cutoff.min(initial=0.05))
        tests = ScoredStrings(strings[tested], p_value, cutoff, beam.score[tested])
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
        detection_threshold=reports.detection_threshold(largest_cutoff or run.alpha),
        mass_at_end=reports.mass_at_end,
        evidence_name="log-odds from n-grams, nats",
        truncation=tables.gap or truncation,
    )


def string_p_values(
    reports: GramReports, known: Rows, strings: Rows, smallest_cutoff: float
) -> Floats:
    """float64[n]: p-values of strings on the residual of a fit of the known ones.

    The full-string reports take no part in proposing a candidate, and their noise is independent of
    the noise of the gram reports. So a test is valid however the candidate was proposed, as long as
    every candidate that was looked at is counted.
    """
    if len(known) + len(strings) == 0:
        return np.empty(0)
    design = reports.design(np.concatenate([known, strings]))
    if reports.full.reports <= SMALL_CROWD:
        is_known = np.arange(design.candidates) < len(known)
        remaining = remaining_counts(reports.full, design, is_known)
        return p_values(log_hash_tail(remaining, reports.full.total, design)[len(known) :])
    table = BitTable.of(reports.full, design, True)
    active = np.arange(len(known), dtype=np.intp)
    fit = fit_columns(table, design.indicator(active))
    scan = scan_candidates(table, design, active, fit, float(norm.isf(smallest_cutoff)))
    log_p = np.where(scan.identified, log_upper_tail(scan.test, scan.skewness), 0.0)
    return p_values(log_p[len(known) :])


def _frequencies(reports: GramReports, tables: GramTables) -> list[float]:
    """Return the frequencies of the passes, from the largest possible to the least detectable."""
    lightest = MIN_DEVIATIONS * reports.string_error
    heaviest = min(1.0, *(float(each.marginal.estimate.max(initial=0.0)) for each in tables.kept))
    count = int(np.ceil(np.log(max(heaviest / lightest, 1.0)) / np.log(FREQUENCY_STEP))) + 1
    return [lightest * FREQUENCY_STEP**i for i in range(count - 1, -1, -1)]


def _search(tables: GramTables, known: _KnownStrings, f: float) -> GramBeam:
    """Search for strings of frequency f other than the known ones."""
    left = max(1.0 - float(known.frequency.sum()), 2 * f, 0.02)
    free, prior, seen = [], [], []
    for kept, scorer in zip(tables.kept, tables.scorers, strict=True):
        place, marginal = kept.places(known.rows), kept.marginal
        taken = np.bincount(
            place[place >= 0], known.frequency[place >= 0], minlength=len(kept.grams)
        )
        unexplained = np.maximum(marginal.estimate, 0.0) - taken
        free.append(np.clip(unexplained, 0.0, left))
        # A gram is present because a string of frequency f holds it, or its estimate is noise.
        ratio = (f * unexplained - f * f / 2) / marginal.standard_error**2
        noise_odds = np.log(kept.possible * f / left) - ratio
        holders = np.log(np.maximum(unexplained / f, 1.0)) + np.log(f / left)
        prior.append((holders - np.logaddexp(0.0, noise_odds)).astype(np.float32))
        seen.append(scorer.response(row_bits(kept.mechanism, kept.grams_of(known.rows))))
    n, alphabet = tables.protocol.gram, tables.protocol.alphabet
    learnt = Neighbours(alphabet, known.rows, n) if len(known) >= MIN_STRINGS_TO_LEARN else None
    gain = {}
    for (g, h), pair in tables.couplings.items():
        # E excess = sum over strings of f C_g C_h less the product of means: remove what known
        # strings explain, shared bits included, and the independence of the other strings.
        explained = (seen[g] * known.frequency) @ seen[h].T
        other_left = pair.left - seen[g] @ known.frequency
        other_right = pair.right - seen[h] @ known.frequency
        excess = pair.excess - explained + np.outer(pair.left, pair.right)
        excess -= np.outer(other_left, other_right) / left
        doubt = (seen[g] ** 2 * known.variance) @ (seen[h] ** 2).T
        information = 1.0 / (1.0 / pair.information + doubt)
        effect = f * np.outer(*(1.0 - np.minimum(free[i] / left, 0.98) for i in (g, h)))
        nats = (effect * excess - effect**2 / 2) * information
        if learnt is not None and tables.kept[h].start - tables.kept[g].start == n:
            nats += learnt.follows(tables.kept[g].grams, tables.kept[h].grams)
        gain[g, h] = np.where(tables.fits[g, h], nats, -np.inf).astype(np.float32)
    beam = search(prior, gain, WIDTH * len(prior))
    # f of the remaining share holds the gram of each position, but left / f strings may do so.
    return replace(beam, score=beam.score + np.log(left / f))


def _unknown(strings: Rows, known: Rows) -> Indices:
    """Return the indices of strings that are not among the known."""
    whole = np.dtype((np.void, strings.shape[1]))
    have = np.ascontiguousarray(known).view(whole).ravel()
    return np.flatnonzero(~np.isin(np.ascontiguousarray(strings).view(whole).ravel(), have))
