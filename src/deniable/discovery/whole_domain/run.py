"""Discovery of whole strings: every string of the domain is a candidate.

If all strings that a client could hold can be scored, up to 10¹⁰, there is no need to search.
Clients report whole strings only, with all of ε, and the evidence for every string is added up. No
string can be lost at a short prefix, no client is spent on prefixes, and no reports are reserved
for choosing.

1. *Look* at every string of the domain once; keep the few million with the most evidence.
2. *Rounds*: test those, accept some, fit them as a mixture (see `mixture`), and test again: the
   more is explained, the less noise is left. Stop when a round accepts nothing.
3. The last round has the remainder of α, which is nearly all of it.

**False strings.** A round accepts string s if its p-value is at most α_r·w_s, where w sums to at
most 1 over the whole domain and the α_r sum to at most α. If no client holds s, its cells are as
good as random, given all reports and all strings that are held. As long as nothing false was
accepted, the tables, weights and α_r of the round depend on nothing else. Hence its p-value is
exact (see `testing`), the first false string appears in round r with probability at most α_r, and
any false string with probability at most α. Which strings are kept only decides what is not tested.
"""

from __future__ import annotations

import numpy as np

from deniable.discovery.shared.mixture import Mixture
from deniable.discovery.shared.run import (
    DiscoveryRun,
    SearchSummary,
    mass_at_end,
    spend_in_rounds,
)
from deniable.discovery.shared.selection import Cut, SelectedStrings
from deniable.discovery.shared.string_models import Words, string_model
from deniable.discovery.shared.strings import Rows, StringTests
from deniable.discovery.shared.tables import MassTables
from deniable.discovery.shared.tally import tally_of
from deniable.discovery.shared.testing import HashTest, LatticeTables
from deniable.discovery.whole_domain.string_domain import StringDomain, StringWeights
from deniable.errors import InputError
from deniable.inference.power.half_found import half_found
from deniable.kernels.array_types import Floats
from deniable.protocols import Prefixes
from deniable.results import Discovery

MAX_STRINGS = 10**10
"""Strings of a domain; they take ten minutes of one core."""
MAX_KEPT = 4_000_000
MAX_P_VALUE = 1e-4
"""No p-value above this is accepted, whatever the weight of the string."""


def discover_whole(run: DiscoveryRun[Prefixes], words: Words = ()) -> Discovery:
    """Find the strings of a question whose clients report whole strings.

    α is divided over all strings, also over those that `run.accept` refuses.

    words : words that strings may contain; such strings get a greater share of α
    """
    protocol = run.protocol
    tally = tally_of(run.source, run.question, protocol, run.executor)
    domain = StringDomain(len(protocol.alphabet.content), protocol.max_length)
    if domain.strings > MAX_STRINGS:
        raise InputError(
            f"the domain has {float(domain.strings):.3g} strings, more than the {MAX_STRINGS:,} "
            "that can all be tested: ask for several prefix lengths (levels), or reduce max_length"
        )
    if tally.families * np.log(tally.cells) < np.log(domain.strings / run.alpha):
        raise InputError(
            f"{tally.families} families of hash functions (cohorts of a Bloom filter) with "
            f"{tally.cells:,} cells are too few to tell {domain.strings:,} strings apart"
        )
    run.candidates, run.reports = domain.strings, int(tally.reports.sum())
    run.stage("tally", run.reports, 0)
    rounds = _Rounds(run, MassTables.of(tally), domain, words)
    rounds.look()
    return rounds.result(spend_in_rounds(run.alpha, rounds.accept_at))


