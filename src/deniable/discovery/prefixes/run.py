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

All reports count: those that do not test a string set the odds from which its allowance follows.
Known strings are not only taken out of the tables: what they explain is weighed less (see
`mixture`), which finds 4 to 5 more of the 100 domains of the URL trial.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from deniable.analysis.source import Source
from deniable.compute.backend import Executor
from deniable.discovery.prefixes.search import PrefixBeam, end_levels, grid, search, with_later
from deniable.discovery.shared.character_model import CharacterModel
from deniable.discovery.shared.evidence import ScoreTables
from deniable.discovery.shared.lexicon import Lexicon, StringModel, Words
from deniable.discovery.shared.listed import accept_listed, listed_rows
from deniable.discovery.shared.refit import Z95, mass_at_end, refit
from deniable.discovery.shared.tables import MassTables, Rows, debiased
from deniable.discovery.shared.tally import Tally, tally_of
from deniable.discovery.shared.testing import Accepted, HashTest, allowances
from deniable.discovery.whole_domain.mixture import mixture_of
from deniable.errors import InputError
from deniable.results import Discovery, Measured, Stage
from deniable.survey import Question

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
PAID_BY_LIST = "; half of α over the listed strings, tested on all reports that hold them whole"


Accept = Callable[[str], bool]


def discover_prefixes(
    source: Source,
    question: Question,
    *,
    accept: Accept | None = None,
    alpha: float = 0.05,
    words: Words = (),
    executor: Executor | None = None,
) -> Discovery:
    """The strings of a question asked by prefixes, with at most α of runs naming a false one.

    accept : keeps only strings for which it is true; words : of which strings may be made
    """
    if not 0 < alpha < 1:
        raise InputError(f"expected alpha between 0 and 1, got {alpha}")
    started = time.perf_counter()
    tally = tally_of(source, question, executor)
    tables = debiased(tally)
    if tables.families < 2:
        raise InputError(
            "expected at least 2 families of hash functions (cohorts, of a Bloom filter), to "
            f"choose with some and test with others; got {tables.families}"
        )
    return discover_in(tally, tables, accept=accept, alpha=alpha, words=words, started=started)


def discover_in(
    tally: Tally,
    tables: MassTables,
    *,
    accept: Accept | None = None,
    alpha: float = 0.05,
    words: Words = (),
    started: float | None = None,
) -> Discovery:
    """`discover_prefixes` from tables."""
    run = _Run(tally, tables, accept, time.perf_counter() if started is None else started)
    run.stage("tables", int(tables.count.sum()), 0)
    alphabet, length = tables.protocol.alphabet, tables.protocol.max_length
    model: StringModel = CharacterModel.uniform(alphabet)
    listed, left = run.nothing, alpha
    if words:
        model = Lexicon.of_words(alphabet, words, length)
        left = (1 - LISTED_SHARE) * alpha
        listed = _listed(run, words, LISTED_SHARE * alpha)
    known, model = _learn(run, model, listed)
    known, sure = _confirm(run, known, CONFIRMING_SHARE * left)
    others = _test(run, known, model, (1 - CONFIRMING_SHARE) * left)
    return _report(run, Accepted.joined((listed, sure, others)), model, alpha)


@dataclass(eq=False)
class _Run:
    """What the steps share: tables, which families learn, and the record of stages."""

    tally: Tally
    tables: MassTables
    accept: Accept | None
    clock: float
    stages: list[Stage] = field(default_factory=list)
    looked: int = 0
    listed: int = 0

    def __post_init__(self) -> None:
        families = self.tables.families
        learning = min(max(round(LEARNING_SHARE * families), 1), families - 1)
        self.learning: NDArray[np.bool_] = np.arange(families) < learning
        self.masses = grid(self.tables)
        none = np.empty((0, self.tables.protocol.max_length), np.uint8)
        self.nothing, self.refused = Accepted(none, np.zeros(0), np.zeros(0)), none

    def stage(self, name: str, kept: int, dropped: int) -> None:
        now = time.perf_counter()
        self.stages.append(Stage(name, kept, dropped, now - self.clock))
        self.clock = now

    def evidence(self, tables: MassTables, *, all_families: bool = False) -> ScoreTables:
        """Of the learning families, or of all."""
        return ScoreTables.of(tables, tables.mass, self.learning | all_families)

    def weighed(self, known: _Known) -> MassTables:
        """The tables with these strings explained, each report weighed by what is left to say."""
        return mixture_of(self.tally, self.tables, known.rows, known.mass).scores

    def text(self, row: Rows) -> str:
        return self.tables.protocol.alphabet.text(row.tobytes())

    def wanted(self, rows: Rows) -> NDArray[np.bool_]:
        if self.accept is None:
            return np.ones(len(rows), bool)
        return np.array([self.accept(self.text(row)) for row in rows], bool)

    def finished(self, evidence: ScoreTables, model: StringModel, width: int) -> PrefixBeam:
        """The likeliest finished strings of one search."""
        found, looked = search(evidence, model, width)
        self.looked += looked
        found = found.some(np.argsort(-found.odds)[:MOST_CANDIDATES])
        return found.some(self.wanted(found.rows))


