"""Masses of known strings, together: each from the levels that hold it whole, others removed."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from deniable.discovery.shared.tables import MassTables, Rows
from deniable.protocols.alphabet import PAD
from deniable.results import Measured

ROUNDS = 30
CLOSE = 1e-7
Z95 = 1.959964


def refit(
    tables: MassTables,
    rows: Rows,
    families: NDArray[np.bool_],
    ends: NDArray[np.int64] | None = None,
    free: NDArray[np.bool_] | None = None,
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """float64[n], twice: masses and their standard errors, from these families' reports.

    ends : int64[n], a level that the other families' reports may be read at too, for each string
    free : bool[n], strings that may be read everywhere
    Cells collide seldom, so correcting each string by what the others leave in its cells converges
    in a few rounds. A level that is not longer than a string may hold others that begin alike.
    """
    if not len(rows):
        return np.zeros(0), np.zeros(0)
    length = (rows != PAD).sum(axis=1)
    lengths, longest = tables.lengths, rows.shape[1]
    read: dict[tuple[int, int], NDArray[np.float64]] = {}
    positions: dict[int, NDArray[np.int32]] = {}
    for level, at in enumerate(lengths):
        whole = (at > length) | (at == longest)
        if not whole.any():
            continue
        positions[level] = tables.positions(level, rows)
        elsewhere = np.zeros(len(rows), bool) if ends is None else whole & (ends == level)
        if free is not None:
            elsewhere |= whole & free
        for family in range(tables.families):
            chosen = whole if families[family] else elsewhere
            if chosen.any():
                read[level, family] = chosen * float(tables.count[level, family])
    weight = np.maximum(sum(read.values(), np.zeros(len(rows))), 1)
    mass = np.zeros(len(rows))
    for _ in range(ROUNDS):
        left, spread = np.zeros(len(rows)), np.zeros(len(rows))
        for (level, family), count in read.items():
            cell = positions[level][family]
            rest = tables.mass[level, family] - tables.effect(cell, mass)
            left += count * rest[cell]
            spread += count**2 * float(rest.var())
        step = left / weight
        mass += step
        if np.abs(step).max() < CLOSE:
            break
    # The cells' own spread holds the noise and collisions with strings nobody knows; the string's
    # clients add their noise, and their number varies.
    share = np.clip(mass, 0, 1)
    own = (tables.own * share + share * (1 - share)) / weight
    return mass, np.sqrt(spread / weight**2 + own)


def mass_at_end(rows: Rows, mass: NDArray[np.float64], error: NDArray[np.float64]) -> Measured:
    """What found strings of full length add up to; at most, all that shorter ones leave."""
    full = rows[:, -1] != PAD
    least, most = float(mass[full].sum()), 1 - float(mass[~full].sum())
    spread, beyond = (float(np.sqrt((error[some] ** 2).sum())) for some in (full, ~full))
    low, high = max(least - Z95 * spread, 0.0), min(most + Z95 * beyond, 1.0)
    return Measured(least, spread, low, high)
