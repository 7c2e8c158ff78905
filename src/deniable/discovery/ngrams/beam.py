"""The strings that gram reports speak for, best first: a beam search over positions.

Of a string of frequency f, its grams' own frequencies say which grams are there at all, and the
excess of each two of them over independence says which belong together. A string's score, in
nats, adds the logarithm of how many strings of frequency f could hold each gram, and for each
pair the log-likelihood ratio of "excess as f would cause it" against "none". Unlike a clique, a
string may lack a pair or two, and light strings are not lost to a threshold.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from deniable.kernels.search.beam_step import SPARE, extend

Floats = NDArray[np.float64]
Single = NDArray[np.float32]
Pair = tuple[int, int]


@dataclass(frozen=True, eq=False)
class GramBeam:
    """chosen : int32[B, k], gram of each position; score : float64[B], descending;
    dropped : whether strings were dropped on the way."""

    chosen: NDArray[np.int32]
    score: Floats
    dropped: bool


def search(prior: list[Single], gain: Mapping[Pair, Single], width: int) -> GramBeam:
    """The `width` best strings, but for those that were dropped on the way.

    prior : float32[A_g] for each position; gain : float32[A_g, A_h] for each g < h; minus infinity
    where two grams exclude each other. From the last position to the first: ends of strings differ
    least, so that little is dropped before pairs can tell.
    """
    last = len(prior) - 1
    keep = np.flatnonzero(prior[last] > -np.inf)
    keep = keep[np.argsort(-prior[last][keep], kind="stable")][:width]
    chosen, score = keep.astype(np.int32)[:, None], prior[last][keep]
    best, parent = np.empty(SPARE * width, np.float32), np.empty(SPARE * width, np.int64)
    child = np.empty(SPARE * width, np.int32)
    dropped = keep.size < prior[last].size
    visited = [last]
    for g in range(last - 1, -1, -1):
        tables = [np.ascontiguousarray(gain[g, h].T) for h in visited]
        start = np.concatenate([[0], np.cumsum([len(t) for t in tables])[:-1]]).astype(np.int64)
        joined, room = np.concatenate(tables), (best, parent, child)
        count = extend(score, chosen, prior[g], joined, start, width, *room)
        dropped |= count == width
        order = np.argsort(-best[:count], kind="stable")
        score = best[:count][order].copy()
        chosen = np.concatenate(
            [chosen[parent[:count][order]], child[:count][order][:, None]], axis=1
        )
        visited.append(g)
    return GramBeam(np.ascontiguousarray(chosen[:, ::-1]), score.astype(np.float64), dropped)
