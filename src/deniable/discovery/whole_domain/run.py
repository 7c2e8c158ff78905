"""Discovery of whole strings: every string of the domain is a candidate.

Where all strings that could be held can be looked at, 10⁹ or so, nobody needs to search: clients
report whole strings only, with all of ε, and every string's evidence is added up. There is no level
to survive, no client is spent on prefixes, and no report only chooses.

1. *Look* at every string of the domain once; keep the few millions with the most evidence.
2. *Rounds*: test those, accept, fit what was accepted as a mixture (see `mixture`), and test again:
   the more is explained, the less noise is left. Until a round accepts nothing.
3. The last test has what is left of α, nearly all.

**False strings.** A round accepts string s if its p-value is at most α_r·w_s, with w summing to at
most 1 over the whole domain and α_r summing to at most α. If no client holds s, its cells are as
good as random given all reports and all strings that are held; and as long as nothing false was
accepted, the round's tables, weights and α_r depend on nothing else. Hence its p-value is exact
(see `testing`), the first false string appears in round r with probability at most α_r, and any at
all with probability at most α. Which strings were kept only decides what is not tested.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from scipy.stats import norm

from deniable.analysis.source import Source
from deniable.compute.backend import Executor
from deniable.discovery.shared.character_model import CharacterModel
from deniable.discovery.shared.evidence import ScoreTables
from deniable.discovery.shared.lexicon import Lexicon, StringModel, Words
from deniable.discovery.shared.refit import Z95, mass_at_end
from deniable.discovery.shared.tables import MassTables, Rows, debiased
from deniable.discovery.shared.tally import Tally, tally_of
from deniable.discovery.shared.testing import HashTest
from deniable.discovery.whole_domain.mixture import Mixture, fitted
from deniable.discovery.whole_domain.string_domain import StringDomain
from deniable.discovery.whole_domain.string_weights import StringWeights
from deniable.errors import InputError
from deniable.results import Discovery, Measured, Stage
from deniable.survey import Question

MOST_STRINGS = 10**10
"""Ten minutes of one core."""
KEPT = 4_000_000
EARLY_ROUNDS = 6
EARLY_SHARE = 0.02
"""Of α, for each round before the last."""
LOOSEST = 1e-4
"""No p-value above this is accepted, whatever the string's weight."""


Accept = Callable[[str], bool]


def discover_whole(
    source: Source,
    question: Question,
    *,
    accept: Accept | None = None,
    alpha: float = 0.05,
    words: Words = (),
    executor: Executor | None = None,
) -> Discovery:
    """The strings of a question whose clients report whole strings.

    accept : keeps only strings for which it is true; all strings are paid for nevertheless
    words : of which strings may be made: such strings get more of α
    """
    started = time.perf_counter()
    tally = tally_of(source, question, executor)
    alphabet, length = tally.protocol.alphabet, tally.protocol.max_length
    domain, tables = StringDomain(len(alphabet.content), length), debiased(tally)
    if domain.strings > MOST_STRINGS:
        raise InputError(
            f"expected at most {MOST_STRINGS:,} strings that can be held, to look at each; got "
            f"{float(domain.strings):.3g}: ask for several levels, or a shorter max_length"
        )
    if tables.families * np.log(tables.cells) < np.log(domain.strings / alpha):
        raise InputError(
            f"expected families (cohorts, of a Bloom filter) enough to tell {domain.strings:,} "
            f"strings apart, got {tables.families} of {tables.cells:,} cells"
        )
    model: StringModel = CharacterModel.uniform(alphabet)
    if words:
        model = Lexicon.of_words(alphabet, words, length)
    run = _Run(tally, tables, domain, model, started)
    return _report(run, accept, alpha, _accept(run, alpha))


