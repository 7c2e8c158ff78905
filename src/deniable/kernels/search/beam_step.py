"""One step of a beam search: every partial string extended by every gram, the best kept."""

from __future__ import annotations

import numpy as np

from deniable.kernels.array_types import Int32s, Int64s, Singles
from deniable.kernels.compiled import compiled

SPARE = 4


@compiled
def extend(
    score: Singles,
    chosen: Int32s,
    prior: Singles,
    gain: Singles,
    start: Int64s,
    width: int,
    best: Singles,
    parent: Int64s,
    child: Int32s,
) -> int:
    """Write the `width` best extensions, unordered; return how many there are.

    score : float32[B] of the partial strings; chosen : int32[B, D], their grams at the D positions
    visited; prior : float32[A] of the grams at the next position; gain : float32[rows, A], what
    each earlier gram adds, position d's grams from row start[d]; minus infinity where two
    grams exclude each other;
    best, parent, child : [SPARE * width], room to work in and for the answer.
    """
    items, visited = chosen.shape
    grams = len(prior)
    total = np.empty(grams, np.float32)
    most = np.empty(len(gain), np.float32)
    for r in range(len(gain)):
        most[r] = gain[r].max()
    highest = prior.max()
    least = np.float32(-np.inf)
    count = 0
    for i in range(items):
        base = score[i]
        bound = base + highest
        for d in range(visited):
            bound += most[start[d] + chosen[i, d]]
        # Nothing that follows from this one can be among the best.
        if bound <= least:
            continue
        for a in range(grams):
            total[a] = base + prior[a]
        for d in range(visited):
            row = gain[start[d] + chosen[i, d]]
            for a in range(grams):
                total[a] += row[a]
        for a in range(grams):
            if total[a] > least:
                best[count] = total[a]
                parent[count] = i
                child[count] = a
                count += 1
                if count == len(best):
                    count, least = _compact(best, parent, child, count, width)
    if count > width:
        count, least = _compact(best, parent, child, count, width)
    return count


@compiled
def _compact(
    best: Singles, parent: Int64s, child: Int32s, count: int, width: int
) -> tuple[int, np.float32]:
    """Keep the `width` largest; return how many are left and the smallest of them."""
    least = np.partition(best[:count], count - width)[count - width]
    kept = 0
    # Ties with the smallest are kept only while there is room.
    room = width - np.sum(best[:count] > least)
    for i in range(count):
        take = best[i] > least
        if best[i] == least and room > 0:
            take = True
            room -= 1
        if take:
            best[kept], parent[kept], child[kept] = best[i], parent[i], child[i]
            kept += 1
    return kept, least
