"""Prefixes: each client reports one prefix of its string with all of ε.

The length of the prefix, its *level*, is drawn once from the client's secret, is sent in the clear,
and never changes. The server extends surviving prefixes level by level; the padding symbol ends a
string. One report at full ε, where n-grams split it in r+1.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from typing import Self

from deniable.errors import InputError
from deniable.mechanisms import Mechanism, from_canonical, prf
from deniable.mechanisms.base import Settings
from deniable.mechanisms.noise import ONE
from deniable.protocols.alphabet import TextProtocol
from deniable.protocols.base import ClearField, Draw, Part, clear_message, register

MAX_LEVELS = 256


@dataclass(frozen=True)
class Level:
    """A prefix length and the share of clients, of 2³², that report it. Two levels may have one
    length (a second look at the whole string): their slots differ, so their hashes do."""

    length: int
    weight: int


@register
@dataclass(frozen=True)
class Prefixes(TextProtocol):
    """`mechanism` reports the prefix of the drawn level."""

    levels: tuple[Level, ...]
    mechanism: Mechanism

    name = "prefixes"

    def __post_init__(self) -> None:
        super().__post_init__()
        if any(type(x) is not int for level in self.levels for x in (level.length, level.weight)):
            raise InputError(f"expected levels of whole numbers, got {self.levels!r:.200}")
        if not 1 <= len(self.levels) <= MAX_LEVELS:
            raise InputError(f"expected 1 to {MAX_LEVELS} levels, got {len(self.levels)}")
        lengths = [level.length for level in self.levels]
        if any(not 1 <= length <= self.max_length for length in lengths):
            raise InputError(
                f"expected levels from 1 to max_length {self.max_length}, got {lengths}"
            )
        if lengths != sorted(lengths) or lengths[-1] != self.max_length:
            raise InputError(
                f"expected levels in increasing order up to max_length {self.max_length}, "
                f"got {lengths}"
            )
        weights = [level.weight for level in self.levels]
        if any(weight < 1 for weight in weights) or sum(weights) != ONE:
            raise InputError(f"expected shares above 0 that sum to 2^32, got {weights}")

    @property
    def clear(self) -> tuple[ClearField, ...]:
        return (ClearField("level", len(self.levels)),)

    @property
    def draws(self) -> Iterator[tuple[Draw, float]]:
        for i, level in enumerate(self.levels):
            yield (i,), level.weight / ONE

    @cached_property
    def cumulative_weights(self) -> tuple[int, ...]:
        """The weights up to and including each level: the last is 2³²."""
        return tuple(accumulate(level.weight for level in self.levels))

    def draw(self, secret: bytes, survey: str, question: str) -> Draw:
        uniform = prf.draw(secret, clear_message(survey, question, "level"), ONE)
        return (next(i for i, top in enumerate(self.cumulative_weights) if uniform < top),)

    @cached_property
    def parts(self) -> tuple[Part, ...]:
        names = [f"level:{i}:{level.length}" for i, level in enumerate(self.levels)]
        return (Part(self.named_slots(self.mechanism, *names), chosen_by=0),)

    def symbols_reported(self, slot: int) -> int:
        return self.levels[slot].length

    def longest_identified(self, slot: int) -> int | None:
        length = self.levels[slot].length
        return None if length == self.max_length else length - 1

    def token(self, value: str, part: int, slot: int) -> bytes:
        return self.symbols(value)[: self.levels[slot].length]

    def canonical(self) -> Settings:
        levels = [[level.length, level.weight] for level in self.levels]
        return {**self.cut, "levels": levels, "mechanism": self.mechanism.canonical()}

    @classmethod
    def from_settings(cls, settings: Settings) -> Self:
        levels = tuple(Level(*level) for level in settings["levels"])
        mechanism = from_canonical(settings["mechanism"])
        return super().from_settings({**settings, "levels": levels, "mechanism": mechanism})
