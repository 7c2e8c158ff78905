"""Masses of known strings, together: each from the levels that hold it whole, others removed."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from deniable.discovery.shared.strings import Floats, Rows
from deniable.discovery.shared.tables import MassTables
from deniable.protocols.alphabet import PAD

ROUNDS = 30
CLOSE = 1e-7


def refit(
    tables: MassTables, rows: Rows, readable: NDArray[np.bool_] | None = None
) -> tuple[Floats, Floats]:
    """float64[n], twice: masses and their standard errors.

    readable : bool[n, L, C], the tables that each string may be read in; None for all of them
    Cells collide seldom, so correcting each string by what the others leave in its cells converges
    in a few rounds. A level that is not longer than a string may hold others that begin alike.
    """
    if not len(rows):
        return np.zeros(0), np.zeros(0)
    length, lengths = (rows != PAD).sum(axis=1), tables.tally.lengths
    whole = (lengths > length[:, np.newaxis]) | (lengths == rows.shape[1])
    count = whole[:, :, np.newaxis] * tables.reports.astype(np.float64)
    if readable is not None:
        count *= readable
    read = np.argwhere(count.any(axis=0))
    cells = {level: tables.tally.positions(level, rows) for level in np.unique(read[:, 0])}
    weight = np.maximum(count.sum(axis=(1, 2)), 1)
    mass = np.zeros(len(rows))
    for _ in range(ROUNDS):
        left, spread = np.zeros(len(rows)), np.zeros(len(rows))
        for level, family in read:
            cell, here = cells[level][family], count[:, level, family]
            rest = tables.mass[level, family] - tables.effect(cell, mass)
            left += here * rest[cell]
            spread += here**2 * float(rest.var())
        step = left / weight
        mass += step
        if np.abs(step).max() < CLOSE:
            break
    # The cells' own spread holds the noise and collisions with strings nobody knows; the string's
    # clients add their noise, and their number varies.
    share = np.clip(mass, 0, 1)
    own = (tables.own_noise * share + share * (1 - share)) / weight
    return mass, np.sqrt(spread / weight**2 + own)
