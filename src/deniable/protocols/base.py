"""The contract of a protocol.

A *slot* is one reported part of a value with noise of its own: the full string, the n-gram at one
position, the prefix of one length. Which slots a client reports is drawn from its secret, never
from its value, is sent in the clear, and never changes for a survey's name: drawn anew each day, a
client would reveal every slot in turn and pay for all of them.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import ClassVar, Self

from deniable.errors import InputError
from deniable.lazy import Registry
from deniable.mechanisms import Domain, Mechanism, prf
from deniable.mechanisms.base import Settings, Token
from deniable.privacy import PrivacyLoss, total

Draw = tuple[int, ...]
Value = Token
"""An answer as a person gives it: a text, or true or false. None is no answer."""


@dataclass(frozen=True)
class Slot:
    """One reported part: its name, and the mechanism that reports it, with its domain set."""

    name: str
    mechanism: Mechanism


@dataclass(frozen=True)
class Part:
    """One column of a report: the slots it can be of, and the clear byte that says which.

    All slots of a part have the same width and noise.
    """

    slots: tuple[Slot, ...]
    chosen_by: int | None = None
    """Index of the clear byte that chooses among the slots; None where there is only one."""

    def choice(self, draw: Draw) -> int:
        """Which of the slots a client with this draw reports."""
        return 0 if self.chosen_by is None else draw[self.chosen_by]


@dataclass(frozen=True)
class ClearField:
    """One byte sent in the clear: its name and the number of values it can take."""

    name: str
    bound: int


@dataclass(frozen=True, kw_only=True)
class Protocol(ABC):
    """What is asked of each client about one value. Slots belong to a question of a survey."""

    survey: str = ""
    question: str = ""

    name: ClassVar[str]

    # --- what a protocol supplies --------------------------------------------------------------

    @property
    @abstractmethod
    def parts(self) -> tuple[Part, ...]:
        """The columns of a report, in the order of the bytes."""

    @abstractmethod
    def token(self, value: Value, part: int, slot: int) -> Token:
        """What this slot of this part reports of a value that is not None."""

    @abstractmethod
    def canonical(self) -> Settings:
        """Integers and strings that determine the protocol, for the published survey."""

    @classmethod
    @abstractmethod
    def from_settings(cls, settings: Settings) -> Self:
        """The protocol whose `canonical` has these keys, its name excepted."""

    # --- what one that draws slots supplies too --------------------------------------------------

    @property
    def clear(self) -> tuple[ClearField, ...]:
        """The bytes sent in the clear."""
        return ()

    def draw(self, secret: bytes, survey: str, question: str) -> Draw:
        """This client's clear bytes, for ever. Run by the client."""
        return ()

    @property
    def draws(self) -> Iterator[tuple[Draw, float]]:
        """Every draw a client can make, with its probability: the strata of an analysis."""
        yield (), 1.0

    @property
    def groups(self) -> tuple[int, float]:
        """How many draws there are, and the smallest one's probability."""
        shares = [share for _, share in self.draws]
        return len(shares), min(shares)

    # --- what one that cuts strings supplies too -------------------------------------------------

    @property
    def cut(self) -> Settings:
        """The part of `canonical` that decides which token each slot reports of a value."""
        return {"name": self.name}

    def symbols(self, text: str) -> bytes | None:
        """The row of symbols that is reported of a string; None where strings are taken whole."""
        return None

    def symbols_reported(self, slot: int) -> int | None:
        """How many of those symbols this slot of the first part reports; None if taken whole."""
        return None

    def longest_identified(self, slot: int) -> int | None:
        """The longest strings, in symbols, of which this slot of the first part tells the whole.

        None where it tells all strings. A prefix tells a shorter string, whose padding it holds; a
        longer string's prefix may belong to other strings too.
        """
        return None

    # --- what follows ----------------------------------------------------------------------------

    def within(self, survey: str, question: str) -> Self:
        """The same protocol with its own noise and hashing for this question of this survey."""
        return replace(self, survey=survey, question=question)

    def named_slots(self, mechanism: Mechanism, *names: str) -> tuple[Slot, ...]:
        """Slots of these names that report by this mechanism, each with noise of its own.

        Their encoding is the SHA-256 of all that decides which bits a value sets: how it is cut,
        and then encoded.
        """
        both = {"protocol": self.cut, "mechanism": mechanism.encoding()}
        encoding = prf.digest(json.dumps(both, sort_keys=True, separators=(",", ":")).encode())
        return tuple(
            Slot(name, mechanism.within(Domain(self.survey, self.question, name, encoding)))
            for name in names
        )

    @property
    def loss(self) -> PrivacyLoss:
        """ε of one report of this question, and of any number about one value: parts add."""
        return total([mechanism.loss for mechanism in self.mechanisms])

    @property
    def identifying_share(self) -> float:
        """The share of clients whose first part tells the whole value, however long it is."""
        slots = range(len(self.parts[0].slots))
        if all(self.longest_identified(slot) is None for slot in slots):
            return 1.0
        choice = self.parts[0].choice
        return sum(p for draw, p in self.draws if self.longest_identified(choice(draw)) is None)

    @property
    def mechanisms(self) -> tuple[Mechanism, ...]:
        """One mechanism for each part: width, noise and loss are the same in all of its slots."""
        return tuple(part.slots[0].mechanism for part in self.parts)

    def slots(self, draw: Draw) -> tuple[Slot, ...]:
        """The slots that a client with this draw reports, one for each part."""
        return tuple(part.slots[part.choice(draw)] for part in self.parts)

    def tokens(self, value: Value, draw: Draw) -> tuple[Token, ...]:
        """The parts of the value for those slots; None throughout for no answer."""
        if value is None:
            return (None,) * len(self.parts)
        return tuple(self.token(value, i, p.choice(draw)) for i, p in enumerate(self.parts))

    @property
    def encodings(self) -> tuple[bytes, ...]:
        """Of each part; all its slots share it."""
        return tuple(m.domain.encoding for m in self.mechanisms)


def clear_message(survey: str, question: str, what: str) -> bytes:
    """What a clear field is drawn from: the survey's and question's names, never a value."""
    return prf.fields(b"deniable-1/clear", survey.encode(), question.encode(), what.encode())


def cohort_of(secret: bytes, survey: str, cohorts: int) -> int:
    """A client's cohort, one for the whole survey: clear fields link reports."""
    return prf.draw(secret, clear_message(survey, "", "cohort"), cohorts)


# These are imported when a survey has them: a client of a plain survey never does.
LATER = {"ngrams": "deniable.protocols.ngrams", "prefixes": "deniable.protocols.prefixes"}
NAMES = Registry[Protocol]("protocol", lambda cls: cls.name, LATER)
register = NAMES.register


def from_canonical(data: Settings) -> Protocol:
    """The protocol that `Protocol.canonical` described; every key must be one it knows."""
    settings = dict(data)
    name = settings.pop("name", None)
    cls = NAMES[name]
    try:
        return cls.from_settings(settings)
    except (KeyError, TypeError) as error:
        raise InputError(f"a published {name} protocol cannot be read: {error}") from None
