"""Test the strings that the analyst listed, before anything is searched for.

A list is chosen before anybody looks at reports, so no reports have to be reserved for choosing. A
listed string is tested on every report that holds it whole, in all families and at all prefix
lengths from its end on. Reports of its proper prefixes, which strings with the same beginning
share, set the odds from which its cut-off follows.

Tests run in rounds, as for whole domains (see `whole_domain`): test, accept, explain what was
accepted, and test again with the noise that is left. If no client holds a string, its cells from
its end on are as good as random, given the cells of its prefixes, all reports and all strings that
are held. As long as nothing false was accepted, the tables of a round depend on nothing else, and
the cut-offs sum to the round's share of α. So a false string is accepted with probability at most
α.
"""

from __future__ import annotations

import numpy as np

from deniable.discovery.prefixes.search import end_levels, followed
from deniable.discovery.shared.mixture import Mixture
from deniable.discovery.shared.run import spend_in_rounds
from deniable.discovery.shared.string_models import Words, weights_of
from deniable.discovery.shared.strings import Rows, StringTests
from deniable.discovery.shared.tables import MassTables, ScoreTables
from deniable.discovery.shared.testing import cutoffs_by_odds, p_values_and_z
from deniable.kernels.array_types import Floats
from deniable.protocols import Prefixes


def listed_rows(protocol: Prefixes, words: Words) -> tuple[Rows, Floats]:
    """Return the listed strings that a client can hold, u8[n, M], and their weights, float64[n]."""
    length = protocol.max_length
    weight = weights_of(protocol.alphabet, words, length)
    rows = np.frombuffer(b"".join(weight), np.uint8).reshape(len(weight), length)
    return rows, np.array(list(weight.values()))


def accept_listed(tables: MassTables, rows: Rows, weight: Floats, alpha: float) -> StringTests:
    """Return the strings that are present; any of them is false with probability at most α."""
    accepted = StringTests.none(rows.shape[1])

    def accept_at(_: str, alpha: float) -> int:
        nonlocal accepted, rows, weight
        if not len(rows):
            return 0
        mass, _error = tables.fit(accepted.rows)
        scores = Mixture.of(tables, accepted.rows, mass).scores
        tests = _tested(scores, rows, weight, alpha)
        accepted = StringTests.joined((accepted, tests.take(tests.passed)))
        rows, weight = rows[~tests.passed], weight[~tests.passed]
        return int(tests.passed.sum())

    spend_in_rounds(alpha, accept_at)
    return accepted


def _tested(scores: ScoreTables, rows: Rows, weight: Floats, alpha: float) -> StringTests:
    """Test all strings; their cut-offs sum to at most α."""
    odds, mass = followed(scores.evidence(), rows, weight)
    ends, families = end_levels(scores.tally, rows), range(scores.tally.families)
    p, z = p_values_and_z(scores, rows, mass, ends, families)
    return StringTests(rows, p, cutoffs_by_odds(odds, z, alpha))
