"""What the strings found so far say about which symbols follow which.

Names resemble each other: where "akamaihd" was found, "ak" is more often followed by "am" than by
"qz". An interpolated model of order two, each order falling back on the one below, gives for two
neighbouring grams the logarithm of how much more likely the second is after the first than by
itself: an order in which candidates are looked at, never evidence in a test.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from deniable.discovery.grams import Rows
from deniable.protocols.alphabet import PAD

Floats = NDArray[np.float64]
LEAST = 8
"""Strings below which nothing is learnt."""
FALL_BACK = 4.0
"""Imaginary observations with which an order falls back on the one below."""


class Characters:
    """P(symbol | the two before it), from strings counted once each.

    rows : uint8[F, M]; the padding after a string's end counts once, as its end.
    """

    def __init__(self, rows: Rows) -> None:
        self._symbols, coded = np.unique(rows, return_inverse=True)
        coded = coded.reshape(rows.shape)
        size = len(self._symbols) + 1
        one, two, three = np.zeros(size), np.zeros((size, size)), np.zeros((size,) * 3)
        ended = np.zeros(len(rows), bool)
        for i in range(rows.shape[1]):
            live = ~ended
            np.add.at(one, coded[live, i], 1)
            if i > 0:
                np.add.at(two, (coded[live, i - 1], coded[live, i]), 1)
            if i > 1:
                np.add.at(three, (coded[live, i - 2], coded[live, i - 1], coded[live, i]), 1)
            ended |= rows[:, i] == PAD
        # The last code stands for every symbol not seen.
        self._one = _interpolated(one, np.full(size, 1.0 / size))
        self._two = _interpolated(two, np.broadcast_to(self._one, two.shape))
        self._three = _interpolated(three, np.broadcast_to(self._two, three.shape))

    def follows(self, left: Rows, right: Rows) -> Floats:
        """log P(gram | gram before it) / P(gram), float64[A, B], for grams side by side."""
        a, b = self._codes(left), self._codes(right)
        out = np.zeros((len(a), len(b)))
        before, first = a[:, -1][:, None], b[:, 0][None, :]
        if a.shape[1] > 1:
            out += np.log(self._three[a[:, -2][:, None], before, first])
        else:
            out += np.log(self._two[before, first])
        out -= np.log(self._one[first])
        if b.shape[1] > 1:
            second = b[:, 1][None, :]
            out += np.log(self._three[before, first, second]) - np.log(self._two[first, second])
        # After the end there is nothing to predict.
        out[left[:, -1] == PAD] = 0.0
        return out

    def _codes(self, grams: Rows) -> NDArray[np.intp]:
        at = np.minimum(np.searchsorted(self._symbols, grams), len(self._symbols) - 1)
        return np.where(self._symbols[at] == grams, at, len(self._symbols))


def _interpolated(count: Floats, below: Floats) -> Floats:
    total = count.sum(axis=-1, keepdims=True)
    return np.asarray((count + FALL_BACK * below) / (total + FALL_BACK))
