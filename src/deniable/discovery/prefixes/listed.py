"""Strings that the analyst listed: tested before anything is searched for.

A list is chosen before anybody looks at reports, so nothing has to be set aside for choosing: a
listed string is tested on every report that holds it whole, of all families and of all levels from
its end on. Reports of its own prefixes, which strings that begin alike share, set the odds from
which its cut-off follows.

In rounds, as for whole domains (see `whole_domain`): test, accept, explain what was accepted, test
again with the noise that is left. If no client holds a string, its cells from its end on are as
good as random given its prefixes' cells, all reports and all strings that are held; as long as
nothing false was accepted a round's tables depend on nothing else, and cut-offs sum to the
round's share of α. So a false string is accepted with probability at most α.
"""

from __future__ import annotations

import numpy as np

from deniable.discovery.prefixes.refit import refit
from deniable.discovery.prefixes.search import end_levels, followed
from deniable.discovery.shared.lexicon import Words, weights_of
from deniable.discovery.shared.mixture import Mixture
from deniable.discovery.shared.run import spend_in_rounds
from deniable.discovery.shared.strings import Floats, FoundStrings, Rows
from deniable.discovery.shared.tables import MassTables, ScoreTables
from deniable.discovery.shared.testing import cutoffs_by_odds, tests_from
from deniable.protocols import Prefixes


def listed_rows(protocol: Prefixes, words: Words) -> tuple[Rows, Floats]:
    """u8[n, M], float64[n]: the strings that can be held as symbols, and their weights."""
    length = protocol.max_length
    weight = weights_of(protocol.alphabet, words, length)
    rows = np.frombuffer(b"".join(weight), np.uint8).reshape(len(weight), length)
    return rows, np.array(list(weight.values()))


def accept_listed(tables: MassTables, rows: Rows, weight: Floats, alpha: float) -> FoundStrings:
    """Return the strings that are there: a false one is among them with probability ≤ α."""
    accepted = FoundStrings.none(rows.shape[1])

    def accept_at(_: str, alpha: float) -> int:
        nonlocal accepted, rows, weight
        if not len(rows):
            return 0
        mass, _error = refit(tables, accepted.rows)
        scores = Mixture.of(tables, accepted.rows, mass).scores
        tested = _tested(scores, rows, weight, alpha)
        passed = tested.p_value <= tested.cutoff
        accepted = FoundStrings.joined((accepted, tested.take(passed)))
        rows, weight = rows[~passed], weight[~passed]
        return int(passed.sum())

    spend_in_rounds(alpha, accept_at)
    return accepted


def _tested(scores: ScoreTables, rows: Rows, weight: Floats, alpha: float) -> FoundStrings:
    """Return all strings with their p-values and cut-offs, whether they pass or not."""
    odds, mass = followed(scores.evidence(), rows, weight)
    p, z, tally = np.ones(len(rows)), np.zeros(len(rows)), scores.tally
    for here, test in tests_from(scores, end_levels(tally, rows), range(tally.families)):
        p[here], z[here] = test.p_values(rows[here]), mass[here] * np.sqrt(test.precision)
    return FoundStrings(rows, p, cutoffs_by_odds(odds, z, alpha))
