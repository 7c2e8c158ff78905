"""Alphabets: strings as rows of symbols of one length, so that reports do not reveal lengths.

A symbol is one byte: the index of a character in the alphabet, OTHER for a character outside it, or
PAD after the end. The alphabet of bytes takes the UTF-8 of a string; 0xFF, which UTF-8 never
contains, is the padding.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from functools import cached_property
from typing import Self

from deniable.errors import InputError, check_integer
from deniable.mechanisms.base import Settings
from deniable.protocols.base import Protocol, Value

PAD = 0xFF
OTHER = 0xFE
MAX_CHARACTERS = 0xFE
REPLACEMENT = "\N{REPLACEMENT CHARACTER}"
TEXT_SETTINGS = ("alphabet", "max_length")
"""Names of the settings that decide the symbols of a string."""
MAX_LENGTH = 255


def well_formed(text: str) -> str:
    """Join surrogate pairs and replace lone surrogates by U+FFFD, as browsers do."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text


@dataclass(frozen=True)
class Alphabet:
    r"""The characters of the strings of a dictionary.

    Parameters
    ----------
    characters : str or None
        The characters, in the order of their symbols; None means bytes of UTF-8.

    Raises
    ------
    InputError
        If there are none or too many, or if one is repeated or a surrogate.

    Examples
    --------
    >>> Alphabet("abc").symbols("cab?", 6)
    b'\x02\x00\x01\xfe\xff\xff'
    """

    characters: str | None

    def __post_init__(self) -> None:
        if self.characters is None:
            return
        if type(self.characters) is not str:
            raise InputError(f"alphabet must be a text, not {self.characters!r:.100}")
        if not 1 <= len(self.characters) <= MAX_CHARACTERS:
            raise InputError(
                f"alphabet must have 1 to {MAX_CHARACTERS} characters, not "
                f'{len(self.characters)}; for all of Unicode use "bytes"'
            )
        if repeated := [c for c, n in Counter(self.characters).items() if n > 1]:
            raise InputError(f"alphabet repeats {', '.join(map(repr, repeated[:5]))}")
        if any(0xD800 <= ord(c) <= 0xDFFF for c in self.characters):
            raise InputError("alphabet must not contain surrogates (U+D800 to U+DFFF)")

    @cached_property
    def codes(self) -> dict[str, int]:
        """From a character to its symbol."""
        return {c: i for i, c in enumerate(self.characters or "")}

    @cached_property
    def content(self) -> bytes:
        """Every symbol of the alphabet, without OTHER and PAD."""
        return bytes(range(PAD)) if self.characters is None else bytes(range(len(self.characters)))

    def symbols(self, text: str, length: int) -> bytes:
        """Return the symbols of a text, truncated or padded to `length`."""
        text = well_formed(text)
        if self.characters is None:
            cut = text.encode()[:length]
        else:
            codes = self.codes
            cut = bytes(codes.get(c, OTHER) for c in text[:length])
        return cut.ljust(length, bytes([PAD]))

    def text(self, symbols: bytes) -> str:
        r"""Return the text of symbols up to the first PAD, with U+FFFD for OTHER.

        The bytes of an incomplete UTF-8 character are written as escapes such as \xce.
        """
        content = symbols.split(bytes([PAD]), 1)[0]
        if self.characters is None:
            return content.decode(errors="backslashreplace")
        characters = self.characters
        return "".join(REPLACEMENT if s == OTHER else characters[s] for s in content)


def count_strings(symbols: int, length: int) -> int:
    """Return the number of strings of up to `length` of these symbols, including the empty one.

    >>> count_strings(26, 6)
    321272407
    """
    return sum(int(symbols) ** n for n in range(length + 1))


@dataclass(frozen=True)
class TextProtocol(Protocol):
    """Base class of protocols that divide a string into symbols.

    Parameters
    ----------
    alphabet : Alphabet
        Characters of the strings.
    max_length : int
        Number of symbols to which strings are truncated or padded (M).
    """

    alphabet: Alphabet
    max_length: int

    def __post_init__(self) -> None:
        check_integer("max_length", self.max_length, 1, MAX_LENGTH)

    @property
    def token_settings(self) -> Settings:
        """Settings that decide which token each slot reports."""
        text = {"alphabet": self.alphabet.characters, "max_length": self.max_length}
        return {**super().token_settings, **text}

    @classmethod
    def from_settings(cls, settings: Settings) -> Self:
        """Return the protocol with these published settings."""
        return cls(**{**settings, "alphabet": Alphabet(settings["alphabet"])})

    def symbols(self, text: str) -> bytes:
        """Return the symbols of a string, truncated or padded to `max_length`."""
        return self.alphabet.symbols(text, self.max_length)

    def lost(self, value: Value) -> str | None:
        """Say what is lost of a string that is too long or has other characters."""
        characters = self.alphabet.characters
        if characters and len(value) <= self.max_length and not value.strip(characters):
            return None  # the usual case, quickly: all characters are in the alphabet
        text = well_formed(value)
        unit, content = ("bytes", text.encode()) if characters is None else ("characters", text)
        if len(content) > self.max_length:
            return f"strings of more than {self.max_length} {unit} are cut"
        if characters is not None and not self.alphabet.codes.keys() >= set(text):
            return "characters outside the alphabet are reported as one unknown symbol"
        return None

    def symbols_reported(self, slot: int) -> int:
        """Return how many symbols this slot of the first part reports."""
        return self.max_length
