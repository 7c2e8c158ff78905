"""The paper's protocol for unknown dictionaries: the full string and r of its n-grams.

Each client reports its full string, truncated or padded to M symbols, and the n-grams at r distinct
positions. Positions are sent in the clear; ε of the question is the sum over the r+1 slots.
Positions are multiples of n, and n divides M; with overlap, they are any of 0…M−n. (The paper says
that M is divisible by the positions g₁ and g₂. The text around it shows that it means this.)
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import Self

from deniable.errors import InputError, check_integer
from deniable.mechanisms import Mechanism, from_canonical, prf
from deniable.mechanisms.base import Settings
from deniable.protocols.alphabet import TextProtocol
from deniable.protocols.base import ClearField, Draw, Part, clear_message, register

MAX_POSITIONS = 256


@register
@dataclass(frozen=True)
class NGrams(TextProtocol):
    """Reports the full string and several of its n-grams.

    Parameters
    ----------
    gram : int
        Number of symbols of an n-gram (n).
    full : Mechanism
        Reports the full string.
    grams : tuple of Mechanism
        Mechanism i reports the n-gram at the client's i-th smallest position.
    overlap : bool, default False
        Whether n-grams may begin at any symbol, or only at multiples of n.
    """

    gram: int
    full: Mechanism
    grams: tuple[Mechanism, ...]
    overlap: bool = False

    name = "ngrams"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_integer("gram (at most max_length)", self.gram, 1, self.max_length)
        if type(self.overlap) is not bool:
            raise InputError(f"overlap must be true or false, not {self.overlap!r:.200}")
        if not self.overlap and self.max_length % self.gram:
            nearest = -(-self.max_length // self.gram) * self.gram
            raise InputError(
                f"max_length must be divisible by gram = {self.gram}, the length of an n-gram, "
                f"unlike {self.max_length}; use {nearest}, or set overlap = true"
            )
        if len(self.grams) < 2:
            raise InputError(f"grams must be at least 2 n-grams per report, not {len(self.grams)}")
        if len(self.grams) > self.positions:
            raise InputError(
                f"grams must be at most {self.positions}, the number of positions, not "
                f"{len(self.grams)}"
            )
        if self.positions > MAX_POSITIONS:
            raise InputError(
                f"n-grams may begin at up to {MAX_POSITIONS} positions, not {self.positions}; "
                "choose a smaller max_length"
            )

    @property
    def positions(self) -> int:
        """Number of positions of n-grams."""
        if self.overlap:
            return self.max_length - self.gram + 1
        return self.max_length // self.gram

    def start(self, position: int) -> int:
        """Return the index of the first symbol of the n-gram at this position."""
        return position if self.overlap else position * self.gram

    @cached_property
    def clear(self) -> tuple[ClearField, ...]:
        """One position per reported n-gram."""
        return tuple(
            ClearField(f"position {i + 1}", self.positions) for i in range(len(self.grams))
        )

    @property
    def draws(self) -> Iterator[tuple[Draw, float]]:
        """Every set of positions, with its probability."""
        share = self.smallest_group
        for draw in combinations(range(self.positions), len(self.grams)):
            yield draw, share

    @property
    def groups(self) -> int:
        """Number of sets of positions."""
        return math.comb(self.positions, len(self.grams))

    @property
    def smallest_group(self) -> float:
        """Probability of each set of positions; all are equal."""
        return 1 / self.groups

    def draw(self, secret: bytes, survey: str, question: str) -> Draw:
        """Return distinct positions in increasing order; all sets are equally likely."""
        chosen: list[int] = []
        size = len(self.grams)
        rank = prf.draw(
            secret, clear_message(survey, question, "positions"), math.comb(self.positions, size)
        )
        for position in range(self.positions):
            # Sets are ranked in lexicographic order: those that contain this position come first.
            with_it = math.comb(self.positions - position - 1, size - len(chosen) - 1)
            if rank < with_it:
                chosen.append(position)
                if len(chosen) == size:
                    break
            else:
                rank -= with_it
        return tuple(chosen)

    @cached_property
    def parts(self) -> tuple[Part, ...]:
        """The full string, then one part per reported n-gram."""
        names = [f"gram:{position}" for position in range(self.positions)]
        grams = (self.named_slots(mechanism, *names) for mechanism in self.grams)
        full = Part(self.named_slots(self.full, "full"))
        return (full, *(Part(slots, chosen_by=i) for i, slots in enumerate(grams)))

    def token(self, value: str, part: int, slot: int) -> bytes:
        """Return the full string, or the n-gram at position `slot`, as symbols."""
        row = self.symbols(value)
        start = self.start(slot)
        return row if part == 0 else row[start : start + self.gram]

    @property
    def token_settings(self) -> Settings:
        """Settings that decide which token each slot reports."""
        return {**super().token_settings, "gram": self.gram, "overlap": self.overlap}

    def canonical(self) -> Settings:
        """Return the settings that define the protocol, for the published survey."""
        grams = [mechanism.canonical() for mechanism in self.grams]
        return {**self.token_settings, "full": self.full.canonical(), "grams": grams}

    @classmethod
    def from_settings(cls, settings: Settings) -> Self:
        """Return the protocol with these published settings."""
        grams = tuple(map(from_canonical, settings["grams"]))
        return super().from_settings(
            {**settings, "full": from_canonical(settings["full"]), "grams": grams}
        )