class _Rounds:
    """What the rounds share: strings that were kept, and strings that were accepted.

    known, test : strings accepted before the present round, and the test that it makes
    """

    def __init__(
        self, run: DiscoveryRun[Prefixes], tables: MassTables, domain: StringDomain, words: Words
    ) -> None:
        self.run, self.tables, self.domain = run, tables, domain
        self.model = string_model(run.protocol.alphabet, words, domain.length)
        self.found = StringTests.none(domain.length)
        self.kept = self.found.rows
        self.mixture = Mixture.of(tables, self.found.rows, np.zeros(0))
        self.known, self.test = self.found.rows, self.next_test()

    def next_test(self) -> HashTest:
        """Return the test of strings that are not in the mixture, by all families."""
        families = tuple(range(self.tables.tally.families))
        return HashTest(LatticeTables(self.mixture.scores, (0,), families))

    def look(self) -> None:
        """Keep the strings of the domain with the most evidence."""
        strings = self.domain.strings
        least = -np.inf
        if strings > MAX_KEPT:
            least = float(self.test.evidence_at(MAX_KEPT / strings))
        self.kept = self.domain.above(self.mixture.scores.evidence(), least)
        self.run.stage("look at every string", len(self.kept), strings - len(self.kept))

    def accept_at(self, name: str, alpha: float) -> int:
        """Accept strings at this share of α, and refit the mixture; return how many are new."""
        self.known, self.test = self.found.rows, self.next_test()
        test, evidence = self.test, self.mixture.scores.evidence()
        sums = evidence.sums(0, self.kept)
        high = np.flatnonzero(sums >= test.evidence_at(MAX_P_VALUE))
        rows = self.kept[high]
        tests = StringTests(rows, test.p_values(rows), self.cutoffs(rows, alpha))
        new = high[tests.passed]
        if len(new):
            self.found = StringTests.joined((self.found, tests.take(tests.passed)))
            start = np.concatenate([self.mixture.mass, sums[new] / evidence.precision[0]])
            self.mixture = Mixture.of(self.tables, self.found.rows, start).fitted()
            self.kept = np.delete(self.kept, new, axis=0)
        sd = 1 / np.sqrt(test.precision)
        self.run.stage(name, len(new), len(high) - len(new), f"standard deviation {sd:.3g}")
        return len(new)

    def cutoffs(self, rows: Rows, alpha: float) -> Floats:
        """float64[n]: the largest p-values at which this round accepts strings."""
        weights = StringWeights.after(self.domain.strings, self.model, self.known)
        return np.minimum(alpha * np.exp(weights.log(rows)), MAX_P_VALUE)

    def cut(self, error: Floats, last: float) -> Cut:
        """Return what strings had to exceed: the cut-off of the last round, which is the easiest.

        That round tests the same reports that give the estimates, but strings that it accepts are
        not explained yet, so that there is more noise. A string that was known before would have
        been tested with weights that others taught: its own are larger, and its cut too low.

        error : float64[n], standard errors of the masses
        """
        noise = self.next_test().precision / max(self.test.precision, 1e-300)
        weights = StringWeights.after(self.domain.strings, self.model, self.known)
        before = weights.log_left_out(self.model, self.known)
        log_weight = np.concatenate([before, weights.log(self.found.rows[len(self.known) :])])
        height = self.test.mass_at(np.minimum(last * np.exp(log_weight), MAX_P_VALUE))
        return Cut(height, error * np.sqrt(max(noise, 1.0)), np.ones(len(error)))

    def result(self, last: float) -> Discovery:
        """Return the result; last : the share of α of the last round."""
        run, mixture = self.run, self.mixture
        wanted = np.flatnonzero(run.accepted(self.found.rows))
        found, error = self.found.take(wanted), np.sqrt(np.diag(mixture.covariance))
        cut = self.cut(error, last).take(wanted)
        total_error = float(np.sqrt(mixture.covariance[np.ix_(wanted, wanted)].sum()))
        strings = SelectedStrings(mixture.mass[wanted], error[wanted], cut, total_error)
        summary = SearchSummary(
            reading="whole strings",
            correction="α over every string of the domain, in rounds that sum to it; exact "
            "p-values",
            detection_threshold=self.threshold(last),
            mass_at_end=mass_at_end(found.rows, strings),
        )
        return run.result(found, strings, strings.z, summary)

    def threshold(self, alpha: float) -> float:
        """Return the mass at which half of the strings like the discovered ones are found.

        alpha : the share of α of the last round
        """
        test, scores = self.next_test(), self.mixture.scores
        weights = StringWeights.after(self.domain.strings, self.model, self.found.rows)
        log_weight = weights.log_of_unseen(self.model, self.found.rows)
        cutoff = np.minimum(alpha * np.exp(log_weight), MAX_P_VALUE)
        needed = test.evidence_at(cutoff)
        spread = float(np.sqrt(scores.entry.var(axis=2, dtype=np.float64).sum()))
        return half_found(needed, test.precision, spread)
