"""The default reading of n-grams: search, test, peel off, search again.

Each pass looks for strings of about one frequency f, heavy ones first. Gram reports alone propose
strings and put them in order (`beam`); the full-string reports test them; what is found is taken
off the gram tables, so that strings which share grams with heavy ones become visible.

Why the tests are honest. Passes share alpha, and in a pass the strings' levels add up to its
share: Bonferroni, weighted by what the gram reports say of each string (`testing.allowances`).
Later passes know the full-string reports only through the strings found before, whose estimates are
independent of the test of any other string (it is made on the residual of a regression). So, unless
a false string was found before, which counts as an error already, a pass errs with probability at
most its share. Heavy strings pass any test, so each pass has twice the share of the one before.

In the hash trial (12 crowds) levels by odds find 16.8 strings where levels by rank, 1/r, find 15.9;
with falling shares 17.3. Strings lighter than 3.5 standard errors are not worth a pass: with passes
down to 2.8, 2.3 and 2.0 it was 17.2, 17.1 and 17.0.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from deniable.compute.progress import report_progress
from deniable.discovery.ngrams.beam import Beam, search
from deniable.discovery.ngrams.coupling import Coupled, Pair, couple
from deniable.discovery.ngrams.grams import Rows, assemble, compatible, full_design, row_bits
from deniable.discovery.ngrams.neighbours import LEAST, Neighbours
from deniable.discovery.ngrams.state import Found, GramReports
from deniable.discovery.shared.candidate_strings import Accept, accepted, judge, string_noise
from deniable.discovery.shared.testing import allowances
from deniable.inference.marginal.estimate import estimate_marginal
from deniable.protocols.alphabet import Alphabet
from deniable.protocols.base import Slot

Floats = NDArray[np.float64]
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
"""A level that no string reaches (11 standard errors): it is counted, not computed."""


@dataclass(frozen=True, eq=False)
class GramTables:
    """What the gram reports say: grams kept at each position, their frequencies, and excesses."""

    grams: tuple[Rows, ...]
    looked_at: tuple[int, ...]
    estimate: tuple[Floats, ...]
    error: tuple[Floats, ...]
    coupled: Coupled
    fits: dict[Pair, NDArray[np.bool_]]
    slots: tuple[Slot, ...]
    starts: tuple[int, ...]
    alphabet: Alphabet


@dataclass(frozen=True, eq=False)
class Haul:
    """Strings found so far, uint8[F, M], and each one's p-value, score and level, float64[F]."""

    rows: Rows
    p_value: Floats
    score: Floats
    level: Floats

    def joined(self, other: Haul) -> Haul:
        """Both."""
        names = ("rows", "p_value", "score", "level")
        both = [np.concatenate([getattr(self, n), getattr(other, n)]) for n in names]
        return Haul(*both)


def read_fused(evidence: GramReports, *, accept: Accept, alpha: float) -> Found:
    """Strings found by passes over falling frequencies."""
    log, protocol = evidence.log, evidence.protocol
    with log.stage("pairs of grams coupled") as stage:
        tables = _tables(evidence)
        given = sum(len(p.grams) for p in evidence.positions)
        stage.count(sum(map(len, tables.grams)), given)
    levels = _frequencies(evidence, tables)
    haul = Haul(np.empty((0, protocol.max_length), np.uint8), *(np.empty(0),) * 3)
    candidates, dropped, mildest = 0, False, 0.0
    for f, share in zip(levels, _shares(alpha, len(levels)), strict=True):
        report_progress("passes over falling frequencies", levels.index(f) / len(levels))
        with log.stage(f"pass at {f:.4f}") as stage:
            beam = _pass(tables, haul.rows, *_weights(evidence, haul.rows), f)
            new, looked_at, mild = _tested(evidence, tables, beam, haul.rows, accept, share, f)
            stage.count(len(new.rows), looked_at)
        haul = haul.joined(new)
        candidates += looked_at
        dropped |= beam.dropped
        mildest = max(mildest, mild)
    kept = f"each pass kept the {WIDTH * protocol.positions:,} best strings"
    return Found(
        haul.rows, haul.p_value, haul.score, haul.level, "log-odds from n-grams, nats", candidates,
        f"{len(levels)} passes, each with twice the share of alpha of the one before; in each, "
        "levels by n-gram evidence that add up to the share",
        kept if dropped else "", mildest or alpha, None,
    )  # fmt: skip


