"""What protocols share that cut a string into symbols of an alphabet."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

from deniable.errors import check_integer
from deniable.mechanisms.base import Settings
from deniable.protocols.alphabet import MAX_LENGTH, Alphabet
from deniable.protocols.base import Protocol


@dataclass(frozen=True)
class TextProtocol(Protocol):
    """Strings of an alphabet, cut or padded to `max_length` symbols (M)."""

    alphabet: Alphabet
    max_length: int

    def __post_init__(self) -> None:
        check_integer("a max_length", self.max_length, 1, MAX_LENGTH)

    @property
    def cut(self) -> Settings:
        text = {"alphabet": self.alphabet.characters, "max_length": self.max_length}
        return {**super().cut, **text}

    @classmethod
    def from_settings(cls, settings: Settings) -> Self:
        return cls(**{**settings, "alphabet": Alphabet(settings["alphabet"])})

    def symbols(self, text: str) -> bytes:
        return self.alphabet.symbols(text, self.max_length)

    def symbols_reported(self, slot: int) -> int:
        return self.max_length
