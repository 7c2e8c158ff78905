"""One report of the whole value: for choices, booleans, and strings whose dictionary is known."""

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
    """All of ε on the whole value; nothing but the cohort in the clear."""

    mechanism: Mechanism

    name = "single"

    @cached_property
    def parts(self) -> tuple[Part, ...]:
        return (Part(self.named_slots(self.mechanism, "full")),)

    def token(self, value: Value, part: int, slot: int) -> Token:
        if not isinstance(value, str):
            return value
        text = well_formed(value)
        return text.encode() if self.mechanism.question_kind == "string" else text

    def canonical(self) -> Settings:
        return {**self.cut, "mechanism": self.mechanism.canonical()}

    @classmethod
    def from_settings(cls, settings: Settings) -> Self:
        return cls(**{**settings, "mechanism": from_canonical(settings["mechanism"])})
