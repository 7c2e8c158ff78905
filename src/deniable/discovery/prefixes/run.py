"""Discovery from prefixes, each client reporting one of its own with all of ε.

A string ends at the first level longer than it. Reports of that level and shorter ones serve to
find it, in all families of hash functions; of those of longer levels and of repeats of the full
length, some families (`learning`) help to choose, and the others test.

0. *Listed*: where the analyst gave words, those that are whole strings are tested (see `listed`).
1. *Learn*: search, take what is likely, remove it from the tables, learn a character model from it,
   search again, until nothing is new.
2. *Search* with that model for what is left.
3. *Test* every finished string with the families that are left, at levels longer than its end.
   Nobody has looked at its cells there: not the search, not the model, not the estimates of what
   was removed. If no client holds the string, those cells are as good as drawn at random, whatever
   was computed from the tables or from other strings' cells before (see `testing`).

All reports count: those that do not test a string set the odds from which its cut-off follows.
Known strings are not only taken out of the tables: what they explain is weighed less (see
`mixture`), which finds 4 to 5 more of the 100 domains of the URL trial.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from deniable.discovery.prefixes.listed import accept_listed, listed_rows
from deniable.discovery.prefixes.refit import refit
from deniable.discovery.prefixes.search import (
    PrefixBeam,
    end_levels,
    mass_grid,
    search,
    with_later,
)
from deniable.discovery.shared.lexicon import SpellingModel, Words, string_model
from deniable.discovery.shared.mixture import Mixture
from deniable.discovery.shared.run import Account, DiscoveryRun, StringEstimates, mass_at_end
from deniable.discovery.shared.strings import Floats, FoundStrings, Rows, StringArrays
from deniable.discovery.shared.tables import MassTables, ScoreTables
from deniable.discovery.shared.tally import tally_of
from deniable.discovery.shared.testing import cutoffs_by_odds, tests_from
from deniable.errors import InputError
from deniable.protocols import Prefixes
from deniable.results import Discovery

LEARNING_SHARE = 0.25
LEARNING_WIDTHS = (1_000, 3_000, 3_000, 5_000)
WIDTH = 20_000
LIKELY = 2.0
"""Log-odds at which a string is taken while learning."""
CLEAR = 3.0
"""Standard errors that such a string's mass must reach."""
ENOUGH_TO_LEARN = 8
SURE = 7.0
"""Expected test statistic of strings that are tested before the rest are searched for."""
CONFIRMING_SHARE = 0.1
"""Of α, for those tests."""
MOST_CANDIDATES = 60_000
LISTED_SHARE = 0.5
"""Of α, for the strings that the analyst listed, if there are any."""
CORRECTION = (
    "α over every finished string, in proportion to its odds before the test; tested on cells that "
    "had no part in finding it"
)
LIST_CORRECTION = "; half of α over the listed strings, tested on all reports that hold them whole"

Levels = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class _Known(StringArrays):
    """Strings found while learning: masses, log-odds, and whether each was tested."""

    mass: Floats
    odds: Floats
    tested: NDArray[np.bool_]


def discover_prefixes(run: DiscoveryRun[Prefixes], words: Words = ()) -> Discovery:
    """Find the strings of a question asked by prefixes; a false one with probability at most α.

    words : strings that may be held, and words that strings may be made of
    """
    tables = MassTables.of(tally_of(run.source, run.question, run.protocol, run.executor))
    if tables.tally.families < 2:
        raise InputError(
            "expected at least 2 families of hash functions (cohorts, of a Bloom filter), to "
            f"choose with some and test with others; got {tables.tally.families}"
        )
    run.reports = int(tables.reports.sum())
    run.stage("tables", run.reports, 0)
    return _PrefixDiscovery(run, tables).discover(words)


