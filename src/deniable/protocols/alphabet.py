"""Strings as rows of symbols of one length, so that a report never tells how long a value is.

A symbol is one byte: the character's place in the alphabet, OTHER for a character outside it, PAD
after the end. A string that holds spaces is never confused with one that was padded. The alphabet
of bytes takes the string's UTF-8 as it is; 0xFF, which UTF-8 never contains, pads.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Self

from deniable.errors import InputError, check_integer
from deniable.mechanisms.base import Settings
from deniable.protocols.base import Protocol

PAD = 0xFF
OTHER = 0xFE
MAX_CHARACTERS = 0xFE
REPLACEMENT = "\N{REPLACEMENT CHARACTER}"


TEXT_SETTINGS = ("alphabet", "max_length")
MAX_LENGTH = 255


def well_formed(text: str) -> str:
    """The text as code points: surrogate pairs joined, a lone surrogate U+FFFD, as in a browser."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text


@dataclass(frozen=True)
class Alphabet:
    """The characters that a dictionary's strings are made of; None means bytes.

    >>> Alphabet("abc").symbols("cab?", 6)
    b'\\x02\\x00\\x01\\xfe\\xff\\xff'
    """

    characters: str | None

    def __post_init__(self) -> None:
        if self.characters is None:
            return
        if type(self.characters) is not str:
            raise InputError(f"expected an alphabet that is a text, got {self.characters!r:.100}")
        if not 1 <= len(self.characters) <= MAX_CHARACTERS:
            raise InputError(
                f"expected an alphabet of 1 to {MAX_CHARACTERS} characters, got "
                f'{len(self.characters)}; for any Unicode at all use "bytes"'
            )
        if len(set(self.characters)) != len(self.characters):
            raise InputError("expected an alphabet of characters that differ")
        if any(0xD800 <= ord(c) <= 0xDFFF for c in self.characters):
            raise InputError("expected an alphabet without surrogates")

    @cached_property
    def codes(self) -> dict[str, int]:
        return {c: i for i, c in enumerate(self.characters or "")}

    @cached_property
    def content(self) -> bytes:
        """Every symbol that can stand in a string, OTHER and PAD excepted."""
        return bytes(range(PAD)) if self.characters is None else bytes(range(len(self.characters)))

    def symbols(self, text: str, length: int) -> bytes:
        """Cut or padded to `length` symbols."""
        text = well_formed(text)
        if self.characters is None:
            cut = text.encode()[:length]
        else:
            codes = self.codes
            cut = bytes(codes.get(c, OTHER) for c in text[:length])
        return cut.ljust(length, bytes([PAD]))

    def text(self, symbols: bytes) -> str:
        """Back to a string: up to the first PAD, OTHER as U+FFFD; what is left of a character that
        was cut in two, as \\xce."""
        content = symbols.split(bytes([PAD]), 1)[0]
        if self.characters is None:
            return content.decode(errors="backslashreplace")
        characters = self.characters
        return "".join(REPLACEMENT if s == OTHER else characters[s] for s in content)


def count_strings(symbols: int, length: int) -> int:
    """Strings of up to `length` of these symbols, the empty one included.

    >>> count_strings(26, 6)
    321272407
    """
    return sum(int(symbols) ** n for n in range(length + 1))


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
