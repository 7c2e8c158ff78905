"""The contract of a protocol.

A *slot* is one reported part of a value with noise of its own: the full string, the n-gram at one
position, the prefix of one length. Which slots a client reports is drawn from its secret, never
from its value, is sent in the clear, and never changes for a survey's name: drawn anew each day, a
client would reveal every slot in turn and pay for all of them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
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
class ClearField:
    """One byte sent in the clear: its name and the number of values it can take."""

    name: str
    bound: int


class Protocol(ABC):
    """What is asked of each client about one value."""

    name: ClassVar[str]

    @property
    @abstractmethod
    def mechanisms(self) -> tuple[Mechanism, ...]:
        """One mechanism for each part of a report, in the order of the bytes."""

    @abstractmethod
    def within(self, survey: str, question: str) -> Self:
        """The same protocol with its own noise and hashing for this question of this survey."""

    @property
    @abstractmethod
    def clear(self) -> tuple[ClearField, ...]:
        """The bytes sent in the clear."""

    @property
    @abstractmethod
    def draws(self) -> tuple[tuple[Draw, float], ...]:
        """Every draw a client can make, with its probability: the strata of an analysis."""

    @abstractmethod
    def draw(self, secret: bytes, survey: str, question: str) -> Draw:
        """This client's clear bytes, for ever. Run by the client."""

    @abstractmethod
    def slots(self, draw: Draw) -> tuple[Slot, ...]:
        """The slots that a client with this draw reports, aligned with `mechanisms`."""

    @abstractmethod
    def tokens(self, value: Any, draw: Draw) -> tuple[Any, ...]:
        """The parts of the value for those slots; None throughout for no answer."""

    @abstractmethod
    def canonical(self) -> dict[str, Any]:
        """Integers and strings that determine the protocol, for the published survey."""

    @property
    @abstractmethod
    def loss(self) -> PrivacyLoss:
        """ε of one report of this question, and of any number about one value."""

    @property
    def cohorts(self) -> int:
        return max(m.cohorts for m in self.mechanisms)


def clear_message(survey: str, question: str, what: str) -> bytes:
    """What a clear field is drawn from: the survey's and question's names, never a value."""
    return prf.fields(b"deniable-1/clear", survey.encode(), question.encode(), what.encode())


def cohort_of(secret: bytes, survey: str, cohorts: int) -> int:
    """A client's cohort, one for the whole survey: clear fields link reports."""
    return prf.draw(secret, clear_message(survey, "", "cohort"), cohorts)


def located(mechanism: Mechanism, survey: str, question: str, slot: str) -> Slot:
    """The slot of this name, its noise and hashing its own."""
    return Slot(slot, mechanism.within(Domain(survey, question, slot)))