class _PrefixDiscovery:
    """The steps of one discovery, and what they share: tables, and which families learn."""

    def __init__(self, run: DiscoveryRun[Prefixes], tables: MassTables) -> None:
        self.run, self.tables, self.tally = run, tables, tables.tally
        families = self.tally.families
        learning = min(max(round(LEARNING_SHARE * families), 1), families - 1)
        self.learning: NDArray[np.bool_] = np.arange(families) < learning
        self.testing = range(learning, families)
        self.refused: Rows = np.empty((0, run.protocol.max_length), np.uint8)

    def discover(self, words: Words) -> Discovery:
        """Run all steps."""
        run, alpha = self.run, self.run.alpha
        model = string_model(run.protocol.alphabet, words, run.protocol.max_length)
        listed, correction = FoundStrings.none(run.protocol.max_length), CORRECTION
        if words:
            listed = self.test_listed(words, LISTED_SHARE * alpha)
            alpha *= 1 - LISTED_SHARE
            correction += LIST_CORRECTION if run.candidates else ""
        known, model = self.learn(model, listed)
        known, sure = self.confirm(known, CONFIRMING_SHARE * alpha)
        others = self.search_and_test(known, model, (1 - CONFIRMING_SHARE) * alpha)
        return self.report(FoundStrings.joined((listed, sure, others)), model, correction)

    def test_listed(self, words: Words, alpha: float) -> FoundStrings:
        """Return those of the analyst's strings that are there."""
        run, (rows, weight) = self.run, listed_rows(self.run.protocol, words)
        wanted = run.accepted(rows)
        found = accept_listed(self.tables, rows[wanted], weight[wanted], alpha)
        run.candidates = int(wanted.sum())
        run.stage("listed strings", len(found), run.candidates - len(found))
        return found

    def explained(self, known: _Known) -> ScoreTables:
        """Return scores with these strings explained: each report weighs what is left to say."""
        return Mixture.of(self.tables, known.rows, known.mass).scores

    def candidates(
        self, scores: ScoreTables, model: SpellingModel, width: int, *seen: Rows
    ) -> tuple[PrefixBeam, Floats, Floats]:
        """Return the likeliest finished strings of one search, their log-odds and masses.

        The odds are by all families up to the end of a string, then by those that learn.
        """
        found, looked_at = search(scores.evidence(), model, width)
        self.run.candidates += looked_at
        found = found.take(np.argsort(-found.odds)[:MOST_CANDIDATES])
        found = found.take(self.run.accepted(found.rows))
        known = {row.tobytes() for rows in seen for row in rows}
        found = found.take(np.array([row.tobytes() not in known for row in found.rows], bool))
        masses = mass_grid(self.tables.scores)
        return found, *with_later(found, scores.evidence(self.learning), masses)

    def learn(self, start: SpellingModel, listed: FoundStrings) -> tuple[_Known, SpellingModel]:
        """Search, take what is likely and learn a model from it, until nothing is new."""
        count = len(listed)
        mass, _ = refit(self.tables, listed.rows)
        known = _Known(listed.rows, mass, np.zeros(count), np.ones(count, bool))
        model = start.learnt(known.rows) if count >= ENOUGH_TO_LEARN else start
        for width in LEARNING_WIDTHS:
            found, odds, mass = self.candidates(self.explained(known), model, width, known.rows)
            new = _Known(found.rows, mass, odds, np.zeros(len(found), bool)).take(odds > LIKELY)
            taken = _Known.joined((known, new))
            mass, error = self.refit(taken)
            clear = taken.tested | (mass > CLEAR * error)
            before, known = len(known), replace(taken, mass=mass).take(clear)
            self.run.stage(f"learn, width {width}", len(known), len(taken) - len(known))
            if len(known) >= ENOUGH_TO_LEARN:
                model = start.learnt(known.rows)
            if len(known) <= before:
                break
        return known, model

    def refit(self, known: _Known) -> tuple[Floats, Floats]:
        """Return masses and errors from reports that will not test the string any more."""
        at_end = end_levels(self.tally, known.rows)[:, np.newaxis] == np.arange(self.tally.levels)
        readable = (known.tested[:, np.newaxis] | at_end)[:, :, np.newaxis] | self.learning
        return refit(self.tables, known.rows, readable)

    def confirm(self, known: _Known, alpha: float) -> tuple[_Known, FoundStrings]:
        """Test those of the known strings that are sure to pass if they are true.

        A string that was tested may be looked at everywhere: its mass can be had from all reports,
        and what is removed with it is removed cleanly from strings that begin alike.
        """
        residual = self.tables.without(known.rows, known.mass).scores
        ends, p = end_levels(self.tally, known.rows), np.ones(len(known))
        heavy = ~known.tested & (known.mass * self.expected_z(residual, ends) > SURE)
        for here, test in tests_from(residual, ends + 1, self.testing):
            for i in here[heavy[here]]:
                p[i] = test.p_value_put_back(known.rows[i], float(known.mass[i]))
        each = alpha / max(int(heavy.sum()), 1)
        passed = heavy & (p <= each)
        self.refused = known.rows[heavy & ~passed]
        confirmed = FoundStrings(known.rows, p, np.full(len(p), each)).take(passed)
        known = replace(known, tested=passed | known.tested).take(passed | ~heavy)
        mass, _ = self.refit(known)
        self.run.stage("confirm", len(confirmed), int(heavy.sum()) - len(confirmed))
        return replace(known, mass=mass), confirmed

    def search_and_test(self, known: _Known, model: SpellingModel, alpha: float) -> FoundStrings:
        """Search for what is left, and test it and the known strings that were not tested yet."""
        scores = self.explained(known)
        found, odds, mass = self.candidates(scores, model, WIDTH, known.rows, self.refused)
        looked_at = self.run.candidates
        self.run.stage(f"search, width {WIDTH}", len(found), looked_at - len(found))
        # A known string that was not tested must not have had a part in its own test, nor in the
        # masses of others: it is tested where only those that were are explained.
        sure, rest = known.take(known.tested), known.take(~known.tested)
        everywhere, _ = refit(self.tables, sure.rows)
        others = self.explained(replace(sure, mass=everywhere))
        ends = end_levels(self.tally, rest.rows)
        p_and_z = [
            self.tested(scores, found.rows, mass, found.level),
            self.tested(others, rest.rows, rest.mass, ends),
        ]
        p, z = (np.concatenate(parts) for parts in zip(*p_and_z, strict=True))
        rows = np.concatenate([found.rows, rest.rows])
        cutoff = cutoffs_by_odds(np.concatenate([odds, rest.odds]), z, alpha)
        passed = p <= cutoff
        self.run.stage("test", int(passed.sum()), int((~passed).sum()))
        return FoundStrings(rows, p, cutoff).take(passed)

    def tested(
        self, scores: ScoreTables, rows: Rows, mass: Floats, ends: Levels
    ) -> tuple[Floats, Floats]:
        """float64[n], twice: p-values and expected test statistics of unexplained strings."""
        p = np.ones(len(rows))
        for here, test in tests_from(scores, ends + 1, self.testing):
            p[here] = test.p_values(rows[here])
        return p, mass * self.expected_z(scores, ends)

    def expected_z(self, scores: ScoreTables, ends: Levels) -> Floats:
        """float64[n]: the expected test statistic, per unit of mass, of strings that end there."""
        count = scores.effective[:, ~self.learning].sum(axis=1)
        later = np.append(count[::-1].cumsum()[::-1], 0)[1:]
        return np.asarray(np.sqrt(later[ends] / scores.noise))

    def report(self, found: FoundStrings, model: SpellingModel, correction: str) -> Discovery:
        """Estimate the strings found, and account for the search."""
        run, rows = self.run, found.rows
        mass, error = refit(self.tables, rows)
        run.stage("refit", len(rows), 0)
        # A string of half the greatest length, every character as likely as another.
        typical = np.log(len(run.protocol.alphabet.content) + 1) * run.protocol.max_length / 2
        nats = np.median(model.code(rows)) if len(rows) else typical
        z = np.sqrt(2 * (nats + np.log(1 / run.alpha)))
        account = Account(
            reading="prefixes",
            correction=correction,
            detection_threshold=float(self.tables.scores.standard_error * z),
            mass_at_end=mass_at_end(rows, mass, error),
        )
        total_error = float(np.sqrt((error**2).sum()))
        return run.result(found, StringEstimates.of_masses(mass, error, total_error), account)
