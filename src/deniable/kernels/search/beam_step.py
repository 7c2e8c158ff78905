"""One step of a beam search: extend every partial string by every n-gram, and keep the best."""

from __future__ import annotations

import numpy as np

from deniable.kernels.array_types import Int32s, Int64s, Singles
from deniable.kernels.compiled import compiled

BUFFER_FACTOR = 4
"""Length of the buffers of `extend`, as a multiple of the width of the beam."""


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
    """Write the `width` best extensions, in any order, and return their number.

    score : float32[B], scores of the partial strings; chosen : int32[B, D], their n-grams at the D
    positions visited; prior : float32[A], scores of the n-grams at the next position;
    gain : float32[rows, A], what each earlier n-gram adds; those of position d start at row
    start[d]; minus infinity if two n-grams exclude each other;
    best, parent, child : [BUFFER_FACTOR * width], buffers; their beginnings receive score, partial
    string and n-gram of the extensions.
    """
    items, visited = chosen.shape
    grams = len(prior)
    total = np.empty(grams, np.float32)
    max_gain = np.empty(len(gain), np.float32)
    for r in range(len(gain)):
        max_gain[r] = gain[r].max()
    highest = prior.max()
    least = np.float32(-np.inf)
    count = 0
    for i in range(items):
        base = score[i]
        bound = base + highest
        for d in range(visited):
            bound += max_gain[start[d] + chosen[i, d]]
        # No extension of this string can be among the best.
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
    """Keep the `width` largest entries; return their number and the smallest of them."""
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
