"""The interface of category models, whichever mechanism made the reports.

A category model says how probable each report is, given the category of the client's value. The
whole analysis works through this interface: a mechanism can be decoded, associated and tested once
a model is registered for its kind. This package has four models: strings in Bloom filters
(`bloom`), strings reported by local hashing (`local_hash`), options with one bit each (`options`),
and options reported as a subset of them (`subset`).

A stratum is a slot of the question's first part together with a cohort, numbered
slot·cohorts + cohort.
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
from deniable.errors import InputError
from deniable.formatting import percent
from deniable.inference.joint.unlisted import Unlisted
from deniable.inference.marginal.bit_counts import BitCounts, Repetition
from deniable.inference.marginal.detection import Correction
from deniable.inference.models.likelihood import Likelihood
from deniable.kernels.array_types import Bytes, Floats, Indices, Integers, Mask
from deniable.protocols.alphabet import PAD
from deniable.results.joint import OTHER
from deniable.results.marginal import Marginal
from deniable.survey import Question

OtherModel = Literal["mixture", "product"]


@dataclass(frozen=True, eq=False)
class Candidates:
    """Values of a question that an analysis estimates.

    Parameters
    ----------
    question : Question
        The question.
    names : tuple of str
        The m candidates, or the options, without duplicates.
    symbols : uint8 array of shape (m, M), optional
        Symbols of each string, if the protocol works on symbols.
    """

    question: Question
    names: tuple[str, ...]
    symbols: Bytes | None = None

    @cached_property
    def informative(self) -> Mask:
        """Whether reports of a slot are evidence for a candidate, bool[slots, m].

        All reports of a `single` question are, and so is the full-string part of an `ngrams`
        question. In a `prefixes` question, a prefix length is evidence for the strings that end
        before it: their padding is part of the prefix, so that the prefix belongs to one string
        only. A prefix shorter than the string is no evidence for it: unlisted strings may share it.
        """
        protocol = self.question.protocol
        longest = [protocol.longest_identified(i) for i in range(len(protocol.parts[0].slots))]
        out = np.ones((len(longest), len(self.names)), bool)
        for slot, limit in enumerate(longest):
            if limit is not None and self.symbols is not None:
                out[slot] = (self.symbols != PAD).sum(axis=1) <= limit
        return out

    def tokens(self, slot: int) -> list[bytes]:
        """Return the bytes that a client hashes in a slot if it has each candidate."""
        protocol = self.question.protocol
        if self.symbols is None:
            return [protocol.token(name, 0, slot) for name in self.names]
        return [row.tobytes() for row in self.symbols[:, : protocol.symbols_reported(slot)]]


class ReportCounts(Protocol):
    """Counts of reports from which a marginal is estimated."""

    @property
    def reports(self) -> int:
        """Number of reports that were counted."""
        ...

    def __add__(self, other: Self, /) -> Self:
        """Return the counts of two disjoint sets of reports together."""
        ...

    def repeated(self, repetition: Repetition) -> Self:
        """Return the same counts of clients that sent several reports each."""
        ...


C = TypeVar("C", bound=ReportCounts)
Counter = Callable[[Column], ReportCounts]
"""Function that counts the reports of one question in a batch."""


@dataclass(frozen=True)
class TableSettings:
    """Which categories a joint table gets; see `associate`.

    Parameters
    ----------
    top : int
        Maximum number of strings of a question that are shown.
    other : bool, "mixture" or "product"
        Model of all other values; False leaves them out.
    fitted : int, optional
        Number of strings that are fitted. Those beyond `top` are added up into Other afterwards.
    alpha : float
        Significance level at which a string must be detected.
    required : tuple of str
        Strings that are fitted besides the `top`, whether they are detected or not.
    tested : bool
        Whether strings must be detected; else those whose interval lies above 0 are fitted.
    """

    top: int = 10
    other: bool | OtherModel = True
    fitted: int | None = None
    alpha: float = 0.05
    required: tuple[str, ...] = ()
    tested: bool = True

    def __post_init__(self) -> None:
        if self.top < 0:
            raise InputError(f"top must be at least 0, got {self.top}")


@dataclass(frozen=True, eq=False)
class Axis:
    """Categories of one question in a joint table: those fitted, and those shown.

    Parameters
    ----------
    labels : tuple of str
        Labels of the fitted categories.
    shown : tuple of str
        Labels of the categories that are shown.
    groups : intp array, one entry per fitted category
        Index of the shown category that each fitted category is added to.
    meaning : str
        What the last category stands for; empty if it is one of the values.
    unlisted : Unlisted, optional
        What the marginal says about unlisted strings, if the last fitted category is Other.
    """

    labels: tuple[str, ...]
    shown: tuple[str, ...]
    groups: Indices
    meaning: str = ""
    unlisted: Unlisted | None = None

    @classmethod
    def whole(cls, labels: Sequence[str], meaning: str = "") -> Axis:
        """Return an axis on which all fitted categories are shown."""
        return cls(tuple(labels), tuple(labels), np.arange(len(labels)), meaning)

    @property
    def ends_with_other(self) -> bool:
        """Whether the last category shown is Other."""
        return self.shown[-1] == OTHER

    def last_category(self, share: float) -> str:
        """Say what the last category stands for; of Other also its share of clients."""
        about = f", about {percent(share)} of clients" if self.ends_with_other else ""
        return self.meaning + about if self.meaning else ""


@dataclass(frozen=True, eq=False)
class Components:
    """Probabilities of reports given each category, as mixtures of simple components.

    A component is a listed string or a random unlisted string. Given the component, bits are
    independent, or exactly one of them is set (a number instead of bits). A category is a mixture
    of components: a listed value is one component; Other is a mixture of the strings that the
    marginal saw outside the categories, and of unlisted ones.

    Parameters
    ----------
    theta : callable
        Returns P(bit = 1 | component) in the given strata, float64[S, C, k].
    mixing : float64 array of shape (m, C)
        Shares of the components in each category; rows sum to 1.
    exclusive : bool
        Whether a report sets exactly one bit.
    contrast_variance : float64 array of shape (C, k), optional
        If all reports set the same number of bits: numbers v such that the variance of Σ a_b x_b
        given component c is Σ a_b² v[c, b], for all numbers a with the sum 0. None if bits are
        independent, or exclusive.
    """

    theta: Callable[[Indices], Floats]
    mixing: Floats
    exclusive: bool = False
    contrast_variance: Floats | None = None


class CategoryModel(ABC, Generic[C]):
    """Probabilities of reports given each category of one question, and what follows from them.

    A new mechanism needs a subclass, which `register` makes known under the kind of the mechanism.
    The type parameter is the type of its counts, for instance `BitCounts`.

    See Also
    --------
    register : Make a model known.

    Examples
    --------
    `OptionModel` is the model of choices and booleans:

    >>> import numpy as np
    >>> from deniable.inference.models.options import OptionModel
    >>> model = OptionModel(("Firefox", "Safari"), p=0.25, q=0.75)
    >>> report = np.array([[0b01]], np.uint8)
    >>> model.likelihood(report, np.zeros(1, int)).rows.round(2)
    array([[1.  , 0.11]], dtype=float32)
    """

    # --- construction ---------------------------------------------------------------------------

    @classmethod
    @abstractmethod
    def of(cls, candidates: Candidates) -> CategoryModel[C]:
        """Return the model of a question's candidates.

        Parameters
        ----------
        candidates : Candidates
            Question and candidates; the options, if the question has some.

        Returns
        -------
        CategoryModel
            The model.
        """

    # --- marginals ------------------------------------------------------------------------------

    @abstractmethod
    def counter(self) -> Callable[[Column], C]:
        """Return a function that counts the reports of a batch.

        The function is sent to workers, so it should be small.

        Returns
        -------
        callable
            Function of a `Column` that returns counts.
        """

    @abstractmethod
    def counts_from_bits(self, counts: BitCounts) -> C:
        """Convert counts of all outcomes to the counts of this model.

        Parameters
        ----------
        counts : BitCounts
            Number of reports with each bit; or with each number, for a mechanism that reports
            numbers.

        Returns
        -------
        C
            The same counts as `counter` gives.
        """

    @abstractmethod
    def marginal(self, counts: C, *, alpha: float, correction: Correction) -> Marginal:
        """Estimate how common each candidate is.

        Parameters
        ----------
        counts : C
            Counts of all reports.
        alpha : float
            Significance level.
        correction : {"holm", "bonferroni", "fdr"} or None
            How `alpha` accounts for several candidates.

        Returns
        -------
        Marginal
            Estimates, intervals and tests.
        """

    def covariance(self, marginal: Marginal) -> Floats:
        """Return the covariance of the estimated shares of all candidates.

        Sums of shares need it, such as the mean and quantiles of a number, whose bins are the
        candidates. Models of mechanisms that report options define it.

        Parameters
        ----------
        marginal : Marginal
            What `marginal` returned, with its number of reports per client.

        Returns
        -------
        ndarray of float64, shape (candidates, candidates)
            Its diagonal holds the squares of the standard errors.

        Raises
        ------
        InputError
            If this model does not define it.
        """
        raise InputError(f"{type(self).__name__} has no covariance of all candidates")

    # --- joint tables ---------------------------------------------------------------------------

    @abstractmethod
    def fitted(
        self, question: str, count: Callable[[], C], settings: TableSettings
    ) -> tuple[CategoryModel[C], Axis]:
        """Choose the categories of this question in a joint table.

        Parameters
        ----------
        question : str
            Name of the question, for error messages.
        count : callable
            Counts the reports, if the marginal is needed to choose categories.
        settings : TableSettings
            Which categories the table gets.

        Returns
        -------
        tuple of CategoryModel and Axis
            Model of the fitted categories, and how they are shown.
        """

    @abstractmethod
    def likelihood(self, bits: Bytes, stratum: Integers) -> Likelihood:
        """Return P(report | category) for each report.

        Parameters
        ----------
        bits : uint8 array of shape (N, B)
            The reports' bytes.
        stratum : int array of shape (N,)
            Stratum of each report.

        Returns
        -------
        Likelihood
            One row per report.
        """

    @abstractmethod
    def components(self) -> Components:
        """Return the categories as mixtures of components, for tables from counts.

        Returns
        -------
        Components
            The mixtures.
        """


AnyModel = CategoryModel[Any]
"""A model with any type of counts."""

MODELS: dict[str, type[AnyModel]] = {}
"""Registered models, by the kind of mechanism."""
_MODULES = {
    "bloom": "bloom",
    "bloom-asymmetric": "bloom",
    "localhash": "local_hash",
    "localhash-permanent": "local_hash",
    "choice": "options",
    "choice-asymmetric": "options",
    "boolean": "options",
    "subset": "subset",
}
"""Modules of this package that register a model for a kind when they are imported."""


def register(kind: str, model: type[AnyModel]) -> None:
    """Use a category model for questions that a kind of mechanism reports.

    Parameters
    ----------
    kind : str
        Kind of the mechanism.
    model : type
        Subclass of `CategoryModel`.

    Examples
    --------
    >>> from deniable.inference.models import register
    >>> from deniable.inference.models.options import OptionModel
    >>> register("choice", OptionModel)
    """
    MODELS[kind] = model


def model_of(candidates: Candidates) -> AnyModel:
    """Return the model of a question's candidates."""
    kind = candidates.question.protocol.mechanisms[0].kind
    if kind not in MODELS and kind in _MODULES:
        import_module(f"deniable.inference.models.{_MODULES[kind]}")
    if kind not in MODELS:
        raise InputError(
            f"question {candidates.question.name!r} uses the mechanism {kind!r}, which has no "
            "category model: register one with deniable.inference.models.register"
        )
    return MODELS[kind].of(candidates)


def informative_rows(column: Column, strata: Mask, strata_size: int = 1) -> Column:
    """Return the reports of strata that are evidence for some candidate.

    strata : bool[S]; strata_size : number of strata of the column that each of them covers
    """
    if strata.all():
        return column
    rows = strata[column.stratum // strata_size]
    return replace(
        column, bits=column.bits[rows], slot=column.slot[rows], cohort=column.cohort[rows]
    )
