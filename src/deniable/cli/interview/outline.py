"""What a survey shall ask, as the options or the answers of `deniable init` give it."""

from __future__ import annotations

import datetime as dt
import math
from dataclasses import dataclass

from deniable.survey.draft import DESCRIPTION_PLACEHOLDER, OWNER_PLACEHOLDER, Draft, DraftQuestion

DEFAULT_EPSILON = {"string": 3.0, "unknown": 4.0, "choice": 2.0, "number": 2.0, "boolean": 1.0}
"""ε of a question by its kind; a given total is divided in these proportions."""


DEFAULT_BINS = 16
"""Number of bins of a number question, unless it is given."""


@dataclass(frozen=True)
class OutlineBins:
    """The range of a number question.

    Parameters
    ----------
    low, high : float
        Smallest and largest number that is told apart from those beyond it.
    bins : int, default 16
        Number of bins of equal width.
    unit : str, default ""
        Unit of the numbers.
    """

    low: float
    high: float
    bins: int = DEFAULT_BINS
    unit: str = ""

    def settings(self) -> dict[str, object]:
        """Return the settings of the survey file."""
        clamped = "# smaller and larger numbers count in the first and last bin"
        written: dict[str, object] = {
            "low": _short(self.low),
            "high": (_short(self.high), clamped),
            "bins": (self.bins, '# of equal width; scale = "log" makes them of equal ratio'),
        }
        return {**written, "unit": self.unit} if self.unit else written


def _short(number: float) -> float:
    """Return a whole number as an integer, which a file shows without a decimal point."""
    return int(number) if number == int(number) else number


@dataclass(frozen=True)
class OutlineQuestion:
    """One question of an outline.

    Parameters
    ----------
    name : str
        Name of the question.
    kind : {"string", "unknown", "choice", "number", "boolean"}
        Kind of the question; "unknown" is a string question with a dictionary.
    options : tuple of str, default ()
        Options of a choice.
    bins : OutlineBins, optional
        Range of a number, and its bins.
    max_length : int, default 20
        Maximum length of unknown strings.
    alphabet : str, default "a-z0-9._-"
        Characters of unknown strings.
    """

    name: str
    kind: str
    options: tuple[str, ...] = ()
    bins: OutlineBins | None = None
    max_length: int = 20
    alphabet: str = "a-z0-9._-"

    def draft(self, epsilon: float) -> DraftQuestion:
        """Return the question of the survey file, with this ε."""
        if self.kind == "choice":
            settings = {"options": list(self.options)}
            return DraftQuestion(self.name, "choice", epsilon, settings=settings)
        if self.bins is not None:
            return DraftQuestion(self.name, "number", epsilon, settings=self.bins.settings())
        if self.kind != "unknown":
            return DraftQuestion(self.name, self.kind, epsilon)
        prefixes = "# each client reports one prefix; deniable discover reads them"
        return DraftQuestion(
            self.name,
            "string",
            epsilon,
            settings={"mechanism": "localhash"},
            dictionary={
                "protocol": ("prefixes", prefixes),
                "max_length": (self.max_length, "# longer strings are cut"),
                "alphabet": (self.alphabet, '# or "bytes" for any text at all'),
            },
        )


@dataclass(frozen=True)
class Outline:
    """What is known about a survey before its file is written; None if it is not known.

    Parameters
    ----------
    name : str
        Name of the survey.
    owner, description : str or None
        As in the survey file.
    expires : datetime.date or None
        Last day of the survey.
    collect : {"once", "repeatedly"} or None
        How often a client reports.
    questions : tuple of OutlineQuestion
        The questions; while there are none, a yes-or-no question stands for them.
    epsilon : float or None
        Total ε of all questions; None if each has the usual ε of its kind.
    """

    name: str | None = None
    owner: str | None = None
    description: str | None = None
    expires: dt.date | None = None
    collect: str | None = None
    questions: tuple[OutlineQuestion, ...] = ()
    epsilon: float | None = None

    @property
    def usual_epsilon(self) -> float:
        """Total ε if each question has the usual ε of its kind."""
        return sum(DEFAULT_EPSILON[question.kind] for question in self.questions)

    def draft(self, name: str = "survey") -> Draft:
        """Return the survey file, with defaults for what is not known."""
        collect = self.collect or "once"
        asked = self.questions or (OutlineQuestion("answer", "boolean"),)
        drafts = []
        for question in asked:
            own = DEFAULT_EPSILON[question.kind]
            if self.epsilon is not None:
                own *= self.epsilon / sum(DEFAULT_EPSILON[each.kind] for each in asked)
                # Rounded down, so that the questions never exceed the total.
                own = math.floor(1e6 * own) / 1e6 or own
            drafts.append(question.draft(own))
        return Draft(
            self.name or name,
            tuple(drafts),
            self.owner or OWNER_PLACEHOLDER,
            self.description or DESCRIPTION_PLACEHOLDER,
            self.expires,
            collect,
        )
