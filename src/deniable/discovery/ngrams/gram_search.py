"""Beam search over positions for the strings that gram reports support.

For a string of frequency f, the frequencies of its grams say which grams are present at all, and
the excess of each pair over independence says which belong together. The score of a string, in
nats, adds the logarithm of how many strings of frequency f could hold each gram, and for each pair
the log-likelihood ratio of "excess as f would cause it" against "none". Unlike a clique, a string
may lack a pair or two, and rare strings are not lost to a threshold.

`Neighbours` adds what discovered strings have in common: where "akamaihd" was found, "ak" is more
often followed by "am" than by "qz". This only orders the candidates; it is no evidence in a test.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from deniable.discovery.ngrams.grams import Pair
from deniable.discovery.shared.string_models import CharacterModel
from deniable.discovery.shared.strings import Rows
from deniable.kernels.array_types import Floats, Int32s, Mask, Singles
from deniable.kernels.search.beam_step import BUFFER_FACTOR, extend
from deniable.protocols.alphabet import OTHER, PAD, Alphabet

MIN_STRINGS_TO_LEARN = 8
"""Strings below which nothing is learnt about neighbours."""


@dataclass(frozen=True, eq=False)
class GramBeam:
    """The best strings of a search.

    chosen : int32[B, k], gram of each position; score : float64[B], descending
    least : float64[k], least score kept after each position; minus infinity where all were kept
    """

    chosen: Int32s
    score: Floats
    least: Floats

    @property
    def dropped(self) -> bool:
        """Whether the width of the beam left out any string."""
        return bool((self.least > -np.inf).any())


def search(prior: list[Singles], gain: Mapping[Pair, Singles], width: int) -> GramBeam:
    """Return the `width` best strings, except those that the beam dropped on the way.

    The search goes from the last position to the first: ends of strings differ least, so that
    little is dropped before pairs can tell strings apart.

    prior : float32[A_g] for each position
    gain : float32[A_g, A_h] for each g < h; minus infinity where two grams exclude each other
    """
    last = len(prior) - 1
    keep = np.flatnonzero(prior[last] > -np.inf)
    keep = keep[np.argsort(-prior[last][keep], kind="stable")][:width]
    chosen, score = keep.astype(np.int32)[:, None], prior[last][keep]
    size = BUFFER_FACTOR * width
    best, parent = np.empty(size, np.float32), np.empty(size, np.int64)
    child = np.empty(size, np.int32)
    least = np.full(len(prior), -np.inf)
    if keep.size < prior[last].size:
        least[last] = score.min(initial=np.inf)
    for g in range(last - 1, -1, -1):
        tables = [np.ascontiguousarray(gain[g, h].T) for h in range(last, g, -1)]
        start = np.concatenate([[0], np.cumsum([len(t) for t in tables])[:-1]]).astype(np.int64)
        joined, room = np.concatenate(tables), (best, parent, child)
        count = extend(score, chosen, prior[g], joined, start, width, *room)
        if count == width:
            least[g] = best[:count].min()
        order = np.argsort(-best[:count], kind="stable")
        score = best[:count][order].copy()
        added = child[:count][order][:, None]
        chosen = np.concatenate([chosen[parent[:count][order]], added], axis=1)
    return GramBeam(np.ascontiguousarray(chosen[:, ::-1]), score.astype(np.float64), least)


class Neighbours:
    """Character models of every order that the length of a gram and the alphabet allow.

    rows : uint8[F, M], the strings to learn from, each counted once
    """

    def __init__(self, alphabet: Alphabet, rows: Rows, gram: int) -> None:
        self._alphabet = alphabet
        whole = CharacterModel.uniform(alphabet)
        known = rows[~self._outside(rows)]
        a = whole.symbols
        self._models = [
            CharacterModel(a, k, whole.log_p[: (a + 2) ** k]).trained(known)
            for k in range(min(whole.order, gram) + 1)
        ]

    def follows(self, left: Rows, right: Rows) -> Floats:
        """Return log P(gram | gram before it) / P(gram), float64[A, B], for adjacent grams.

        Symbol t of the right gram has `order` symbols before it, of which its own gram holds t.
        """
        order, end = len(self._models) - 1, self._models[0].symbols
        # Nothing follows the end, and nothing is known of characters outside the alphabet.
        void, outside = (left[:, -1] == PAD) | self._outside(left), self._outside(right)
        left, right = np.where(void[:, None], PAD, left), np.where(outside[:, None], PAD, right)
        out = np.zeros((len(left), len(right)))
        for t in range(min(order, right.shape[1])):
            tails, tail = np.unique(left[:, t - order :], axis=0, return_inverse=True)
            heads, head = np.unique(right[:, : t + 1], axis=0, return_inverse=True)
            context = np.concatenate(
                [np.repeat(tails, len(heads), axis=0), np.tile(heads[:, :t], (len(tails), 1))],
                axis=1,
            )
            each = np.arange(len(heads))
            symbol = np.where(heads[:, t] == PAD, end, heads[:, t].astype(np.intp))
            after = self._models[order].next_symbol(context, order)
            after = after.reshape(len(tails), len(heads), -1)[:, each, symbol]
            gain = after - self._models[t].next_symbol(heads, t)[each, symbol]
            out += gain[np.ix_(tail.ravel(), head.ravel())]
        out[void] = 0.0
        out[:, outside] = 0.0
        return out

    def _outside(self, rows: Rows) -> Mask:
        """Return which rows hold a character outside the alphabet; no byte is outside."""
        if self._alphabet.characters is None:
            return np.zeros(len(rows), bool)
        return np.asarray((rows == OTHER).any(axis=1))
