"""Simulate subset selection: categories, and random subsets of them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from deniable.kernels.array_types import Bytes, Int32s
from deniable.kernels.noise.subsets import draw_subsets
from deniable.mechanisms import Subset
from deniable.simulation.parts import Clients, PartSimulator


@dataclass(frozen=True, eq=False)
class TrueCategories:
    """Categories of clients, int32[N]; the last one is "none"."""

    mechanism: Subset
    categories: Int32s

    def report(self, rng: np.random.Generator) -> Bytes:
        """Return one more report per client: a random subset."""
        m = self.mechanism
        return draw_subsets(self.categories, m.width, m.members, m.noise.q, rng)


class SubsetPart(PartSimulator[Subset]):
    """Simulator of subset selection."""

    def states(self, clients: Clients, rng: np.random.Generator) -> TrueCategories:
        """Return the clients' categories; nothing is drawn."""
        m = self.mechanism
        none = len(m.options)
        # One entry per token, and a last one, at −1, for no answer.
        known = [m.index.get(token, none) for tokens in self.tokens for token in tokens]
        category = np.array([*known, none], np.int32)
        return TrueCategories(m, category[self.token_index(clients)])
