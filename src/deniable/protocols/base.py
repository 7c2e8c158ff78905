"""The contract of a protocol.

A *slot* is one reported part of a value with noise of its own: the full string, the n-gram at one
position, the prefix of one length. Which slots a client reports is drawn from its secret, never
from its value, is sent in the clear, and never changes for a survey's name: drawn anew each day, a
client would reveal every slot in turn and pay for all of them.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self

from deniable.mechanisms import Domain, Mechanism, prf
from deniable.privacy import PrivacyLoss

Draw = tuple[int, ...]


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


class Protocol(ABC):
    """What is asked of each client about one value."""

    name: ClassVar[str]

    # --- what a protocol supplies --------------------------------------------------------------

    @abstractmethod
    def within(self, survey: str, question: str) -> Self:
        """The same protocol with its own noise and hashing for this question of this survey."""

    @property
    @abstractmethod
    def parts(self) -> tuple[Part, ...]:
        """The columns of a report, in the order of the bytes."""

    @property
    @abstractmethod
    def clear(self) -> tuple[ClearField, ...]:
        """The bytes sent in the clear."""

    @property
    @abstractmethod
    def draws(self) -> Iterator[tuple[Draw, float]]:
        """Every draw a client can make, with its probability: the strata of an analysis."""

    @property
    @abstractmethod
    def groups(self) -> tuple[int, float]:
        """How many draws there are, and the smallest one's probability."""

    @abstractmethod
    def draw(self, secret: bytes, survey: str, question: str) -> Draw:
        """This client's clear bytes, for ever. Run by the client."""

    @abstractmethod
    def token(self, value: Any, part: int, slot: int) -> Any:
        """What this slot of this part reports of a value that is not None."""

    @abstractmethod
    def canonical(self) -> dict[str, Any]:
        """Integers and strings that determine the protocol, for the published survey."""

    @property
    @abstractmethod
    def loss(self) -> PrivacyLoss:
        """ε of one report of this question, and of any number about one value."""

    # --- what follows ----------------------------------------------------------------------------

    @property
    def mechanisms(self) -> tuple[Mechanism, ...]:
        """One mechanism for each part: width, noise and loss are the same in all of its slots."""
        return tuple(part.slots[0].mechanism for part in self.parts)

    def slots(self, draw: Draw) -> tuple[Slot, ...]:
        """The slots that a client with this draw reports, one for each part."""
        return tuple(part.slots[part.choice(draw)] for part in self.parts)

    def tokens(self, value: Any, draw: Draw) -> tuple[Any, ...]:
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


def encoding_of(mechanism: Mechanism, protocol: Mapping[str, Any]) -> bytes:
    """SHA-256 of all that decides which bits a value sets: how it is cut, and then encoded."""
    both = {"protocol": dict(protocol), "mechanism": mechanism.encoding()}
    return prf.digest(json.dumps(both, sort_keys=True, separators=(",", ":")).encode())


def located(mechanism: Mechanism, survey: str, question: str, slot: str, encoding: bytes) -> Slot:
    """The slot of this name, its noise and hashing its own."""
    return Slot(slot, mechanism.within(Domain(survey, question, slot, encoding)))
