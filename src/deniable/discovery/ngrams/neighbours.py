"""What the strings found so far say about which gram stands beside which.

Names resemble each other: where "akamaihd" was found, "ak" is more often followed by "am" than by
"qz". For two neighbouring grams, the character model of what was found gives the logarithm of how
much more likely the second is after the first than by itself: an order in which candidates are
looked at, never evidence in a test.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from deniable.discovery.shared.character_model import CharacterModel
from deniable.discovery.shared.strings import Floats, Rows
from deniable.protocols.alphabet import OTHER, PAD, Alphabet

LEAST = 8
"""Strings below which nothing is learnt."""


class Neighbours:
    """Models of every order up to the one that a gram's length and the alphabet allow.

    rows : uint8[F, M], the strings to learn from, each counted once
    """

    def __init__(self, alphabet: Alphabet, rows: Rows, gram: int) -> None:
        self._alphabet = alphabet
        whole = CharacterModel.uniform(alphabet)
        known = rows[~self._strange(rows)]
        a = whole.symbols
        self._models = [
            CharacterModel(a, k, whole.log_p[: (a + 2) ** k]).learnt(known)
            for k in range(min(whole.order, gram) + 1)
        ]

    def follows(self, left: Rows, right: Rows) -> Floats:
        """log P(gram | gram before it) / P(gram), float64[A, B], for grams side by side.

        Symbol t of the right gram has `order` symbols before it, of which its own gram holds t.
        """
        order, end = len(self._models) - 1, self._models[0].symbols
        # After the end there is nothing to predict, and of strange characters nothing is known.
        void, strange = (left[:, -1] == PAD) | self._strange(left), self._strange(right)
        left, right = np.where(void[:, None], PAD, left), np.where(strange[:, None], PAD, right)
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
            after = self._models[order].of(context, order).reshape(len(tails), len(heads), -1)
            gain = after[:, each, symbol] - self._models[t].of(heads, t)[each, symbol]
            out += gain[np.ix_(tail.ravel(), head.ravel())]
        out[void] = 0.0
        out[:, strange] = 0.0
        return out

    def _strange(self, rows: Rows) -> NDArray[np.bool_]:
        """Which rows hold a character outside the alphabet; bytes have none outside."""
        if self._alphabet.characters is None:
            return np.zeros(len(rows), bool)
        return np.asarray((rows == OTHER).any(axis=1))
