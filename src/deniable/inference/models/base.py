"""What a decoder asks of a question's categories, whichever mechanism reports them.

`CategoryModel` is the whole door to the analysis: a mechanism whose model is registered for its
kind can be decoded, associated and tested. The three models of this package are strings in Bloom
filters (`bloom`), strings by local hashing (`local_hash`), and options (`options`).

A stratum is a slot of the question's first part and a cohort: slot·cohorts + cohort.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from importlib import import_module
from typing import Any, Generic, Literal, Protocol, Self, TypeVar

import numpy as np

from deniable.columns import Column
from deniable.compute.arrays import ArrayKernels, Likelihood
from deniable.compute.cpu.array_kernels import CPU_KERNELS
from deniable.errors import InputError
from deniable.inference.joint.collapse import category_averages
from deniable.inference.marginal.bit_counts import BitCounts
from deniable.inference.marginal.detection import Correction
from deniable.kernels.array_types import Bytes, Floats, Indices, Integers, Mask
from deniable.protocols.alphabet import PAD
from deniable.results.marginal import Marginal
from deniable.survey import Question

NO_ANSWER = "(no answer)"
OTHER = "(other)"
OtherModel = Literal["mixture", "product"]


@dataclass(frozen=True, eq=False)
class Candidates:
    """The values of a question that are looked for.

    names : all different; rows : u8[m, M], their symbols, where the question cuts strings into such
    """

    question: Question
    names: tuple[str, ...]
    rows: Bytes | None = None

    @cached_property
    def informative(self) -> Mask:
        """bool[slots, m]: which slots' reports speak of which whole candidate.

        A `single` question's reports all do, and so does the full-string part of an `ngrams`
        question. A level of a `prefixes` question speaks of the strings that end before it: the
        padding is part of the prefix, so it belongs to one string only. A prefix shorter than the
        string is no evidence for it: unlisted strings may share it.
        """
        protocol = self.question.protocol
        longest = [protocol.longest_identified(i) for i in range(len(protocol.parts[0].slots))]
        out = np.ones((len(longest), len(self.names)), bool)
        for slot, limit in enumerate(longest):
            if limit is not None and self.rows is not None:
                out[slot] = (self.rows != PAD).sum(axis=1) <= limit
        return out

    def tokens(self, slot: int) -> list[bytes]:
        """What a client that holds each candidate would report of it in this slot."""
        protocol = self.question.protocol
        if self.rows is None:
            return [protocol.token(name, 0, slot) for name in self.names]
        return [row.tobytes() for row in self.rows[:, : protocol.symbols_reported(slot)]]


class ReportCounts(Protocol):
    """All that a marginal needs to know of some reports; counts of disjoint reports add."""

    @property
    def reports(self) -> int:
        """How many reports were counted."""
        ...

    def __add__(self, other: Self, /) -> Self:
        """The counts of both sets of reports."""
        ...

    def as_if_from(self, reports: float) -> Self:
        """The same frequencies as if from so many reports."""
        ...


C = TypeVar("C", bound=ReportCounts)
Counter = Callable[[Column], ReportCounts]
"""Counts one question's reports of a batch."""


@dataclass(frozen=True)
class TableSettings:
    """Which categories a joint table gets; see `associate`.

    top : how many strings of a question are shown at most; other : how everything else is modelled,
    False to leave it out; fitted : how many strings are fitted, those beyond `top` being added up
    into Other afterwards; alpha : significance level at which a string must have been detected
    """

    top: int = 10
    other: bool | OtherModel = True
    fitted: int | None = None
    alpha: float = 0.05

    def __post_init__(self) -> None:
        if self.top < 0:
            raise InputError(f"expected top of 0 or more, got {self.top}")


@dataclass(frozen=True, eq=False)
class Axis:
    """One question's categories in a joint table: as fitted, and as shown after adding some up.

    labels : of the fitted categories; shown : of those that are shown; groups : intp[fitted], where
    each goes among the shown; meaning : what the last one stands for, "" if it is one of the values
    """

    labels: tuple[str, ...]
    shown: tuple[str, ...]
    groups: Indices
    meaning: str = ""

    @classmethod
    def whole(cls, labels: Sequence[str], meaning: str = "") -> Axis:
        """All categories are shown as they are fitted."""
        return cls(tuple(labels), tuple(labels), np.arange(len(labels)), meaning)

    @property
    def ends_with_other(self) -> bool:
        """Whether the last category that is shown is Other."""
        return self.shown[-1] == OTHER


