"""Protocol for choices, booleans and strings with a known dictionary: report the whole value."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Self

from deniable.mechanisms import Mechanism, from_canonical
from deniable.mechanisms.base import Settings, Token
from deniable.protocols.alphabet import well_formed
from deniable.protocols.base import Part, Protocol, Value, register


@register
@dataclass(frozen=True)
class Single(Protocol):
    """Reports the whole value with the whole ε; only the cohort is sent in the clear.

    Parameters
    ----------
    mechanism : Mechanism
        Reports the value.
    """

    mechanism: Mechanism

    name = "single"

    @cached_property
    def parts(self) -> tuple[Part, ...]:
        """One part with one slot."""
        return (Part(self.named_slots(self.mechanism, "full")),)

    def token(self, value: Value, part: int, slot: int) -> Token:
        """Return the value: the UTF-8 of a string, the text of an option, or a boolean."""
        if not isinstance(value, str):
            return value
        text = well_formed(value)
        return text.encode() if self.mechanism.question_kind == "string" else text

    def lost(self, value: Value) -> str | None:
        """Say what is lost of an answer that is not an option."""
        return self.mechanism.lost(self.token(value, 0, 0))

    def canonical(self) -> Settings:
        """Return the settings that define the protocol, for the published survey."""
        return {**self.token_settings, "mechanism": self.mechanism.canonical()}

    @classmethod
    def from_settings(cls, settings: Settings) -> Self:
        """Return the protocol with these published settings."""
        return cls(**{**settings, "mechanism": from_canonical(settings["mechanism"])})
