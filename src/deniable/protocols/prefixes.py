"""Prefixes: each client reports one prefix of its string with the whole ε.

The prefix length (the wire field "level") is derived from the client's secret, is sent in the
clear, and never changes. An analysis extends the surviving prefixes from one length to the next;
the padding symbol ends a string. Unlike with n-grams, ε is not divided among several slots.
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
    """A prefix length and the share of clients that report it.

    Two levels may have the same length, for an independent confirmation of whole strings: their
    slots, and therefore their hashes, differ.

    Parameters
    ----------
    length : int
        Prefix length in symbols.
    weight : int
        Share of clients, in units of 2⁻³².
    """

    length: int
    weight: int


@register
@dataclass(frozen=True)
class Prefixes(TextProtocol):
    """Reports one prefix of the string, of a length that depends on the client.

    Parameters
    ----------
    levels : tuple of Level
        Prefix lengths in increasing order, with their shares of clients.
    mechanism : Mechanism
        Reports the prefix.
    """

    levels: tuple[Level, ...]
    mechanism: Mechanism

    name = "prefixes"

    def __post_init__(self) -> None:
        super().__post_init__()
        if any(type(x) is not int for level in self.levels for x in (level.length, level.weight)):
            raise InputError(f"levels must be pairs of integers, not {self.levels!r:.200}")
        if not 1 <= len(self.levels) <= MAX_LEVELS:
            raise InputError(f"levels must be 1 to {MAX_LEVELS} lengths, not {len(self.levels)}")
        lengths = [level.length for level in self.levels]
        if any(not 1 <= length <= self.max_length for length in lengths):
            raise InputError(
                f"levels must be lengths from 1 to max_length = {self.max_length}, not {lengths}"
            )
        if lengths != sorted(lengths) or lengths[-1] != self.max_length:
            raise InputError(
                f"levels must increase and end with max_length = {self.max_length}, unlike "
                f"{lengths}"
            )
        weights = [level.weight for level in self.levels]
        if any(weight < 1 for weight in weights) or sum(weights) != ONE:
            raise InputError(f"weights must be positive and sum to 2^32, unlike {weights}")

    @cached_property
    def clear(self) -> tuple[ClearField, ...]:
        """The level, which selects the prefix length."""
        return (ClearField("level", len(self.levels)),)

    @property
    def draws(self) -> Iterator[tuple[Draw, float]]:
        """Every level, with its share of clients."""
        for i, level in enumerate(self.levels):
            yield (i,), level.weight / ONE

    @cached_property
    def cumulative_weights(self) -> tuple[int, ...]:
        """Sum of the weights up to and including each level; the last is 2³²."""
        return tuple(accumulate(level.weight for level in self.levels))

    def draw(self, secret: bytes, survey: str, question: str) -> Draw:
        """Return the level of the client with this secret."""
        uniform = prf.draw(secret, clear_message(survey, question, "level"), ONE)
        return (next(i for i, top in enumerate(self.cumulative_weights) if uniform < top),)

    @cached_property
    def parts(self) -> tuple[Part, ...]:
        """One part with one slot per level."""
        names = [f"level:{i}:{level.length}" for i, level in enumerate(self.levels)]
        return (Part(self.named_slots(self.mechanism, *names), chosen_by=0),)

    def symbols_reported(self, slot: int) -> int:
        """Return the prefix length of this level."""
        return self.levels[slot].length

    def longest_identified(self, slot: int) -> int | None:
        """Return the length of the longest strings that this level identifies; None means all."""
        length = self.levels[slot].length
        return None if length == self.max_length else length - 1

    def token(self, value: str, part: int, slot: int) -> bytes:
        """Return the symbols of the prefix."""
        return self.symbols(value)[: self.levels[slot].length]

    def canonical(self) -> Settings:
        """Return the settings that define the protocol, for the published survey."""
        levels = [[level.length, level.weight] for level in self.levels]
        return {**self.token_settings, "levels": levels, "mechanism": self.mechanism.canonical()}

    @classmethod
    def from_settings(cls, settings: Settings) -> Self:
        """Return the protocol with these published settings."""
        levels = tuple(Level(*level) for level in settings["levels"])
        mechanism = from_canonical(settings["mechanism"])
        return super().from_settings({**settings, "levels": levels, "mechanism": mechanism})
