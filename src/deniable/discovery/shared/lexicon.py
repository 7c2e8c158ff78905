"""Words that an analyst expects strings to be made of, mixed with the characters that were learnt.

A string is pieces one after another: words of the list, or runs of characters that follow the
character model (endings such as ".com" are learnt there). Whole strings can be on the list as well.
A word list says nothing about who answered what: it changes where the search looks first and how α
is shared out, never what a test promises.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from deniable.discovery.shared.character_model import CharacterModel
from deniable.discovery.shared.strings import Rows
from deniable.errors import InputError
from deniable.kernels.chunks import over_threads, spans, thread_count
from deniable.kernels.search.spelling import next_symbols
from deniable.protocols.alphabet import OTHER, PAD, Alphabet

Words = Sequence[str] | Mapping[str, float]
CHUNK = 1 << 13


@dataclass(frozen=True, eq=False)
class Lexicon:
    """A model of strings with the same methods as `CharacterModel`.

    child : int32[nodes, A]; below, ends : float64[nodes], see `kernels.search.spelling`
    """

    characters: CharacterModel
    child: NDArray[np.int32]
    below: NDArray[np.float64]
    ends: NDArray[np.float64]

    @classmethod
    def of_words(cls, alphabet: Alphabet, words: Words, length: int) -> Lexicon:
        """Words and their weights, which are all alike where none are given."""
        characters = CharacterModel.uniform(alphabet)
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
        child = np.full((len(tree), characters.symbols), -1, np.int32)
        below = np.array(ends)
        for node in range(len(tree) - 1, -1, -1):  # children have higher numbers
            for symbol, n in tree[node].items():
                child[node, symbol] = n
                below[node] += below[n]
        whole = max(below[0], 1e-300)
        return cls(characters, child, below / whole, np.array(ends) / whole)

    @property
    def symbols(self) -> int:
        return self.characters.symbols

    def learnt(self, rows: Rows) -> Lexicon:
        """With the characters that these strings teach."""
        return replace(self, characters=self.characters.learnt(rows))

    def of(self, rows: Rows, length: int) -> NDArray[np.float32]:
        """float32[n, A+1]: log-probabilities of the symbol that follows the first `length`."""
        out = np.empty((len(rows), self.symbols + 1), np.float32)
        model, tree = self.characters, (self.child, self.below, self.ends)

        def work(start: int, stop: int) -> None:
            some = np.ascontiguousarray(rows[start:stop])
            context = np.stack([model.contexts(some, j) for j in range(length + 1)], axis=1)
            next_symbols(some, context, length, model.log_p, *tree, out[start:stop])

        over_threads(work, spans(len(rows), -(-len(rows) // CHUNK)), thread_count(None))
        return out

    def code(self, rows: Rows) -> NDArray[np.float64]:
        """float64[n]: nats that each whole string takes."""
        spent = np.zeros(len(rows))
        length = (rows != PAD).sum(axis=1)
        for at in range(rows.shape[1]):
            here = np.flatnonzero(length >= at)
            if len(here):
                symbol = np.where(rows[here, at] == PAD, self.symbols, rows[here, at])
                spent[here] -= self.of(rows[here], at)[np.arange(len(here)), symbol]
        return spent


def weights_of(alphabet: Alphabet, words: Words, length: int) -> dict[bytes, float]:
    """Words as symbols, padded, and their weights; without those that cannot be part of any string
    that is found."""
    given = words.items() if isinstance(words, Mapping) else ((word, 1.0) for word in words)
    out: dict[bytes, float] = {}
    for word, w in given:
        if not 0 < w < np.inf:
            raise InputError(f"expected words with weights above 0, got {w} for {word!r}")
        row = alphabet.symbols(word, length)
        if row[0] != PAD and (alphabet.characters is None or OTHER not in row):
            out[row] = out.get(row, 0.0) + w
    return out


SpellingModel = CharacterModel | Lexicon


def string_model(alphabet: Alphabet, words: Words, length: int) -> SpellingModel:
    """Return the model of strings before any was found: of these words, if there are any."""
    if words:
        return Lexicon.of_words(alphabet, words, length)
    return CharacterModel.uniform(alphabet)