def _shares(alpha: float, passes: int) -> list[float]:
    """What each pass may spend of alpha."""
    return [alpha * 2.0**i / (2.0**passes - 1) for i in range(passes)]


def _tested(
    evidence: GramReports,
    tables: GramTables,
    beam: Beam,
    known: Rows,
    accept: Accept,
    share: float,
    f: float,
) -> tuple[Haul, int, float]:
    """Test a pass's strings: what is found, how many were tested, and the mildest level."""
    protocol = evidence.protocol
    grams = [g[beam.chosen[:, i]] for i, g in enumerate(tables.grams)]
    strings = assemble(protocol, grams)
    new = _unknown(strings, known)
    new = new[accepted(protocol, strings[new], accept)]
    z = np.full(len(new), f / string_noise(protocol, evidence.reports))
    level = allowances(beam.score[new], z, share)
    looked_at, hopeful = len(new), level > NEVER
    new, level = new[hopeful], level[hopeful]
    everything = np.concatenate([known, strings[new]])
    never = np.zeros(len(known))
    tested = judge(
        protocol, evidence.tallies.full, everything, np.concatenate([never, level]), len(known)
    )
    sure = np.flatnonzero(tested.found[len(known) :])
    found = Haul(
        strings[new[sure]], tested.p_value[len(known) :][sure], beam.score[new[sure]], level[sure]
    )
    return found, looked_at, float(level.max(initial=0.0))


def _tables(evidence: GramReports) -> GramTables:
    protocol = evidence.protocol
    pairs = protocol.positions * (protocol.positions - 1) // 2
    most = min(MOST, max(64, int((CELLS / pairs) ** 0.5)))
    chosen = []
    for position in evidence.positions:
        # Most frequent first; a gram that comes out at nothing adds work, hardly ever a string.
        there = position.marginal.identified & (position.marginal.estimate > 0)
        chosen.append(np.flatnonzero(there)[:most])
    coupled = couple(evidence, chosen)
    grams = tuple(p.grams[c] for p, c in zip(evidence.positions, chosen, strict=True))
    return GramTables(
        grams,
        tuple(p.looked_at for p in evidence.positions),
        tuple(p.marginal.estimate[c] for p, c in zip(evidence.positions, chosen, strict=True)),
        tuple(
            p.marginal.standard_error[c] for p, c in zip(evidence.positions, chosen, strict=True)
        ),
        coupled,
        {(g, h): compatible(protocol, g, h, grams[g], grams[h]) for g, h in coupled.pairs},
        protocol.parts[1].slots,
        tuple(protocol.start(g) for g in range(protocol.positions)),
        protocol.alphabet,
    )


def _frequencies(evidence: GramReports, tables: GramTables) -> list[float]:
    """From the heaviest string there can be to the lightest that the test can find."""
    lightest = LIGHTEST * string_noise(evidence.protocol, evidence.reports)
    heaviest = min(1.0, *(float(e.max(initial=0.0)) for e in tables.estimate))
    count = int(np.ceil(np.log(max(heaviest / lightest, 1.0)) / np.log(STEP))) + 1
    return [lightest * STEP**i for i in range(count - 1, -1, -1)]


def _weights(evidence: GramReports, rows: Rows) -> tuple[Floats, Floats]:
    """Frequencies of the strings found so far, and their variances."""
    if len(rows) == 0:
        return np.empty(0), np.empty(0)
    found = estimate_marginal(evidence.tallies.full, full_design(evidence.protocol, rows))
    weights = np.clip(np.nan_to_num(found.estimate), 0.0, 1.0)
    # What a string adds to a pair is a model's mean: a few per cent off.
    return weights, found.standard_error**2 + (MODEL_ERROR * weights) ** 2


