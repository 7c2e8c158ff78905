"""The default reading of n-grams: search, test, peel off, search again.

Each pass looks for strings of about one frequency f, heavy ones first. Gram reports alone propose
strings and put them in order (`beam`); the full-string reports test them; what is found is taken
off the gram tables, so that strings which share grams with heavy ones become visible.

Why the tests are honest. Passes share alpha, and in a pass the strings' cut-offs add up to its
share: Bonferroni, weighted by what the gram reports say of each string (`testing.cutoffs_by_odds`).
Later passes know the full-string reports only through the strings found before, whose estimates are
independent of the test of any other string (it is made on the residual of a regression). So, unless
a false string was found before, which counts as an error already, a pass errs with probability at
most its share. Heavy strings pass any test, so each pass has twice the share of the one before.

In the hash trial (12 crowds) cut-offs by odds find 16.8 strings where cut-offs by rank, 1/r, find
15.9; with falling shares 17.3. Strings lighter than 3.5 standard errors are not worth a pass: with
passes down to 2.8, 2.3 and 2.0 it was 17.2, 17.1 and 17.0.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.stats import norm

from deniable.compute.progress import report_progress
from deniable.discovery.ngrams.beam import GramBeam, search
from deniable.discovery.ngrams.coupling import Coupled, couple
from deniable.discovery.ngrams.grams import assemble, compatible, row_bits
from deniable.discovery.ngrams.neighbours import LEAST, Neighbours
from deniable.discovery.ngrams.positions import Position
from deniable.discovery.ngrams.state import GramReports, Pair, ScoredStrings
from deniable.discovery.shared.run import Account
from deniable.discovery.shared.strings import Floats, FoundStrings, Rows, StringArrays
from deniable.discovery.shared.testing import cutoffs_by_odds
from deniable.inference.marginal.detection import upper_tail
from deniable.inference.marginal.regression import BitTable, fit_columns
from deniable.inference.marginal.scan import scan_candidates
from deniable.protocols import NGrams

CELLS = 4_000_000
"""Bounds the grams of a position, through the number of pairs of grams."""
MOST = 512
WIDTH = 10_000
"""Strings that a pass keeps and tests, for each position."""
STEP = 1.6
"""Frequencies of two passes are this factor apart, and their shares of alpha a factor of two."""
MODEL_ERROR = 0.03
LIGHTEST = 3.5
"""Strings lighter than this many standard errors of the full-string test are not looked for."""
NEVER = 1e-30
"""A cut-off that no string reaches (11 standard errors): it is counted, not computed."""


@dataclass(frozen=True, eq=False)
class GramTables:
    """What the gram reports say: grams kept at each position, their excesses, and which of them
    can stand in one string."""

    protocol: NGrams
    kept: tuple[Position, ...]
    coupled: Coupled
    fits: dict[Pair, NDArray[np.bool_]]

    @classmethod
    def of(cls, reports: GramReports) -> GramTables:
        """Couple the most frequent grams of every two positions."""
        protocol = reports.protocol
        pairs = protocol.positions * (protocol.positions - 1) // 2
        most = min(MOST, max(64, int((CELLS / pairs) ** 0.5)))
        # Most frequent first; a gram that comes out at nothing adds work, hardly ever a string.
        there = [p.marginal.identified & (p.marginal.estimate > 0) for p in reports.positions]
        kept = tuple(
            position.take(np.flatnonzero(some)[:most])
            for position, some in zip(reports.positions, there, strict=True)
        )
        coupled = couple(reports, kept)
        fits = {
            (g, h): compatible(protocol, g, h, kept[g].grams, kept[h].grams)
            for g, h in coupled.pairs
        }
        return cls(protocol, kept, coupled, fits)

    def strings(self, beam: GramBeam) -> Rows:
        """Return what a search found as strings."""
        grams = [each.grams[beam.chosen[:, g]] for g, each in enumerate(self.kept)]
        return assemble(self.protocol, grams)


@dataclass(frozen=True, eq=False)
class _Known(StringArrays):
    """Strings found so far, their frequencies and the variances of these."""

    frequency: Floats
    variance: Floats

    @classmethod
    def of(cls, reports: GramReports, rows: Rows) -> _Known:
        """Estimate strings from the full-string reports."""
        if len(rows) == 0:
            return cls(rows, np.empty(0), np.empty(0))
        marginal = reports.estimate(rows)
        frequency = np.clip(np.nan_to_num(marginal.estimate), 0.0, 1.0)
        # What a string adds to a pair is a model's mean: a few per cent off.
        return cls(rows, frequency, marginal.standard_error**2 + (MODEL_ERROR * frequency) ** 2)


def read_fused(reports: GramReports) -> tuple[ScoredStrings, Account]:
    """Return strings found by passes over falling frequencies."""
    run, tables = reports.run, GramTables.of(reports)
    kept = sum(len(each.grams) for each in tables.kept)
    run.stage("pairs of grams coupled", kept, sum(len(p.grams) for p in reports.positions) - kept)
    frequencies = _frequencies(reports, tables)
    found = ScoredStrings.none(run.protocol.max_length)
    passes, dropped, mildest = len(frequencies), False, 0.0
    for i, f in enumerate(frequencies):
        report_progress("passes over falling frequencies", i / passes)
        beam = _search(tables, _Known.of(reports, found.rows), f)
        dropped |= beam.dropped
        strings = tables.strings(beam)
        new = _unknown(strings, found.rows)
        new = new[run.accepted(strings[new])]
        run.candidates += len(new)
        share = run.alpha * 2.0**i / (2.0**passes - 1)
        z = np.full(len(new), f / reports.string_noise)
        cutoff = cutoffs_by_odds(beam.score[new], z, share)
        hopeful = cutoff > NEVER
        mildest = max(mildest, float(cutoff[hopeful].max(initial=0.0)))
        tested = test_candidates(reports, found.rows, strings[new[hopeful]], cutoff[hopeful])
        scored = ScoredStrings(tested.rows, tested.p_value, tested.cutoff, beam.score[new[hopeful]])
        fresh = scored.take(tested.p_value <= tested.cutoff)
        found = ScoredStrings.joined((found, fresh))
        run.stage(f"pass at {f:.4f}", len(fresh), len(new) - len(fresh))
    return found, Account(
        reading="fused",
        correction=f"{passes} passes, each with twice the share of alpha of the one before; in "
        "each, levels by n-gram evidence that add up to the share",
        detection_threshold=reports.detection_threshold(mildest or run.alpha),
        mass_at_end=reports.mass_at_end,
        evidence_name="log-odds from n-grams, nats",
        truncation=f"each pass kept the {WIDTH * len(tables.kept):,} best strings" * dropped,
    )


def test_candidates(
    reports: GramReports, known: Rows, strings: Rows, cutoff: Floats
) -> FoundStrings:
    """Test strings on the full-string reports, on the residual of a fit of the known ones.

    The full-string reports take no part in proposing a candidate, and their noise is independent of
    the gram reports' noise, so a test is honest however the candidate was proposed, as long as
    every candidate that was looked at is counted.

    Returns all strings, with p-values that pass if they do not exceed the cut-off, float64[n].
    """
    if len(known) + len(strings) == 0:
        return FoundStrings.none(strings.shape[1])
    design = reports.design(np.concatenate([known, strings]))
    table = BitTable.of(reports.full, design, True)
    active = np.arange(len(known), dtype=np.intp)
    fit = fit_columns(table, design.indicator(active))
    z_needed = float(norm.isf(cutoff.min(initial=0.05)))
    scan = scan_candidates(table, design, active, fit, z_needed)
    p_value = np.where(scan.identified, upper_tail(scan.test, scan.skewness), 1.0)
    return FoundStrings(strings, p_value[len(known) :], cutoff)


def _frequencies(reports: GramReports, tables: GramTables) -> list[float]:
    """From the heaviest string there can be to the lightest that the test can find."""
    lightest = LIGHTEST * reports.string_noise
    heaviest = min(1.0, *(float(each.marginal.estimate.max(initial=0.0)) for each in tables.kept))
    count = int(np.ceil(np.log(max(heaviest / lightest, 1.0)) / np.log(STEP))) + 1
    return [lightest * STEP**i for i in range(count - 1, -1, -1)]


def _search(tables: GramTables, known: _Known, f: float) -> GramBeam:
    """Search for strings of frequency f beside those found."""
    left = max(1.0 - float(known.frequency.sum()), 2 * f, 0.02)
    free, prior, seen = [], [], []
    for kept, scorer in zip(tables.kept, tables.coupled.scorers, strict=True):
        place, marginal = kept.places(known.rows), kept.marginal
        taken = np.bincount(
            place[place >= 0], known.frequency[place >= 0], minlength=len(kept.grams)
        )
        rest = np.maximum(marginal.estimate, 0.0) - taken
        free.append(np.clip(rest, 0.0, left))
        # A gram is there because a string of frequency f needs it, or it is noise.
        noise = (f * rest - f * f / 2) / marginal.standard_error**2
        odds = np.log(kept.looked_at * f / left) - noise
        holds = np.log(np.maximum(rest / f, 1.0)) + np.log(f / left) - np.logaddexp(0.0, odds)
        prior.append(holds.astype(np.float32))
        seen.append(scorer.response(row_bits(kept.mechanism, kept.grams_of(known.rows))))
    n, alphabet = tables.protocol.gram, tables.protocol.alphabet
    learnt = Neighbours(alphabet, known.rows, n) if len(known) >= LEAST else None
    gain = {}
    for (g, h), pair in tables.coupled.pairs.items():
        # E excess = sum over strings of f C_g C_h less the product of means: what strings found
        # explain, shared bits included, goes, and so does independence of the rest.
        explained = (seen[g] * known.frequency) @ seen[h].T
        rest_left = pair.left - seen[g] @ known.frequency
        rest_right = pair.right - seen[h] @ known.frequency
        excess = pair.excess - explained + np.outer(pair.left, pair.right)
        excess -= np.outer(rest_left, rest_right) / left
        doubt = (seen[g] ** 2 * known.variance) @ (seen[h] ** 2).T
        information = 1.0 / (1.0 / pair.information + doubt)
        effect = f * np.outer(*(1.0 - np.minimum(free[i] / left, 0.98) for i in (g, h)))
        nats = (effect * excess - effect**2 / 2) * information
        if learnt is not None and tables.kept[h].start - tables.kept[g].start == n:
            nats += learnt.follows(tables.kept[g].grams, tables.kept[h].grams)
        gain[g, h] = np.where(tables.fits[g, h], nats, -np.inf).astype(np.float32)
    beam = search(prior, gain, WIDTH * len(prior))
    # Each position's gram is held by f of what is left, but there are left / f strings to hold it.
    return replace(beam, score=beam.score + np.log(left / f))


def _unknown(strings: Rows, known: Rows) -> NDArray[np.intp]:
    """Return the indices of strings that are not among the known."""
    whole = np.dtype((np.void, strings.shape[1]))
    have = np.ascontiguousarray(known).view(whole).ravel()
    return np.flatnonzero(~np.isin(np.ascontiguousarray(strings).view(whole).ravel(), have))
