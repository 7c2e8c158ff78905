"""The default reading of n-grams: search, test, peel off, search again.

Each pass looks for strings of about one frequency f, heavy ones first. Gram reports alone propose
strings and put them in order (`beam`); the full-string reports test them; what is found is taken
off the gram tables, so that strings which share grams with heavy ones become visible.

Why the tests are honest. All passes share alpha equally. In a pass, the string of rank r is tested
at a level proportional to 1/r, levels adding up to the pass's share: Bonferroni, weighted by an
order that the gram reports give. Later passes know the full-string reports only through the
strings found before, whose estimates are independent of the test of any other string (it is made
on the residual of a regression). So, unless a false string was found before, which counts as an
error already, a pass errs with probability at most its share.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from deniable.discovery.beam import Beam, search
from deniable.discovery.candidates import Accept, accepted, judge, string_noise
from deniable.discovery.characters import LEAST, Characters
from deniable.discovery.coupling import Coupled, Pair, couple
from deniable.discovery.grams import Rows, assemble, compatible, full_design, row_bits
from deniable.discovery.reports import Evidence, Found
from deniable.inference.marginal import estimate_marginal
from deniable.protocols.base import Slot

Floats = NDArray[np.float64]
CELLS = 4_000_000
"""Bounds the grams of a position, through the number of pairs of grams."""
MOST = 512
WIDTH = 10_000
"""Strings that a pass keeps and tests, for each position."""
STEP = 1.6
MODEL_ERROR = 0.03
LIGHTEST = 3.5
"""Strings lighter than this many standard errors of the full-string test are not looked for."""


@dataclass(frozen=True, eq=False)
class Tables:
    """What the gram reports say: grams kept at each position, their frequencies, and excesses."""

    grams: tuple[Rows, ...]
    looked_at: tuple[int, ...]
    estimate: tuple[Floats, ...]
    error: tuple[Floats, ...]
    coupled: Coupled
    fits: dict[Pair, NDArray[np.bool_]]
    slots: tuple[Slot, ...]
    starts: tuple[int, ...]


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


def read_fused(evidence: Evidence, *, accept: Accept, alpha: float) -> Found:
    """Strings found by passes over falling frequencies."""
    log, protocol = evidence.log, evidence.protocol
    with log.stage("pairs of grams coupled") as stage:
        tables = _tables(evidence)
        given = sum(len(p.grams) for p in evidence.positions)
        stage.count(sum(map(len, tables.grams)), given)
    levels = _frequencies(evidence, tables)
    share = alpha / max(len(levels), 1)
    haul = Haul(np.empty((0, protocol.max_length), np.uint8), *(np.empty(0),) * 3)
    candidates, dropped, mildest = 0, False, share
    for f in levels:
        with log.stage(f"pass at {f:.4f}") as stage:
            beam = _pass(tables, haul.rows, *_weights(evidence, haul.rows), f)
            new, looked_at, first = _tested(evidence, tables, beam, haul.rows, accept, share)
            stage.count(len(new.rows), looked_at)
        haul = haul.joined(new)
        candidates += looked_at
        dropped |= beam.dropped
        mildest = max(mildest, first) if candidates > looked_at else first
    kept = f"each pass kept the {WIDTH * protocol.positions:,} best strings"
    return Found(
        haul.rows, haul.p_value, haul.score, haul.level, "log-odds from n-grams, nats", candidates,
        f"{len(levels)} passes share alpha equally; in each the r-th candidate in order of n-gram "
        "evidence is tested at a level proportional to 1/r, levels adding up to the share",
        kept if dropped else "", mildest, None,
    )  # fmt: skip


def _tested(
    evidence: Evidence, tables: Tables, beam: Beam, known: Rows, accept: Accept, share: float
) -> tuple[Haul, int, float]:
    """Test a pass's strings: what is found, how many were tested, and the mildest level."""
    protocol = evidence.protocol
    grams = [g[beam.chosen[:, i]] for i, g in enumerate(tables.grams)]
    strings = assemble(protocol, grams)
    new = _unknown(strings, known)
    new = new[accepted(protocol, strings[new], accept)]
    weight = 1.0 / np.arange(1, len(new) + 1)
    level = share * weight / max(weight.sum(), 1.0)
    everything = np.concatenate([known, strings[new]])
    never = np.zeros(len(known))
    tested = judge(
        protocol, evidence.tallies.full, everything, np.concatenate([never, level]), len(known)
    )
    sure = np.flatnonzero(tested.found[len(known) :])
    found = Haul(
        strings[new[sure]], tested.p_value[len(known) :][sure], beam.score[new[sure]], level[sure]
    )
    return found, len(new), float(level[0]) if len(level) else share


