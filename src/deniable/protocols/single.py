"""One report of the whole value: for choices, booleans, and strings whose dictionary is known."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Self

from deniable.mechanisms import Mechanism, from_canonical
from deniable.mechanisms.base import Settings, Token
from deniable.protocols.alphabet import well_formed
from deniable.protocols.base import (
    ClearField,
    Draw,
    Part,
    Protocol,
    Slot,
    Value,
    encoding_of,
    located,
)
from deniable.protocols.registry import register


@register
@dataclass(frozen=True)
class Single(Protocol):
    """All of ε on the whole value; nothing but the cohort in the clear."""

    mechanism: Mechanism

    name = "single"

    def within(self, survey: str, question: str) -> Self:
        encoding = encoding_of(self.mechanism, {"name": self.name})
        return type(self)(located(self.mechanism, survey, question, "full", encoding).mechanism)

    @property
    def clear(self) -> tuple[ClearField, ...]:
        return ()

    @property
    def draws(self) -> Iterator[tuple[Draw, float]]:
        yield (), 1.0

    @property
    def groups(self) -> tuple[int, float]:
        return 1, 1.0

    def draw(self, secret: bytes, survey: str, question: str) -> Draw:
        return ()

    @cached_property
    def parts(self) -> tuple[Part, ...]:
        return (Part((Slot("full", self.mechanism),)),)

    def token(self, value: Value, part: int, slot: int) -> Token:
        if not isinstance(value, str):
            return value
        text = well_formed(value)
        return text.encode() if self.mechanism.question_kind == "string" else text

    def canonical(self) -> Settings:
        return {"name": self.name, "mechanism": self.mechanism.canonical()}

    @classmethod
    def from_settings(cls, settings: Settings) -> Self:
        return cls(from_canonical(settings.pop("mechanism")), **settings)
