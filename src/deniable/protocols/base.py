"""Base class of protocols.

A *slot* is a unit that is hashed and randomised on its own: the full string, the n-gram at one
position, or the prefix of one length. The slots that a client reports are derived from its secret,
never from its value; they are sent in the clear and never change for a survey name. With new slots
every day, a client would reveal one slot after the other and spend ε on each of them.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar, Self, overload

from deniable.errors import InputError
from deniable.lazy import Registry
from deniable.mechanisms import Domain, Mechanism, prf
from deniable.mechanisms.base import Settings, Token
from deniable.privacy import NO_LOSS, PrivacyLoss

Draw = tuple[int, ...]
"""The clear fields of one question of a client."""
Value = Token
"""An answer: a text, a boolean or a number. None means no answer."""


@dataclass(frozen=True)
class Slot:
    """A slot: its name, and the mechanism that reports it, with hashing and noise keyed to it."""

    name: str
    mechanism: Mechanism


class Slots(Sequence[Slot]):
    """Slots with one mechanism, each made on first use.

    A part may have hundreds of slots, and a client reports one of them. If all were made, a small
    survey could take minutes to read.

    Parameters
    ----------
    mechanism : Mechanism
        Mechanism of all slots, keyed to none of them yet.
    domain : Domain
        Key of hashing and noise, without the name of the slot.
    names : tuple of str
        Names of the slots.
    """

    def __init__(self, mechanism: Mechanism, domain: Domain, names: tuple[str, ...]) -> None:
        self._mechanism, self._domain, self._names = mechanism, domain, names
        self._made: dict[int, Slot] = {}

    def __len__(self) -> int:
        return len(self._names)

    @overload
    def __getitem__(self, index: int) -> Slot: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[Slot, ...]: ...
    def __getitem__(self, index: int | slice) -> Slot | tuple[Slot, ...]:
        if isinstance(index, slice):
            return tuple(self[i] for i in range(len(self))[index])
        slot = self._made.get(index)
        if slot is None:
            name = self._names[index]
            slot = Slot(name, self._mechanism.within(replace(self._domain, slot=name)))
            self._made[index] = slot
        return slot


@dataclass(frozen=True)
class Part:
    """One column of a report. Each client reports one of its slots.

    All slots of a part have the same width and noise.

    Parameters
    ----------
    slots : Slots
        The slots.
    chosen_by : int or None
        Index of the clear field that selects a slot; None if there is only one slot.
    """

    slots: Slots
    chosen_by: int | None = None

    def choice(self, draw: Draw) -> int:
        """Return the index of the slot that a client with these clear fields reports."""
        return 0 if self.chosen_by is None else draw[self.chosen_by]


@dataclass(frozen=True)
class ClearField:
    """One byte sent in the clear: its name and the number of values that it can have."""

    name: str
    bound: int


@dataclass(frozen=True, kw_only=True)
class Protocol(ABC):
    """Defines which parts of a value each client reports.

    Parameters
    ----------
    survey, question : str
        Names that hashing and noise are keyed by.
    """

    survey: str = ""
    question: str = ""

    name: ClassVar[str]

    # --- defined by each protocol --------------------------------------------------------------

    @property
    @abstractmethod
    def parts(self) -> tuple[Part, ...]:
        """Columns of a report, in the order of the bytes."""

    @abstractmethod
    def token(self, value: Value, part: int, slot: int) -> Token:
        """Return what this slot of this part reports about a value that is not None."""

    @abstractmethod
    def canonical(self) -> Settings:
        """Return the settings that define the protocol, for the published survey."""

    @classmethod
    @abstractmethod
    def from_settings(cls, settings: Settings) -> Self:
        """Return the protocol with these settings of `canonical`, without its name."""

    # --- defined by protocols with clear fields ------------------------------------------------

    @property
    def clear(self) -> tuple[ClearField, ...]:
        """Clear fields of a report, one byte each."""
        return ()

    def draw(self, secret: bytes, survey: str, question: str) -> Draw:
        """Return the clear fields of the client with this secret. Runs on the client."""
        return ()

    @property
    def draws(self) -> Iterator[tuple[Draw, float]]:
        """Every possible value of the clear fields, with its probability."""
        yield (), 1.0

    @property
    def groups(self) -> int:
        """Number of groups into which the clear fields divide the clients."""
        return sum(1 for _ in self.draws)

    @property
    def smallest_group(self) -> float:
        """Expected share of clients in the smallest of these groups."""
        return min(share for _, share in self.draws)

    # --- defined by protocols that divide strings ----------------------------------------------

    @property
    def token_settings(self) -> Settings:
        """Settings of `canonical` that decide which token each slot reports."""
        return {"name": self.name}

    def symbols(self, text: str) -> bytes | None:
        """Return the symbols of a string; None if strings are not divided into symbols."""
        return None

    def symbols_reported(self, slot: int) -> int | None:
        """Return how many symbols this slot of the first part reports; None if not divided."""
        return None

    def longest_identified(self, slot: int) -> int | None:
        """Return the length of the longest strings that this slot of the first part identifies.

        None means that it identifies all strings. A prefix identifies shorter strings, because it
        includes their padding; the prefix of a longer string may belong to other strings too.
        """
        return None

    def lost(self, value: Value) -> str | None:
        """Say what no report about this value contains; None if its whole can be reported.

        Simulations and tests warn about it. A client must not: its behaviour would depend on the
        value.
        """
        return None

    # --- the same for most ---------------------------------------------------------------------

    def accepts(self, kind: str, mechanism: Mechanism) -> bool:
        """Return whether a question of this kind can use this mechanism."""
        return mechanism.question_kind == kind and self.name in mechanism.protocols

    def within(self, survey: str, question: str) -> Self:
        """Return the same protocol with hashing and noise keyed by this survey and question."""
        return replace(self, survey=survey, question=question)

    def named_slots(self, mechanism: Mechanism, *names: str) -> Slots:
        """Return one slot per name, all with this mechanism but separately keyed.

        Their encoding is the SHA-256 of everything that decides which bits a value sets: how it is
        divided into tokens, and how tokens are encoded.
        """
        both = {"protocol": self.token_settings, "mechanism": mechanism.encoding()}
        encoding = prf.digest(json.dumps(both, sort_keys=True, separators=(",", ":")).encode())
        return Slots(mechanism, Domain(self.survey, self.question, "", encoding), names)

    @property
    def loss(self) -> PrivacyLoss:
        """ε of this question per report and in total: the sum over its parts."""
        return sum((mechanism.loss for mechanism in self.mechanisms), NO_LOSS)

    @property
    def identifying_share(self) -> float:
        """Share of clients whose first part identifies the whole value, whatever its length."""
        slots = range(len(self.parts[0].slots))
        if all(self.longest_identified(slot) is None for slot in slots):
            return 1.0
        choice = self.parts[0].choice
        return sum(p for draw, p in self.draws if self.longest_identified(choice(draw)) is None)

    @cached_property
    def mechanisms(self) -> tuple[Mechanism, ...]:
        """One mechanism per part; width, noise and loss are the same in all of its slots."""
        return tuple(part.slots[0].mechanism for part in self.parts)

    def slots(self, draw: Draw) -> tuple[Slot, ...]:
        """Return the slots that a client with these clear fields reports, one per part."""
        return tuple(part.slots[part.choice(draw)] for part in self.parts)

    def tokens(self, value: Value, draw: Draw) -> tuple[Token, ...]:
        """Return the tokens of a value for those slots; None in each if there is no answer."""
        if value is None:
            return (None,) * len(self.parts)
        return tuple(self.token(value, i, p.choice(draw)) for i, p in enumerate(self.parts))


def clear_message(survey: str, question: str, field: str) -> bytes:
    """Return the message that a clear field is derived from: names only, never a value."""
    return prf.fields(b"deniable-1/clear", survey.encode(), question.encode(), field.encode())


def cohort_of(secret: bytes, survey: str, cohorts: int) -> int:
    """Return the cohort of a client: one per survey, since clear fields can link reports."""
    return prf.draw(secret, clear_message(survey, "", "cohort"), cohorts)


# These are imported on first use: surveys with known dictionaries have none of them.
LATER = {
    "bins": "deniable.protocols.bins",
    "ngrams": "deniable.protocols.ngrams",
    "prefixes": "deniable.protocols.prefixes",
}
NAMES = Registry[Protocol]("protocol", lambda cls: cls.name, LATER)
register = NAMES.register


def from_canonical(data: Settings) -> Protocol:
    """Return the protocol with these settings, as `Protocol.canonical` writes them."""
    settings = dict(data)
    name = settings.pop("name", None)
    cls = NAMES[name]
    try:
        return cls.from_settings(settings)
    except (KeyError, TypeError) as error:
        raise InputError(f"cannot read the published {name} protocol: {error}") from None