def _tables(evidence: Evidence) -> Tables:
    protocol = evidence.protocol
    pairs = protocol.positions * (protocol.positions - 1) // 2
    most = min(MOST, max(64, int((CELLS / pairs) ** 0.5)))
    chosen = []
    for position in evidence.positions:
        known = np.flatnonzero(position.marginal.identified)
        chosen.append(known[:most])
    coupled = couple(evidence, chosen)
    grams = tuple(p.grams[c] for p, c in zip(evidence.positions, chosen, strict=True))
    return Tables(
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
    )


def _frequencies(evidence: Evidence, tables: Tables) -> list[float]:
    """From the heaviest string there can be to the lightest that the test can find."""
    lightest = LIGHTEST * string_noise(evidence.protocol, evidence.reports)
    heaviest = min(1.0, *(float(e.max(initial=0.0)) for e in tables.estimate))
    count = int(np.ceil(np.log(max(heaviest / lightest, 1.0)) / np.log(STEP))) + 1
    return [lightest * STEP**i for i in range(count - 1, -1, -1)]


def _weights(evidence: Evidence, rows: Rows) -> tuple[Floats, Floats]:
    """Frequencies of the strings found so far, and their variances."""
    if len(rows) == 0:
        return np.empty(0), np.empty(0)
    found = estimate_marginal(evidence.tallies.full, full_design(evidence.protocol, rows))
    weights = np.clip(np.nan_to_num(found.estimate), 0.0, 1.0)
    # What a string adds to a pair is a model's mean: a few per cent off.
    return weights, found.standard_error**2 + (MODEL_ERROR * weights) ** 2


def _pass(tables: Tables, rows: Rows, weights: Floats, variance: Floats, f: float) -> Beam:
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
    learnt = Characters(rows) if len(rows) >= LEAST else None
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
        if learnt is not None and tables.starts[h] - tables.starts[g] == len(tables.grams[g][0]):
            nats += learnt.follows(tables.grams[g], tables.grams[h])
        gain[g, h] = np.where(tables.fits[g, h], nats, -np.inf).astype(np.float32)
    return search(prior, gain, WIDTH * len(prior))


def _grams_of(tables: Tables, rows: Rows, g: int) -> Rows:
    """The strings' grams at one position."""
    start, n = tables.starts[g], tables.grams[0].shape[1]
    return rows[:, start : start + n]


def _places(tables: Tables, rows: Rows) -> list[NDArray[np.intp]]:
    """Where each string's grams stand among those kept at each position; -1 where not."""
    found = []
    for g, grams in enumerate(tables.grams):
        index = {gram.tobytes(): i for i, gram in enumerate(grams)}
        keys = [gram.tobytes() for gram in _grams_of(tables, rows, g)]
        found.append(np.array([index.get(k, -1) for k in keys], np.intp))
    return found


def _unknown(strings: Rows, known: Rows) -> NDArray[np.intp]:
    """Strings that are not among the known, in their order."""
    have = {row.tobytes() for row in known}
    return np.array([i for i, row in enumerate(strings) if row.tobytes() not in have], np.intp)
