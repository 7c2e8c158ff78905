"""How likely a next character is: learnt from strings that were found, for finding others.

Orders are interpolated, from the lowest up: P_k(c | the last k) = (n(c) + a·P_{k−1}(c))/(n + a),
a = 2 + the number of different characters seen there, as in Witten and Bell (1991).

On the URL population the order-2 model learnt from the 65 heaviest strings takes 27 nats for one of
the next, against 43 for characters alone.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from deniable.discovery.shared.strings import Rows
from deniable.protocols.alphabet import PAD, Alphabet

ORDER = 2
STRENGTH = 2.0
MOST_ENTRIES = 1 << 23


@dataclass(frozen=True, eq=False)
class CharacterModel:
    """log_p : float32[(A+2)^order, A+1]: of each symbol, the last meaning the end, by context.

    Symbols are numbered 0…A−1; A is the pad and A+1 stands before the first.
    """

    symbols: int
    order: int
    log_p: NDArray[np.float32]

    @classmethod
    def uniform(cls, alphabet: Alphabet) -> CharacterModel:
        """Every symbol, the end among them, as likely as any other."""
        a = len(alphabet.content)
        order = next(k for k in (ORDER, 1, 0) if (a + 2) ** k * (a + 1) <= MOST_ENTRIES)
        even = np.full(((a + 2) ** order, a + 1), -np.log(a + 1), np.float32)
        return cls(a, order, even)

    def learnt(self, rows: Rows) -> CharacterModel:
        """The model that these strings, each counted once, make of this one."""
        p = np.exp(self.log_p.astype(np.float64))
        base, everything = self.symbols + 2, np.arange(len(self.log_p))
        symbol, context = self._occurrences(rows)
        for k in range(self.order + 1):
            n = np.zeros((base**k, self.symbols + 1))
            np.add.at(n, (context % base**k, symbol), 1.0)
            a = STRENGTH + (n > 0).sum(axis=1, keepdims=True)
            share = a / (n.sum(axis=1, keepdims=True) + a)
            own = n / (n.sum(axis=1, keepdims=True) + a)
            p = own[everything % base**k] + share[everything % base**k] * p
        return CharacterModel(self.symbols, self.order, np.log(p).astype(np.float32))

    def of(self, rows: Rows, length: int) -> NDArray[np.float32]:
        """float32[n, A+1]: log-probabilities of the symbol that follows the first `length`."""
        return np.asarray(self.log_p[self.contexts(rows, length)])

    def code(self, rows: Rows) -> NDArray[np.float64]:
        """float64[n]: nats that each whole string takes."""
        symbol, context = self._occurrences(rows)
        owner = np.repeat(np.arange(len(rows)), _symbols_each(rows))
        spent = -self.log_p[context, symbol].astype(np.float64)
        return np.asarray(np.bincount(owner, weights=spent, minlength=len(rows)), np.float64)

    def _occurrences(self, rows: Rows) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Every symbol of every string up to and with the first pad, and its context."""
        each = _symbols_each(rows)
        numbered = self._numbered(rows)
        inside = np.arange(rows.shape[1]) < each[:, np.newaxis]
        contexts = [self.contexts(rows, j) for j in range(rows.shape[1])]
        return numbered[inside], np.stack(contexts, axis=1)[inside]

    def contexts(self, rows: Rows, length: int) -> NDArray[np.int64]:
        """int64[n]: the row of `log_p` for the symbol that follows the first `length`."""
        out = np.zeros(len(rows), np.int64)
        for j in range(length - self.order, length):
            symbol = self.symbols + 1 if j < 0 else self._numbered(rows[:, j])
            out = out * (self.symbols + 2) + symbol
        return out

    def _numbered(self, symbols: NDArray[np.uint8]) -> NDArray[np.int64]:
        return np.asarray(np.where(symbols == PAD, self.symbols, symbols.astype(np.int64)))


def _symbols_each(rows: Rows) -> NDArray[np.int64]:
    """Symbols of each string, with the pad that ends it where there is one."""
    width = rows.shape[1]
    return np.asarray(np.minimum((rows != PAD).sum(axis=1) + 1, width))
