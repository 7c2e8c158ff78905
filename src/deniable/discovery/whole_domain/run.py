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

import numpy as np
from scipy.stats import norm

from deniable.discovery.shared.lexicon import Words, string_model
from deniable.discovery.shared.mixture import Mixture
from deniable.discovery.shared.run import (
    Account,
    DiscoveryRun,
    StringEstimates,
    mass_at_end,
    spend_in_rounds,
)
from deniable.discovery.shared.strings import FoundStrings
from deniable.discovery.shared.tables import MassTables
from deniable.discovery.shared.tally import tally_of
from deniable.discovery.shared.testing import HashTest
from deniable.discovery.whole_domain.string_domain import StringDomain
from deniable.discovery.whole_domain.string_weights import StringWeights
from deniable.errors import InputError
from deniable.protocols import Prefixes
from deniable.results import Discovery

MOST_STRINGS = 10**10
"""Ten minutes of one core."""
KEPT = 4_000_000
LOOSEST = 1e-4
"""No p-value above this is accepted, whatever the string's weight."""


def discover_whole(run: DiscoveryRun[Prefixes], words: Words = ()) -> Discovery:
    """Find the strings of a question whose clients report whole strings.

    All strings share α, also those that `run.accept` refuses. words : of which strings may be made:
    such strings get more of α
    """
    protocol = run.protocol
    tally = tally_of(run.source, run.question, protocol, run.executor)
    domain = StringDomain(len(protocol.alphabet.content), protocol.max_length)
    if domain.strings > MOST_STRINGS:
        raise InputError(
            f"expected at most {MOST_STRINGS:,} strings that can be held, to look at each; got "
            f"{float(domain.strings):.3g}: ask for several levels, or a shorter max_length"
        )
    if tally.families * np.log(tally.cells) < np.log(domain.strings / run.alpha):
        raise InputError(
            f"expected families (cohorts, of a Bloom filter) enough to tell {domain.strings:,} "
            f"strings apart, got {tally.families} of {tally.cells:,} cells"
        )
    run.candidates, run.reports = domain.strings, int(tally.reports.sum())
    run.stage("tally", run.reports, 0)
    rounds, left = _Rounds(run, MassTables.of(tally), domain, words), run.alpha
    if run.reports:
        rounds.look()
        left = spend_in_rounds(run.alpha, rounds.accept_at)
    return _report(run, rounds.found, rounds.mixture, left)


class _Rounds:
    """What the rounds share: strings that were kept, and strings that were found."""

    def __init__(
        self, run: DiscoveryRun[Prefixes], tables: MassTables, domain: StringDomain, words: Words
    ) -> None:
        self.run, self.tables, self.domain = run, tables, domain
        self.model = string_model(run.protocol.alphabet, words, domain.length)
        self.found = FoundStrings.none(domain.length)
        self.kept = self.found.rows
        self.mixture = Mixture.of(tables, self.found.rows, np.zeros(0))

    def test(self) -> HashTest:
        """Return the test of strings that are not in the mixture, by all families."""
        return HashTest(self.mixture.scores, (0,), tuple(range(self.tables.tally.families)))

    def look(self) -> None:
        """Keep the strings of the domain with the most evidence."""
        strings = self.domain.strings
        least = self.test().evidence_at(KEPT / strings) if strings > KEPT else -np.inf
        self.kept = self.domain.above(self.mixture.scores.evidence(), least)
        self.run.stage("look at every string", len(self.kept), strings - len(self.kept))

    def accept_at(self, name: str, alpha: float) -> int:
        """Accept strings at this share of α, and fit the mixture with them; return how many."""
        test, evidence = self.test(), self.mixture.scores.evidence()
        weights = StringWeights.after(self.domain.strings, self.model, self.found.rows)
        sums = evidence.sums(0, self.kept)
        high = np.flatnonzero(sums >= test.evidence_at(LOOSEST))
        rows = self.kept[high]
        cutoff = np.minimum(alpha * np.exp(weights.log(rows)), LOOSEST)
        tested = FoundStrings(rows, test.p_values(rows), cutoff)
        passed = tested.p_value <= tested.cutoff
        new = high[passed]
        if len(new):
            self.found = FoundStrings.joined((self.found, tested.take(passed)))
            start = np.concatenate([self.mixture.mass, sums[new] / evidence.precision[0]])
            self.mixture = Mixture.of(self.tables, self.found.rows, start).fitted()
            self.kept = np.delete(self.kept, new, axis=0)
        sd = 1 / np.sqrt(test.precision)
        self.run.stage(name, len(new), len(high) - len(new), f"standard deviation {sd:.3g}")
        return len(new)


def _report(
    run: DiscoveryRun[Prefixes], found: FoundStrings, mixture: Mixture, last: float
) -> Discovery:
    """Return the result; `last` is what the last round had of α."""
    wanted = np.flatnonzero(run.accepted(found.rows))
    found, mass = found.take(wanted), mixture.mass[wanted]
    covariance = mixture.covariance[np.ix_(wanted, wanted)]
    error = np.sqrt(np.diag(covariance))
    account = Account(
        reading="whole strings",
        correction="α over every string of the domain, in rounds that sum to it; exact p-values",
        detection_threshold=float(norm.isf(last / run.candidates) * mixture.scores.standard_error),
        mass_at_end=mass_at_end(found.rows, mass, error),
    )
    total_error = float(np.sqrt(covariance.sum()))
    return run.result(found, StringEstimates.of_masses(mass, error, total_error), account)
