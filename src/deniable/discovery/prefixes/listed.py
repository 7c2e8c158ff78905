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

from dataclasses import replace

import numpy as np
from scipy.stats import norm

from deniable.discovery.prefixes.search import end_levels, followed
from deniable.discovery.shared.mixture import Mixture
from deniable.discovery.shared.run import spend_in_rounds
from deniable.discovery.shared.string_models import Words, weights_of
from deniable.discovery.shared.strings import Rows
from deniable.discovery.shared.tables import MassTables
from deniable.discovery.shared.testing import PlannedTests, TableTests
from deniable.inference.power.cutoffs import cutoff_height, cutoffs_at
from deniable.kernels.array_types import Floats
from deniable.protocols import Prefixes


def listed_rows(protocol: Prefixes, words: Words) -> tuple[Rows, Floats]:
    """Return the listed strings that a client can hold, u8[n, M], and their weights, float64[n]."""
    length = protocol.max_length
    weight = weights_of(protocol.alphabet, words, length)
    rows = np.frombuffer(b"".join(weight), np.uint8).reshape(len(weight), length)
    return rows, np.array(list(weight.values()))


def accept_listed(tables: MassTables, rows: Rows, weight: Floats, alpha: float) -> TableTests:
    """Return the strings that are present; any of them is false with probability at most α."""
    accepted, height = TableTests.none(rows.shape[1]), np.inf

    def accept_at(_: str, alpha: float) -> int:
        nonlocal accepted, rows, weight, height
        if not len(rows):
            return 0
        mass, _error = tables.fit(accepted.rows)
        scores = Mixture.of(tables, accepted.rows, mass).scores
        odds, mass = followed(scores.evidence(), rows, weight)
        ends, families = end_levels(scores.tally, rows), range(scores.tally.families)
        tests = PlannedTests.of(scores, rows, ends, families)
        z, p_value = tests.z(mass), tests.p_values()
        height = cutoff_height(odds, z, alpha)
        cutoff = cutoffs_at(height, odds, z)
        left = p_value > cutoff
        accepted = TableTests.joined(
            (accepted, tests.passed(p_value, cutoff, odds, mass, 0 * mass))
        )
        rows, weight = rows[left], weight[left]
        return int((~left).sum())

    spend_in_rounds(alpha, accept_at)
    # The last round is the easiest, also for strings that were accepted before. The odds come from
    # reports of proper prefixes, which have no part in the estimate.
    last = cutoffs_at(height, accepted.odds, accepted.expected * np.sqrt(accepted.precision))
    easier = np.minimum(norm.isf(last) / norm.isf(accepted.cutoff), 1.0)
    fixed = np.zeros(len(accepted))
    return replace(accepted, height=accepted.height * easier, expected=fixed)
