"""Strings that the analyst listed: tested before anything is searched for.

A list is chosen before anybody looks at reports, so nothing has to be set aside for choosing: a
listed string is tested on every report that holds it whole, of all families and of all levels from
its end on. Reports of its own prefixes, which strings that begin alike share, set the odds from
which its allowance follows.

In rounds, as for whole domains (see `whole_domain`): test, accept, explain what was accepted, test
again with the noise that is left. If no client holds a string, its cells from its end on are as
good as random given its prefixes' cells, all reports and all strings that are held; as long as
nothing false was accepted a round's tables depend on nothing else, and allowances sum to the
round's share of α. So a false string is accepted with probability at most α.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from deniable.discovery.prefixes.search import end_levels, followed, grid
from deniable.discovery.shared.evidence import ScoreTables
from deniable.discovery.shared.lexicon import Words, weights_of
from deniable.discovery.shared.refit import refit
from deniable.discovery.shared.tables import MassTables, Rows
from deniable.discovery.shared.tally import Tally
from deniable.discovery.shared.testing import Accepted, HashTest, allowances
from deniable.discovery.whole_domain.mixture import mixture_of
from deniable.protocols import Prefixes

EARLY_ROUNDS = 6
EARLY_SHARE = 0.02
"""Of the list's share of α, for each round before the last."""


def listed_rows(protocol: Prefixes, words: Words) -> tuple[Rows, NDArray[np.float64]]:
    """u8[n, M], float64[n]: the strings that can be held as symbols, and their weights."""
    length = protocol.max_length
    weight = weights_of(protocol.alphabet, words, length)
    rows = np.frombuffer(b"".join(weight), np.uint8).reshape(len(weight), length)
    return rows, np.array(list(weight.values()))


def accept_listed(
    tally: Tally, tables: MassTables, rows: Rows, weight: NDArray[np.float64], alpha: float
) -> Accepted:
    """Those of the strings that are there: one that is not is among them with probability ≤ α."""
    everywhere = np.ones(tables.families, bool)
    accepted, left = Accepted(rows[:0], np.zeros(0), np.zeros(0)), alpha

    def round_(alpha: float) -> int:
        """Accept at this much of α. How many were new."""
        nonlocal accepted, rows, weight
        if not len(rows):
            return 0
        mass, _ = refit(tables, accepted.rows, everywhere)
        weighed = mixture_of(tally, tables, accepted.rows, mass).scores
        p, allowed = _tested(weighed, rows, weight, alpha)
        passed = p <= allowed
        new = Accepted(rows[passed], p[passed], allowed[passed])
        accepted = Accepted.joined((accepted, new))
        rows, weight = rows[~passed], weight[~passed]
        return len(new)

    for _ in range(EARLY_ROUNDS):
        left -= EARLY_SHARE * alpha
        if not round_(EARLY_SHARE * alpha):
            break
    round_(left)
    return accepted


def _tested(
    tables: MassTables, rows: Rows, weight: NDArray[np.float64], alpha: float
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """float64[n], twice: p-values, and what each may be at most."""
    everywhere, end = np.ones(tables.families, bool), end_levels(tables, rows)
    evidence = ScoreTables.of(tables, tables.mass, everywhere)
    odds, mass = followed(evidence, rows, weight, grid(tables))
    p, z = np.ones(len(rows)), np.zeros(len(rows))
    for at in np.unique(end):
        here = np.flatnonzero(end == at)
        levels = tuple(range(int(at), tables.levels))
        test = HashTest(tables, tables.mass, levels, tuple(range(tables.families)))
        p[here], z[here] = test.p_values(rows[here]), mass[here] * np.sqrt(test.precision)
    return p, allowances(odds, z, alpha)
