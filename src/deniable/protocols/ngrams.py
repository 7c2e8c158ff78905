"""The paper's protocol for unknown dictionaries: the full string and r of its n-grams.

Each client reports its full string, cut or padded to M symbols, and the n-grams at r distinct
positions, positions in the clear. The r+1 reports compose by addition. Positions are multiples of n
with M divisible by n (the paper prints "divisible by g₁ and g₂"), or, overlapping, any of 0…M−n.
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
    """`full` reports the whole string; `grams[i]` the gram at the i-th smallest drawn position."""

    gram: int
    full: Mechanism
    grams: tuple[Mechanism, ...]
    overlap: bool = False

    name = "ngrams"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_integer("symbols of an n-gram, up to max_length,", self.gram, 1, self.max_length)
        if type(self.overlap) is not bool:
            raise InputError(f"expected overlap true or false, got {self.overlap!r:.200}")
        if not self.overlap and self.max_length % self.gram:
            nearest = -(-self.max_length // self.gram) * self.gram
            raise InputError(
                f"expected max_length divisible by the n-gram's length {self.gram}, got "
                f"{self.max_length}; use {nearest}, or overlapping n-grams"
            )
        if len(self.grams) < 2:
            raise InputError(f"expected 2 or more n-grams a report, got {len(self.grams)}")
        if len(self.grams) > self.positions:
            raise InputError(
                f"expected at most {self.positions} n-grams a report, one for each position, "
                f"got {len(self.grams)}"
            )
        if self.positions > MAX_POSITIONS:
            raise InputError(f"expected at most {MAX_POSITIONS} positions, got {self.positions}")

    @property
    def positions(self) -> int:
        """How many places a gram can be taken from."""
        if self.overlap:
            return self.max_length - self.gram + 1
        return self.max_length // self.gram

    def start(self, position: int) -> int:
        """The first symbol of the gram at this position."""
        return position if self.overlap else position * self.gram

    @property
    def clear(self) -> tuple[ClearField, ...]:
        return tuple(
            ClearField(f"position {i + 1}", self.positions) for i in range(len(self.grams))
        )

    @property
    def draws(self) -> Iterator[tuple[Draw, float]]:
        _, share = self.groups
        for draw in combinations(range(self.positions), len(self.grams)):
            yield draw, share

    @property
    def groups(self) -> tuple[int, float]:
        count = math.comb(self.positions, len(self.grams))
        return count, 1 / count

    def draw(self, secret: bytes, survey: str, question: str) -> Draw:
        """Distinct positions in increasing order, each set of them equally likely."""
        chosen: list[int] = []
        size = len(self.grams)
        rank = prf.draw(
            secret, clear_message(survey, question, "positions"), math.comb(self.positions, size)
        )
        for position in range(self.positions):
            # Sets whose smallest remaining member is this position come first.
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
        names = [f"gram:{position}" for position in range(self.positions)]
        grams = (self.named_slots(mechanism, *names) for mechanism in self.grams)
        full = Part(self.named_slots(self.full, "full"))
        return (full, *(Part(slots, chosen_by=i) for i, slots in enumerate(grams)))

    def token(self, value: str, part: int, slot: int) -> bytes:
        row = self.symbols(value)
        start = self.start(slot)
        return row if part == 0 else row[start : start + self.gram]

    @property
    def cut(self) -> Settings:
        return {**super().cut, "gram": self.gram, "overlap": self.overlap}

    def canonical(self) -> Settings:
        grams = [mechanism.canonical() for mechanism in self.grams]
        return {**self.cut, "full": self.full.canonical(), "grams": grams}

    @classmethod
    def from_settings(cls, settings: Settings) -> Self:
        grams = tuple(map(from_canonical, settings["grams"]))
        return super().from_settings(
            {**settings, "full": from_canonical(settings["full"]), "grams": grams}
        )