def _pass(tables: GramTables, rows: Rows, weights: Floats, variance: Floats, f: float) -> Beam:
    """Search for strings of frequency f beside those found."""
    left = max(1.0 - float(weights.sum()), 2 * f, 0.02)
    places = _places(tables, rows)
    rest, prior = [], []
    for g, (estimate, error) in enumerate(zip(tables.estimate, tables.error, strict=True)):
        known = places[g] >= 0
        taken = np.bincount(places[g][known], weights[known], minlength=len(estimate))
        free = np.maximum(estimate, 0.0) - taken
        rest.append(np.clip(free, 0.0, left))
        # A gram is there because a string of frequency f needs it, or it is noise.
        odds = np.log(tables.looked_at[g] * f / left) - (f * free - f * f / 2) / error**2
        holds = np.log(np.maximum(free / f, 1.0)) + np.log(f / left) - np.logaddexp(0.0, odds)
        prior.append(holds.astype(np.float32))
    seen = [
        scorer.response(row_bits(slot.mechanism, _grams_of(tables, rows, g)))
        for g, (scorer, slot) in enumerate(zip(tables.coupled.scorers, tables.slots, strict=True))
    ]
    n = tables.grams[0].shape[1]
    learnt = Neighbours(tables.alphabet, rows, n) if len(rows) >= LEAST else None
    gain = {}
    for (g, h), c in tables.coupled.pairs.items():
        # E excess = sum over strings of f C_g C_h less the product of means: what strings found
        # explain, shared bits included, goes, and so does independence of the rest.
        explained = (seen[g] * weights) @ seen[h].T
        rest_left, rest_right = c.left - seen[g] @ weights, c.right - seen[h] @ weights
        excess = c.excess - explained + np.outer(c.left, c.right)
        excess -= np.outer(rest_left, rest_right) / left
        doubt = (seen[g] ** 2 * variance) @ (seen[h] ** 2).T
        information = 1.0 / (1.0 / c.information + doubt)
        share = [1.0 - np.minimum(r / left, 0.98) for r in (rest[g], rest[h])]
        effect = f * np.outer(*share)
        nats = (effect * excess - effect**2 / 2) * information
        if learnt is not None and tables.starts[h] - tables.starts[g] == n:
            nats += learnt.follows(tables.grams[g], tables.grams[h])
        gain[g, h] = np.where(tables.fits[g, h], nats, -np.inf).astype(np.float32)
    beam = search(prior, gain, WIDTH * len(prior))
    # Each position's gram is held by f of what is left, but there are left / f strings to hold it.
    return replace(beam, score=beam.score + np.log(left / f))


def _grams_of(tables: GramTables, rows: Rows, g: int) -> Rows:
    """The strings' grams at one position."""
    start, n = tables.starts[g], tables.grams[0].shape[1]
    return rows[:, start : start + n]


def _places(tables: GramTables, rows: Rows) -> list[NDArray[np.intp]]:
    """Where each string's grams stand among those kept at each position; -1 where not."""
    found = []
    for g, grams in enumerate(tables.grams):
        index = {gram.tobytes(): i for i, gram in enumerate(grams)}
        keys = [gram.tobytes() for gram in _grams_of(tables, rows, g)]
        found.append(np.array([index.get(k, -1) for k in keys], np.intp))
    return found


def _unknown(strings: Rows, known: Rows) -> NDArray[np.intp]:
    """Strings that are not among the known, in their order."""
    whole = np.dtype((np.void, strings.shape[1]))
    have = np.ascontiguousarray(known).view(whole).ravel()
    return np.flatnonzero(~np.isin(np.ascontiguousarray(strings).view(whole).ravel(), have))
