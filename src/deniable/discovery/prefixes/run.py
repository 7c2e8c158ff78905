"""Discovery from prefixes: each client reports one prefix of its string with all of ε.

A string ends at the first prefix length that is greater than its own length. Reports of that length
and of shorter ones serve to find it, in all families of hash functions. Reports of greater lengths,
and of repeats of the full length, are divided by family: some families (`learning`) help to choose,
and the others test.

0. *Listed*: if the analyst gave words, test those that are whole strings (see `listed`).
1. *Learn*: search, take what is likely, remove it from the tables, learn a character model from it,
   and search again, until nothing is new.
2. *Search* with that model for the other strings.
3. *Test* every finished string with the testing families, at prefix lengths after its end. Its
   cells there took no part in the search, in the model, or in the estimates of what was removed. If
   no client holds the string, those cells are as good as drawn at random, whatever was computed
   from the tables or from other strings' cells before (see `testing`).

All reports count: those that do not test a string set the odds from which its cut-off follows.
Known strings are not only removed from the tables: reports that they explain count less (see
`mixture`), which finds 4 to 5 more of the 100 domains of the URL trial.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from deniable.discovery.prefixes.listed import accept_listed, listed_rows
from deniable.discovery.prefixes.search import PrefixBeam, end_levels, mass_grid, search, with_later
from deniable.discovery.shared.mixture import Mixture
from deniable.discovery.shared.run import DiscoveryRun, SearchSummary, mass_at_end
from deniable.discovery.shared.selection import Cut, MovingCut, SelectedStrings
from deniable.discovery.shared.string_models import (
    CharacterModel,
    Words,
    held_out_log_p,
    string_model,
)
from deniable.discovery.shared.strings import Rows, StringArrays, random_rows
from deniable.discovery.shared.tables import MassTables, ScoreTables
from deniable.discovery.shared.tally import tally_of
from deniable.discovery.shared.testing import PlannedTests, TableTests
from deniable.inference.power.cutoffs import cutoff_height, cutoffs_at
from deniable.inference.power.prefix_search import (
    CONFIRMING_SHARE,
    MAX_CANDIDATES,
    SEARCH_WIDTH,
    UNLIKELY,
    PrefixSearch,
    Spelled,
    grid_of_masses,
    learning_families,
)
from deniable.kernels.array_types import Floats, Mask
from deniable.protocols import Prefixes
from deniable.protocols.alphabet import PAD
from deniable.results import Discovery

LEARNING_WIDTHS = (1_000, 3_000, 3_000, 5_000)
UNLIKELY_TO_LEARN = -8.5
"""Log-odds below which searches do not follow prefixes while learning."""
MIN_ODDS_TO_LEARN = 2.0
"""Log-odds at which a string is taken while learning."""
MIN_DEVIATIONS_TO_LEARN = 3.0
"""Standard errors that the mass of such a string must reach."""
MIN_STRINGS_TO_LEARN = 8
MIN_Z_TO_CONFIRM = 7.0
"""Expected test statistic of strings that are tested before the others are searched for."""
LISTED_SHARE = 0.5
"""Share of α for the strings that the analyst listed, if there are any."""
CORRECTION = (
    "α over every finished string, in proportion to its odds before the test; tested on cells that "
    "had no part in finding it"
)
LIST_CORRECTION = "; half of α over the listed strings, tested on all reports that hold them whole"


@dataclass(frozen=True, eq=False)
class _LearntStrings(StringArrays):
    """Strings found while learning: masses, log-odds, and whether each was tested."""

    mass: Floats
    odds: Floats
    tested: Mask


def discover_prefixes(run: DiscoveryRun[Prefixes], words: Words = ()) -> Discovery:
    """Find the strings of a `prefixes` question; any is false with probability at most α.

    words : strings that clients may hold, and words that their strings may contain
    """
    tables = MassTables.of(tally_of(run.source, run.question, run.protocol, run.executor))
    run.reports = int(tables.reports.sum())
    run.stage("tables", run.reports, 0)
    return _PrefixDiscovery(run, tables).discover(words)


class _PrefixDiscovery:
    """The steps of one discovery, and what they share: tables, and which families learn."""

    def __init__(self, run: DiscoveryRun[Prefixes], tables: MassTables) -> None:
        self.run, self.tables, self.tally = run, tables, tables.tally
        families = self.tally.families
        learning = learning_families(families)
        self.learning: Mask = np.arange(families) < learning
        self.testing = range(learning, families)
        self.refused: Rows = np.empty((0, run.protocol.max_length), np.uint8)
        self.height = np.inf

    def discover(self, words: Words) -> Discovery:
        """Run all steps."""
        run, alpha = self.run, self.run.alpha
        model = string_model(run.protocol.alphabet, words, run.protocol.max_length)
        listed, correction = TableTests.none(run.protocol.max_length), CORRECTION
        if words:
            listed = self.test_listed(words, LISTED_SHARE * alpha)
            alpha *= 1 - LISTED_SHARE
            correction += LIST_CORRECTION if run.candidates else ""
        start = model
        learnt, model = self.learn(start, listed)
        taught = learnt.rows
        learnt, confirmed = self.confirm(learnt, CONFIRMING_SHARE * alpha)
        others = self.search_and_test(learnt, model, (1 - CONFIRMING_SHARE) * alpha)
        found = TableTests.joined((listed, confirmed, others))
        return self.result(found, self.unseen(start, taught, found.rows), correction)

    def test_listed(self, words: Words, alpha: float) -> TableTests:
        """Return the listed strings that are present."""
        run, (rows, weight) = self.run, listed_rows(self.run.protocol, words)
        wanted = run.accepted(rows)
        found = accept_listed(self.tables, rows[wanted], weight[wanted], alpha)
        run.candidates = int(wanted.sum())
        run.stage("listed strings", len(found), run.candidates - len(found))
        return found

    def explained(self, rows: Rows, mass: Floats) -> ScoreTables:
        """Return scores of other strings, with strings of these masses explained."""
        return Mixture.of(self.tables, rows, mass).scores

    def candidates(
        self,
        scores: ScoreTables,
        model: CharacterModel,
        known: Rows,
        width: int = SEARCH_WIDTH,
        unlikely: float = UNLIKELY,
    ) -> tuple[PrefixBeam, Floats, Floats, Floats]:
        """Return the likeliest finished strings of one search, as `with_later` does.

        The odds come from all families up to the end of a string, then from the learning ones.
        """
        found, self.limits = search(scores.evidence(), model, width, unlikely)
        self.run.candidates += self.limits.scored
        if len(found) > MAX_CANDIDATES:
            self.limits.candidate = -np.partition(-found.odds, MAX_CANDIDATES)[MAX_CANDIDATES]
        found = found.take(np.argsort(-found.odds)[:MAX_CANDIDATES])
        found = found.take(self.run.accepted(found.rows))
        excluded = {row.tobytes() for row in known}
        found = found.take(np.array([row.tobytes() not in excluded for row in found.rows], bool))
        masses = mass_grid(self.tables.scores)
        return found, *with_later(found, scores.evidence(self.learning), masses)

    def learn(
        self, start: CharacterModel, listed: TableTests
    ) -> tuple[_LearntStrings, CharacterModel]:
        """Search, take what is likely and learn a model from it, until nothing is new."""
        count = len(listed)
        mass, _ = self.tables.fit(listed.rows)
        known = _LearntStrings(listed.rows, mass, np.zeros(count), np.ones(count, bool))
        model = start.trained(known.rows) if count >= MIN_STRINGS_TO_LEARN else start
        for width in LEARNING_WIDTHS:
            scores = self.explained(known.rows, known.mass)
            found, odds, mass, _ = self.candidates(
                scores, model, known.rows, width, UNLIKELY_TO_LEARN
            )
            new = _LearntStrings(found.rows, mass, odds, np.zeros(len(found), bool))
            taken = _LearntStrings.joined((known, new.take(odds > MIN_ODDS_TO_LEARN)))
            mass, error = self.fit(taken)
            clear = taken.tested | (mass > MIN_DEVIATIONS_TO_LEARN * error)
            before, known = len(known), replace(taken, mass=mass).take(clear)
            self.run.stage(f"learn, width {width}", len(known), len(taken) - len(known))
            if len(known) >= MIN_STRINGS_TO_LEARN:
                model = start.trained(known.rows)
            if len(known) <= before:
                break
        return known, model

    def fit(self, known: _LearntStrings) -> tuple[Floats, Floats]:
        """Return masses and standard errors from reports that do not test the string later."""
        at_end = end_levels(self.tally, known.rows)[:, np.newaxis] == np.arange(self.tally.levels)
        readable = (known.tested[:, np.newaxis] | at_end)[:, :, np.newaxis] | self.learning
        return self.tables.fit(known.rows, readable)

    def confirm(self, known: _LearntStrings, alpha: float) -> tuple[_LearntStrings, TableTests]:
        """Test the known strings that are nearly certain to pass if they are true.

        A string that was tested may be read everywhere: its mass can be estimated from all reports,
        and removing it leaves less behind in the cells of strings with the same beginning.
        """
        residual = self.tables.without(known.rows, known.mass).scores
        p, heavy = np.ones(len(known)), np.zeros(len(known), bool)
        first = end_levels(self.tally, known.rows) + 1
        planned = PlannedTests.of(residual, known.rows, first, self.testing)
        for chosen, test in planned.tests:
            heavy[chosen] = known.mass[chosen] * np.sqrt(test.precision) > MIN_Z_TO_CONFIRM
            heavy[chosen] &= ~known.tested[chosen]
            for i in chosen[heavy[chosen]]:
                p[i] = test.p_value_put_back(known.rows[i], float(known.mass[i]))
        each = alpha / max(int(heavy.sum()), 1)
        passed = heavy & (p <= each)
        self.refused = known.rows[heavy & ~passed]
        fixed, cutoff = np.zeros(len(p)), np.where(heavy, each, 0.0)
        confirmed = planned.passed(p, cutoff, fixed, fixed, fixed)
        known = replace(known, tested=passed | known.tested).take(passed | ~heavy)
        mass, _ = self.fit(known)
        self.run.stage("confirm", len(confirmed), int(heavy.sum()) - len(confirmed))
        return replace(known, mass=mass), confirmed

    def search_and_test(
        self, known: _LearntStrings, model: CharacterModel, alpha: float
    ) -> TableTests:
        """Search for the other strings; test them and the known strings not tested yet."""
        scores = self.explained(known.rows, known.mass)
        seen = np.concatenate([known.rows, self.refused])
        found, *before = self.candidates(scores, model, seen)
        dropped = self.run.candidates - len(found)
        self.run.stage(f"search, width {SEARCH_WIDTH}", len(found), dropped)
        # A known string that was not tested must not have contributed to its own test, nor to the
        # masses of others: it is tested where only strings that were tested are explained.
        sure, untested = known.take(known.tested), known.take(~known.tested)
        others = self.explained(sure.rows, self.tables.fit(sure.rows)[0])
        ends = end_levels(self.tally, untested.rows)
        parts = [
            PlannedTests.of(scores, found.rows, found.level + 1, self.testing),
            PlannedTests.of(others, untested.rows, ends + 1, self.testing),
        ]
        known_before = untested.odds, untested.mass, self.fit(untested)[1] ** 2
        z = np.concatenate([parts[0].z(before[1]), parts[1].z(untested.mass)])
        odds = np.concatenate([before[0], untested.odds])
        self.height = cutoff_height(odds, z, alpha)
        self.power = self.searched(scores, self.height)
        first, second = np.split(cutoffs_at(self.height, odds, z), [len(found)])
        passed = TableTests.joined(
            (
                parts[0].passed(parts[0].p_values(), first, *before),
                parts[1].passed(parts[1].p_values(), second, *known_before),
            )
        )
        self.run.stage("test", len(passed), len(odds) - len(passed))
        return passed

    def searched(self, scores: ScoreTables, height: float) -> PrefixSearch:
        """Return where the limits of the last search lay; height : of its cut-offs."""
        precision = scores.effective / scores.noise
        each = precision.sum(axis=1)
        noise = scores.entry - scores.entry.mean(axis=2, keepdims=True, dtype=np.float64)
        variance, third = ((noise**power).mean(axis=2).sum(axis=1) for power in (2, 3))
        return PrefixSearch(
            lengths=self.tally.lengths,
            precision=each,
            learning=precision[:, self.learning].sum(axis=1),
            dispersion=variance / np.maximum(each, 1e-300),
            skewness=third / np.maximum(variance, 1e-200) ** 1.5,
            masses=grid_of_masses(scores.standard_error),
            later_masses=grid_of_masses(self.tables.scores.standard_error),
            limits=self.limits,
            height=height,
        )

    def unseen(self, start: CharacterModel, taught: Rows, found: Rows) -> Spelled:
        """Return strings like the discovered ones, as a model sees them that did not learn them.

        If nothing was discovered: a string of half the maximum length, of random characters.

        taught : the strings that the model of the last search learnt
        """
        found = found if len(found) else random_rows(self.run.protocol)
        if len(taught) < MIN_STRINGS_TO_LEARN:
            taught = taught[:0]
        return Spelled(held_out_log_p(start, taught, found), (found != PAD).sum(axis=1))

    def result(self, found: TableTests, unseen: Spelled, correction: str) -> Discovery:
        """Estimate the discovered strings, and return the result."""
        run, rows = self.run, found.rows
        mass, error = self.tables.fit(rows)
        run.stage("refit", len(rows), 0)
        total_error = float(np.sqrt((error**2).sum()))
        strings = SelectedStrings(mass, error, self.cut(found, mass, error), total_error)
        threshold = self.power.threshold(unseen)
        summary = SearchSummary("prefixes", correction, threshold, mass_at_end(rows, strings))
        return run.result(found, strings, strings.z, summary)

    def cut(self, found: TableTests, mass: Floats, error: Floats) -> Cut:
        """Return what strings had to exceed, on the reports that tested them.

        The estimate is a mean over all reports that hold a string whole. Some of them test it; the
        others set the odds.
        """
        holders = self.tables.holders_variance(mass) / found.reports
        test_error = np.sqrt(1 / found.precision + holders)
        weight = found.reports / (self.tables.whole(found.rows) @ self.tables.reports.sum(axis=1))
        cut = Cut(found.height, test_error, weight)
        weight, _, rest_error = SelectedStrings(mass, error, cut, 0.0).parts
        moving = MovingCut(
            self.height,
            found.odds,
            found.expected,
            found.variance,
            rest=(mass - weight * found.mass) / (1 - weight),
            precision=rest_error**-2,
            scale=np.sqrt(found.precision),
        )
        return replace(cut, moving=moving)