@dataclass(frozen=True, eq=False)
class _Known:
    """Strings found while learning: rows, masses, log-odds, and whether each was tested."""

    rows: Rows
    mass: NDArray[np.float64]
    odds: NDArray[np.float64]
    tested: NDArray[np.bool_]

    def __len__(self) -> int:
        return len(self.rows)

    def some(self, chosen: NDArray[np.bool_]) -> _Known:
        """These of them."""
        return _Known(self.rows[chosen], self.mass[chosen], self.odds[chosen], self.tested[chosen])


def _listed(run: _Run, words: Words, alpha: float) -> Accepted:
    """Those of the analyst's strings that are there."""
    rows, weight = listed_rows(run.tables.protocol, words)
    wanted = run.wanted(rows)
    accepted = accept_listed(run.tally, run.tables, rows[wanted], weight[wanted], alpha)
    run.listed = int(wanted.sum())
    run.looked += run.listed
    run.stage("listed strings", len(accepted), run.listed - len(accepted))
    return accepted


def _learn(run: _Run, start: StringModel, listed: Accepted) -> tuple[_Known, StringModel]:
    tables, count = run.tables, len(listed)
    everywhere, _ = refit(tables, listed.rows, np.ones(tables.families, bool))
    known = _Known(listed.rows, everywhere, np.zeros(count), np.ones(count, bool))
    model = start.learnt(known.rows) if count >= ENOUGH_TO_LEARN else start
    for width in LEARNING_WIDTHS:
        weighed = run.weighed(known)
        found = run.finished(run.evidence(weighed, all_families=True), model, width)
        odds, _ = with_later(found, run.evidence(weighed), run.masses)
        likely = np.flatnonzero(odds > LIKELY)
        fresh = _without_repeats(found.rows[likely], known.rows)
        rows = np.concatenate([known.rows, found.rows[likely][fresh]])
        all_odds = np.concatenate([known.odds, odds[likely][fresh]])
        tested = np.arange(len(rows)) < count
        mass, error = refit(tables, rows, run.learning, end_levels(tables, rows), tested)
        before = len(known)
        known = _Known(rows, mass, all_odds, tested).some(tested | (mass > CLEAR * error))
        run.stage(f"learn, width {width}", len(known), len(rows) - len(known))
        if len(known) >= ENOUGH_TO_LEARN:
            model = start.learnt(known.rows)
        if len(known) <= before:
            break
    return known, model


def _without_repeats(rows: Rows, *known: Rows) -> NDArray[np.bool_]:
    seen = {row.tobytes() for some in known for row in some}
    return np.array([row.tobytes() not in seen for row in rows], bool)


def _confirm(run: _Run, known: _Known, alpha: float) -> tuple[_Known, Accepted]:
    """Test those of the known strings that are sure to pass if they are true.

    A string that was tested may be looked at everywhere: its mass can be had from all reports, and
    what is removed with it is removed cleanly from strings that begin alike.
    """
    tables, ends = run.tables, end_levels(run.tables, known.rows)
    residual = replace(tables, mass=tables.without(known.rows, known.mass))
    heavy = ~known.tested & (known.mass * _roots(run, tables, ends) > SURE)
    p = np.ones(len(known))
    for here, test in _tests(run, residual, ends):
        for i in here[heavy[here]]:
            p[i] = test.p_value_put_back(known.rows[i], float(known.mass[i]))
    each = alpha / max(int(heavy.sum()), 1)
    passed = heavy & (p <= each)
    run.refused = known.rows[heavy & ~passed]
    accepted = Accepted(known.rows[passed], p[passed], np.full(int(passed.sum()), each))
    kept, tested = passed | ~heavy, passed | known.tested
    known = replace(known, tested=tested).some(kept)
    mass, _ = refit(tables, known.rows, run.learning, ends[kept], known.tested)
    run.stage("confirm", len(accepted), int(heavy.sum()) - len(accepted))
    return replace(known, mass=mass), accepted


