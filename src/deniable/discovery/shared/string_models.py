"""Models of strings: how likely each next character is.

`CharacterModel` learns from discovered strings, to find others like them. Orders are interpolated,
from the lowest up: P_k(c | last k) = (n(c) + a·P_{k−1}(c))/(n + a), a = 2 + the number of
different characters seen in that context, as in Witten and Bell (1991). On the URL population, the
order-2 model that has learnt from the 65 most common strings takes 27 nats for one of the next,
against 43 for independent characters.

`Lexicon` adds words that an analyst expects. A string is a sequence of pieces: words of the list,
or runs of characters that follow the character model, which learns endings such as ".com". The list
may hold whole strings as well. A list contains no information about who answered what: it changes
where the search looks first and how α is divided, but not the guarantee of any test.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from deniable.discovery.shared.strings import Rows
from deniable.errors import InputError
from deniable.kernels.array_types import Bytes, Floats, Int32s, Int64s, Singles
from deniable.kernels.chunks import over_threads, split_range, thread_count
from deniable.kernels.search.spelling import next_symbols
from deniable.protocols.alphabet import OTHER, PAD, Alphabet

Words = Sequence[str] | Mapping[str, float]
MAX_ORDER = 2
STRENGTH = 2.0
MAX_ENTRIES = 1 << 23
"""Entries of the table of probabilities; a large alphabet has a lower order."""
ROWS_PER_THREAD = 1 << 13
FOLDS = 5
"""Parts of the discovered strings; each is predicted by a model that has not learnt from it."""


@dataclass(frozen=True, eq=False)
class CharacterModel:
    """Probabilities of the next symbol, given the last few.

    Symbols are numbered 0…A−1. Number A is the pad, which ends a string; A+1 stands before the
    first symbol.

    log_p : float32[(A+2)^order, A+1], log-probability of each symbol or the end, by context
    """

    symbols: int
    order: int
    log_p: Singles

    @classmethod
    def uniform(cls, alphabet: Alphabet) -> CharacterModel:
        """Return the model in which every symbol, and the end, is equally likely."""
        a = len(alphabet.content)
        order = next(k for k in (MAX_ORDER, 1, 0) if (a + 2) ** k * (a + 1) <= MAX_ENTRIES)
        even = np.full(((a + 2) ** order, a + 1), -np.log(a + 1), np.float32)
        return CharacterModel(a, order, even)

    def trained(self, rows: Rows) -> Self:
        """Return the model that has learnt from these strings, each counted once."""
        p = np.exp(self.log_p.astype(np.float64))
        base, everything = self.symbols + 2, np.arange(len(self.log_p))
        # Every symbol of every string, up to and with the first pad, and its context.
        inside = np.arange(rows.shape[1]) <= (rows != PAD).sum(axis=1, keepdims=True)
        contexts = [self.contexts(rows, j) for j in range(rows.shape[1])]
        symbol, context = self._numbered(rows)[inside], np.stack(contexts, axis=1)[inside]
        for k in range(self.order + 1):
            n = np.zeros((base**k, self.symbols + 1))
            np.add.at(n, (context % base**k, symbol), 1.0)
            a = STRENGTH + (n > 0).sum(axis=1, keepdims=True)
            share = a / (n.sum(axis=1, keepdims=True) + a)
            own = n / (n.sum(axis=1, keepdims=True) + a)
            p = own[everything % base**k] + share[everything % base**k] * p
        return replace(self, log_p=np.log(p).astype(np.float32))

    def next_symbol(self, rows: Rows, length: int) -> Singles:
        """float32[n, A+1]: log-probabilities of the symbol that follows the first `length`."""
        return np.asarray(self.log_p[self.contexts(rows, length)])

    def spelled(self, rows: Rows) -> Floats:
        """float64[n, M]: log-probability of each symbol, and of the end after the last; then 0."""
        out, length = np.zeros(rows.shape), (rows != PAD).sum(axis=1)
        for at in range(rows.shape[1]):
            there = np.flatnonzero(length >= at)
            if len(there):
                log_p = self.next_symbol(rows[there], at)
                out[there, at] = log_p[np.arange(len(there)), self._numbered(rows[there, at])]
        return out

    def description_length(self, rows: Rows) -> Floats:
        """float64[n]: minus the log-probability of each whole string, in nats."""
        return np.asarray(-self.spelled(rows).sum(axis=1))

    def contexts(self, rows: Rows, length: int) -> Int64s:
        """int64[n]: the row of `log_p` for the symbol that follows the first `length`."""
        out = np.zeros(len(rows), np.int64)
        for j in range(length - self.order, length):
            symbol = self.symbols + 1 if j < 0 else self._numbered(rows[:, j])
            out = out * (self.symbols + 2) + symbol
        return out

    def _numbered(self, symbols: Bytes) -> Int64s:
        return np.asarray(np.where(symbols == PAD, self.symbols, symbols.astype(np.int64)))


@dataclass(frozen=True, eq=False)
class Lexicon(CharacterModel):
    """A character model together with a list of words, stored as a tree.

    child : int32[nodes, A]; below, ends : float64[nodes]; see `kernels.search.spelling`
    """

    child: Int32s
    below: Floats
    ends: Floats

    @classmethod
    def of_words(cls, alphabet: Alphabet, words: Words, length: int) -> Lexicon:
        """Return the model of these words; without weights, all are equally likely."""
        tree: list[dict[int, int]] = [{}]
        ends = [0.0]
        for row, w in weights_of(alphabet, words, length).items():
            node = 0
            for symbol in row.rstrip(bytes([PAD])):
                if symbol not in tree[node]:
                    tree[node][symbol] = len(tree)
                    tree.append({})
                    ends.append(0.0)
                node = tree[node][symbol]
            ends[node] += w
        characters = CharacterModel.uniform(alphabet)
        child = np.full((len(tree), characters.symbols), -1, np.int32)
        below = np.array(ends)
        for node in range(len(tree) - 1, -1, -1):  # children have higher numbers
            for symbol, n in tree[node].items():
                child[node, symbol] = n
                below[node] += below[n]
        below, end_weights = np.stack([below, ends]) / max(below[0], 1e-300)
        return cls(**vars(characters), child=child, below=below, ends=end_weights)

    def next_symbol(self, rows: Rows, length: int) -> Singles:
        """float32[n, A+1]: log-probabilities of the next symbol, by words and characters."""
        out = np.empty((len(rows), self.symbols + 1), np.float32)

        def work(start: int, stop: int) -> None:
            part = np.ascontiguousarray(rows[start:stop])
            context = np.stack([self.contexts(part, j) for j in range(length + 1)], axis=1)
            tree = self.child, self.below, self.ends
            next_symbols(part, context, length, self.log_p, *tree, out[start:stop])

        ranges = split_range(len(rows), -(-len(rows) // ROWS_PER_THREAD))
        over_threads(work, ranges, thread_count(None))
        return out


def weights_of(alphabet: Alphabet, words: Words, length: int) -> dict[bytes, float]:
    """Return words as padded symbols, with their weights.

    Words with characters outside the alphabet are left out: no discovered string can contain them.
    """
    given = words.items() if isinstance(words, Mapping) else ((word, 1.0) for word in words)
    out: dict[bytes, float] = {}
    for word, w in given:
        if not 0 < w < np.inf:
            raise InputError(f"word {word!r} has weight {w}: expected a positive number")
        row = alphabet.symbols(word, length)
        if row[0] != PAD and (alphabet.characters is None or OTHER not in row):
            out[row] = out.get(row, 0.0) + w
    return out


def string_model(alphabet: Alphabet, words: Words, length: int) -> CharacterModel:
    """Return the model before any string is discovered: a lexicon if words are given."""
    if words:
        return Lexicon.of_words(alphabet, words, length)
    return CharacterModel.uniform(alphabet)


def held_out_log_p(start: CharacterModel, taught: Rows, rows: Rows) -> Floats:
    """float64[n, M]: log-probabilities of the symbols of strings, as if these were not yet known.

    The model that predicts a string has learnt from the strings taught, except this one and others.
    """
    out, names = np.empty(rows.shape), [row.tobytes() for row in rows]
    for fold in range(FOLDS):
        chosen = np.arange(len(rows)) % FOLDS == fold
        away = {names[i] for i in np.flatnonzero(chosen)}
        kept = np.array([row.tobytes() not in away for row in taught], bool)
        model = start.trained(taught[kept]) if kept.any() else start
        out[chosen] = model.spelled(rows[chosen])
    return out