@dataclass(eq=False)
class _Run:
    """What the rounds share: the tally, strings that were kept, strings that were accepted."""

    tally: Tally
    tables: MassTables
    domain: StringDomain
    model: StringModel
    clock: float
    stages: list[Stage] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.kept: Rows = np.empty((0, self.domain.length), np.uint8)
        self.p_value, self.level = np.zeros(0), np.zeros(0)
        self.mixture: Mixture = fitted(self.tally, self.tables, self.kept, np.zeros(0))
        self.reports = int(self.tally.reports.sum())

    def stage(self, name: str, kept: int, dropped: int, note: str = "") -> None:
        now = time.perf_counter()
        self.stages.append(Stage(name, kept, dropped, now - self.clock, note))
        self.clock = now

    def test(self) -> tuple[HashTest, ScoreTables]:
        """Of strings that are not in the mixture, by all families."""
        scores = self.mixture.scores
        test = HashTest(scores, scores.mass, (0,), tuple(range(scores.families)))
        return test, ScoreTables.of(scores, scores.mass, np.ones(scores.families, bool))

    def look(self) -> None:
        """Keep the strings of the domain with the most evidence."""
        test, evidence = self.test()
        strings = self.domain.strings
        least = test.evidence_at(KEPT / strings) if strings > KEPT else -np.inf
        self.kept = self.domain.above(evidence, least)
        self.stage("look at every string", len(self.kept), strings - len(self.kept))

    def round(self, name: str, alpha: float) -> int:
        """Accept strings at this much of α, and fit the mixture with them. How many were new."""
        test, evidence = self.test()
        weights = StringWeights.after(self.domain.strings, self.model, self.mixture.rows)
        sums = evidence.sums(0, self.kept)
        high = np.flatnonzero(sums >= test.evidence_at(LOOSEST))
        p = test.p_values(self.kept[high])
        level = np.minimum(alpha * np.exp(weights.log(self.kept[high])), LOOSEST)
        passed = p <= level
        new = high[passed]
        if len(new):
            rows = np.concatenate([self.mixture.rows, self.kept[new]])
            start = np.concatenate([self.mixture.mass, sums[new] / evidence.precision[0]])
            self.mixture = fitted(self.tally, self.tables, rows, start)
            self.p_value = np.concatenate([self.p_value, p[passed]])
            self.level = np.concatenate([self.level, level[passed]])
            self.kept = np.delete(self.kept, new, axis=0)
        sd = 1 / np.sqrt(test.precision)
        self.stage(name, len(new), len(high) - len(new), f"standard deviation {sd:.3g}")
        return len(new)


def _accept(run: _Run, alpha: float) -> float:
    """Look at every string and make the rounds. What the last one had of α."""
    run.stage("tally", run.reports, 0)
    left = alpha
    if run.reports:
        run.look()
        for number in range(1, EARLY_ROUNDS + 1):
            left -= EARLY_SHARE * alpha
            if not run.round(f"round {number}", EARLY_SHARE * alpha):
                break
        run.round("last round", left)
    return left


def _report(run: _Run, accept: Accept | None, alpha: float, last: float) -> Discovery:
    mixture, alphabet = run.mixture, run.tally.protocol.alphabet
    strings = [alphabet.text(row.tobytes()) for row in mixture.rows]
    wanted = [int(i) for i in np.argsort(-mixture.mass) if accept is None or accept(strings[i])]
    mass, covariance = mixture.mass[wanted], mixture.covariance[np.ix_(wanted, wanted)]
    error, spread = np.sqrt(np.diag(covariance)), float(np.sqrt(covariance.sum()))
    whole, reach = float(mass.sum()), Z95 * spread
    sd = np.sqrt(mixture.scores.noise / max(int(mixture.scores.count.sum()), 1))
    return Discovery(
        strings=tuple(strings[i] for i in wanted), symbols=mixture.rows[wanted],
        estimate=mass, standard_error=error,
        low=np.clip(mass - Z95 * error, 0, 1), high=np.clip(mass + Z95 * error, 0, 1),
        p_value=run.p_value[wanted], evidence=mass / np.maximum(error, 1e-300),
        level=run.level[wanted], evidence_name="estimate in standard errors",
        candidates=run.domain.strings,
        correction="α over every string of the domain, in rounds that sum to it; exact p-values",
        truncation="", stages=tuple(run.stages),
        detection_threshold=float(norm.isf(last / run.domain.strings) * sd),
        mass_found=Measured(whole, spread, whole - reach, whole + reach),
        mass_unexplained=Measured(1 - whole, spread, 1 - whole - reach, 1 - whole + reach),
        mass_at_end=mass_at_end(mixture.rows[wanted], mass, error), reports=run.reports,
        alpha=alpha, reading="whole strings",
    )  # fmt: skip
