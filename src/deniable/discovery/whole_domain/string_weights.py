"""How α is divided over all strings of a domain: by what the strings found so far look like.

Weights are a mixture of two probability distributions over the domain, so they sum to at most 1:
all strings alike, and a model of strings (characters, or the analyst's words) that learns from the
strings found. Their shares are those under which the strings found, each left out of its own model,
are likeliest. Strings without structure leave nearly all of α to the first.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from deniable.discovery.shared.lexicon import Lexicon, SpellingModel
from deniable.discovery.shared.strings import Rows

ENOUGH_TO_LEARN = 8
FOLDS = 5
ROUNDS = 60
ALREADY = 0.5
"""Strings that each distribution is taken to have explained beforehand: neither is given up."""


@dataclass(frozen=True, eq=False)
class StringWeights:
    """Of a domain of `strings`, `share` by the model and the rest alike."""

    strings: int
    model: SpellingModel
    share: float

    @classmethod
    def after(cls, strings: int, start: SpellingModel, known: Rows) -> StringWeights:
        """The weights once these strings are known; start : the model before any was."""
        if len(known) < ENOUGH_TO_LEARN:
            return cls(strings, start, 0.5 if isinstance(start, Lexicon) else 0.0)
        code = np.empty(len(known))
        for fold in range(FOLDS):
            out = np.arange(len(known)) % FOLDS == fold
            code[out] = start.learnt(known[~out]).code(known[out])
        return cls(strings, start.learnt(known), _share(np.log(strings) - code))

    def log(self, rows: Rows) -> NDArray[np.float64]:
        """float64[n]: logarithms of the weights."""
        alike = np.log1p(-self.share) - np.log(self.strings)
        if self.share == 0:
            return np.full(len(rows), alike)
        return np.asarray(np.logaddexp(alike, np.log(self.share) - self.model.code(rows)))


def _share(gain: NDArray[np.float64]) -> float:
    """The model's share of greatest likelihood, by expectation and maximisation.

    gain : float64[n], nats by which the model is better than all strings alike
    """
    share = 0.5
    for _ in range(ROUNDS):
        mine = share / (share + (1 - share) * np.exp(-gain))
        share = (mine.sum() + ALREADY) / (len(gain) + 2 * ALREADY)
    return float(share)