@dataclass(frozen=True, eq=False)
class Components:
    """What reports of each category are like, stratum by stratum, as mixtures of components.

    A component is a string, or an unknown one: given it, bits are independent, or exactly one of
    them is set (a number instead of bits). A category is a mixture of components: a known value is
    one alone; Other is the strings that the marginal decode saw outside the categories, and unknown
    ones.

    theta(strata) : float64[S, C, k], P(bit = 1 | component) in each of some strata;
    mixing : float64[m, C], what each category is made of, rows of sum 1;
    exclusive : whether a report sets exactly one bit.
    """

    theta: Callable[[Indices], Floats]
    mixing: Floats
    exclusive: bool = False

    def collapsed(self, groups: Indices, margin: Floats) -> Components:
        """Categories added up: groups[i] is the new one of category i; margin : their shares."""
        return replace(self, mixing=category_averages(groups, margin) @ self.mixing)


class CategoryModel(ABC, Generic[C]):
    """P(report | category) of one question's categories, and all that follows from it.

    A new mechanism brings a subclass, made known by `register` under the mechanism's kind.
    """

    # --- from a question ------------------------------------------------------------------------

    @classmethod
    @abstractmethod
    def of(cls, candidates: Candidates) -> CategoryModel[C]:
        """The model of these candidates: of the options, where the question has them."""

    # --- marginals ------------------------------------------------------------------------------

    @abstractmethod
    def counter(self) -> Callable[[Column], C]:
        """What counts a batch of reports for the marginal; small, so that it can be sent."""

    @abstractmethod
    def counts_from_bits(self, counts: BitCounts) -> C:
        """The same from counts of all outcomes: bits, or one bit for each number."""

    @abstractmethod
    def marginal(self, counts: C, *, alpha: float, correction: Correction) -> Marginal:
        """How common each candidate is."""

    # --- joint tables ---------------------------------------------------------------------------

    @abstractmethod
    def fitted(
        self, question: str, count: Callable[[], C], settings: TableSettings
    ) -> tuple[CategoryModel[C], Axis]:
        """The model of the categories that a joint table gets, and how they are shown.

        question : its name, for errors; count : counts the reports, where the marginal chooses
        """

    @abstractmethod
    def likelihood(
        self, bits: Bytes, stratum: Integers, arrays: ArrayKernels = CPU_KERNELS
    ) -> Likelihood:
        """P(report | category), one row for each report: what was sent u8[N, B], and [N]."""

    @abstractmethod
    def components(self) -> Components:
        """The categories as mixtures of components, for tables from counts."""


AnyModel = CategoryModel[Any]
"""The model of some question; its counts are its own business."""

MODELS: dict[str, type[AnyModel]] = {}
"""The model of each kind of mechanism that was registered."""
_MODULES = {"bloom": "bloom", "localhash": "local_hash", "choice": "options", "boolean": "options"}
"""Modules of this package that register a kind when they are imported."""


def register(kind: str, model: type[AnyModel]) -> None:
    """Decode questions that are reported by this kind of mechanism with this model."""
    MODELS[kind] = model


def model_of(candidates: Candidates) -> AnyModel:
    """The model of a question's candidates."""
    kind = candidates.question.protocol.mechanisms[0].kind
    if kind not in MODELS and kind in _MODULES:
        import_module(f"deniable.inference.models.{_MODULES[kind]}")
    if kind not in MODELS:
        raise InputError(
            f"question {candidates.question.name!r} is reported by {kind!r}, which has no category "
            "model: register one with deniable.inference.models.register"
        )
    return MODELS[kind].of(candidates)


def informative_rows(column: Column, strata: Mask, strata_size: int = 1) -> Column:
    """The reports of strata that say something of some candidate.

    strata : bool[S]; strata_size : how many of the column's strata each of them stands for
    """
    if strata.all():
        return column
    rows = strata[column.stratum // strata_size]
    return replace(
        column, bits=column.bits[rows], slot=column.slot[rows], cohort=column.cohort[rows]
    )