def _roots(run: _Run, tables: MassTables, level: NDArray[np.int64]) -> NDArray[np.float64]:
    """float64[n]: the expected test statistic, per unit of mass, of strings that end there."""
    count = tables.count[:, ~run.learning].sum(axis=1)
    later = np.append(count[::-1].cumsum()[::-1], 0)[1:]
    return np.asarray(np.sqrt(later[level] / tables.noise))


def _tests(
    run: _Run, tables: MassTables, level: NDArray[np.int64]
) -> Iterator[tuple[NDArray[np.int64], HashTest]]:
    """For strings that end at these levels: which of them each test is for."""
    families = tuple(np.flatnonzero(~run.learning).tolist())
    for at in np.unique(level):
        later = tuple(range(int(at) + 1, tables.levels))
        if later:
            yield np.flatnonzero(level == at), HashTest(tables, tables.mass, later, families)


def _p_values(
    run: _Run, tables: MassTables, rows: Rows, level: NDArray[np.int64]
) -> NDArray[np.float64]:
    """float64[n], for strings that are not explained in these tables."""
    p = np.ones(len(rows))
    for here, test in _tests(run, tables, level):
        p[here] = test.p_values(rows[here])
    return p


def _test(run: _Run, known: _Known, model: StringModel, alpha: float) -> Accepted:
    """Search for what is left, and test it and the known strings that were not tested yet."""
    weighed = run.weighed(known)
    found = run.finished(run.evidence(weighed, all_families=True), model, WIDTH)
    found = found.some(_without_repeats(found.rows, known.rows, run.refused))
    odds, mass = with_later(found, run.evidence(weighed), run.masses)
    run.stage(f"search, width {WIDTH}", len(found), run.looked - len(found))
    # A known string that was not tested must not have had a part in its own test, nor in the masses
    # of others: it is tested where only those that were are explained.
    sure, rest = known.some(known.tested), known.some(~known.tested)
    everywhere, _ = refit(run.tables, sure.rows, np.ones(run.tables.families, bool))
    others, ends = run.weighed(replace(sure, mass=everywhere)), end_levels(run.tables, rest.rows)
    p = np.concatenate(
        [
            _p_values(run, weighed, found.rows, found.level),
            _p_values(run, others, rest.rows, ends),
        ]
    )
    z = np.concatenate(
        [mass * _roots(run, weighed, found.level), rest.mass * _roots(run, others, ends)]
    )
    allowed = allowances(np.concatenate([odds, rest.odds]), z, alpha)
    accepted = p <= allowed
    run.stage("test", int(accepted.sum()), int((~accepted).sum()))
    rows = np.concatenate([found.rows, rest.rows])
    return Accepted(rows[accepted], p[accepted], allowed[accepted])


def _report(run: _Run, found: Accepted, model: StringModel, alpha: float) -> Discovery:
    tables, rows = run.tables, found.rows
    mass, error = refit(tables, rows, np.ones(tables.families, bool))
    order = np.argsort(-mass)
    rows, mass, error = rows[order], mass[order], error[order]
    run.stage("refit", len(rows), 0)
    reports = int(tables.count.sum())
    nats = float(np.median(model.code(rows))) if len(rows) else _typical_code(tables)
    whole, spread = float(mass.sum()), float(np.sqrt((error**2).sum()))
    reach = Z95 * spread
    return Discovery(
        strings=tuple(run.text(row) for row in rows), symbols=rows,
        estimate=mass, standard_error=error,
        low=np.clip(mass - Z95 * error, 0, 1), high=np.clip(mass + Z95 * error, 0, 1),
        p_value=found.p_value[order], evidence=mass / np.maximum(error, 1e-300),
        level=found.allowed[order], evidence_name="estimate in standard errors",
        candidates=run.looked,
        correction="α over every finished string, in proportion to its odds before the test; "
        "tested on cells that had no part in finding it" + (PAID_BY_LIST if run.listed else ""),
        truncation="", stages=tuple(run.stages),
        detection_threshold=float(
            np.sqrt(tables.noise / max(reports, 1)) * np.sqrt(2 * (nats + np.log(1 / alpha)))
        ),
        mass_found=Measured(whole, spread, whole - reach, whole + reach),
        mass_unexplained=Measured(1 - whole, spread, 1 - whole - reach, 1 - whole + reach),
        mass_at_end=mass_at_end(rows, mass, error),
        reports=reports, alpha=alpha, reading="prefixes",
    )  # fmt: skip


def _typical_code(tables: MassTables) -> float:
    """Nats of a string of half the greatest length, every character as likely as another."""
    protocol = tables.protocol
    return float(np.log(len(protocol.alphabet.content) + 1) * protocol.max_length / 2)
