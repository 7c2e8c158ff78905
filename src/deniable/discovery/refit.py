"""Masses of known strings, together: each from the levels that hold it whole, others removed."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from deniable.discovery.tables import Rows, Tables
from deniable.protocols.alphabet import PAD

ROUNDS = 30
CLOSE = 1e-7


def refit(
    tables: Tables, rows: Rows, families: NDArray[np.bool_]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """float64[n], twice: masses and their standard errors, from these families' reports.

    Cells collide seldom, so correcting each string by what the others leave in its cells converges
    in a few rounds. A level that is not longer than a string may hold others that begin alike.
    """
    if not len(rows):
        return np.zeros(0), np.zeros(0)
    length = (rows != PAD).sum(axis=1)
    lengths, longest = tables.lengths, rows.shape[1]
    whole = [(at > length) | (at == longest) for at in lengths]
    levels = [i for i in range(tables.levels) if whole[i].any()]
    positions = {level: tables.positions(level, rows) for level in levels}
    places = [(level, c) for level in levels for c in np.flatnonzero(families)]
    weight = sum((tables.count[p] * whole[p[0]] for p in places), np.zeros(len(rows)))
    weight = np.maximum(weight, 1)
    mass = np.zeros(len(rows))
    for _ in range(ROUNDS):
        left = np.zeros(len(rows))
        for level, family in places:
            cell = positions[level][family]
            rest = tables.mass[level, family] - tables.effect(cell, mass)
            left += tables.count[level, family] * whole[level] * rest[cell]
        step = left / weight
        mass += step
        if np.abs(step).max() < CLOSE:
            break
    variance = tables.noise + tables.own * np.clip(mass, 0, 1)
    return mass, np.sqrt(variance / weight)
