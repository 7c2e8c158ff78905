"""Drafts of survey files: TOML with a comment on every choice.

`deniable init` writes one from its options, `deniable plan` from its recommendation. Settings that
a draft leaves out get their defaults when the file is read.
"""

from __future__ import annotations

import datetime as dt
import json
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field

from deniable.errors import InputError
from deniable.survey.defaults import NEWEST
from deniable.survey.survey import Survey, check_name, suggested_name

MAX_EPSILON = 12.0
"""Largest ε of a question in a draft. A survey file may have more, but hides nothing then."""

OWNER_PLACEHOLDER = "YOUR NAME, and how to reach you"
DESCRIPTION_PLACEHOLDER = "WHAT IS ASKED AND WHY, for those who are asked"

HEAD = """\
# A survey for deniable. docs/reference/survey.md describes every setting.
# Next: deniable check {file}                  finds mistakes, and prints the privacy loss
#       deniable check {file} -o survey.json   also publishes the survey for clients

name = {name}
version = 1                  # increase it with every change
owner = {owner}
description = {description}
expires = {expires}         # last day on which clients answer
collect = {collect}
defaults = {defaults}                 # version of the defaults for what this file leaves out
"""
COLLECT = {
    "once": "# one report per client; epsilon is the privacy loss of that report",
    "repeatedly": "# any number of reports; epsilon limits their total while the value is the same",
}
KINDS = {
    "string": "# any text; estimated for the candidates that you list",
    "choice": "# one of the options",
    "boolean": "# yes or no; no answer counts as no",
    "number": "# any number; the bin that holds it is reported",
}


@dataclass(frozen=True)
class DraftQuestion:
    """One question of a draft.

    Parameters
    ----------
    name : str
        Name of the question.
    kind : {"string", "choice", "boolean", "number"}
        Kind of the question.
    epsilon : float
        ε in nats.
    description : str, default ""
        What is asked.
    settings : mapping, optional
        Further settings of its table. A value may be a pair of the value and a comment.
    dictionary : mapping or None, default None
        Settings of its dictionary, for discovering strings; None if there is no dictionary.
    """

    name: str
    kind: str
    epsilon: float
    description: str = ""
    settings: Mapping[str, object] = field(default_factory=dict)
    dictionary: Mapping[str, object] | None = None

    def __post_init__(self) -> None:
        check_name("question", self.name)
        if self.epsilon > MAX_EPSILON:
            raise InputError(
                f"epsilon = {self.epsilon:g} would hide nothing about the answers to {self.name}: "
                f"choose at most {MAX_EPSILON:g} per question; 1 to 4 is usual"
            )

    def toml(self) -> str:
        """Return the tables of the question as TOML."""
        kind = KINDS[self.kind] if self.dictionary is None else "# any text"
        lines = [f"[questions.{self.name}]", _line("kind", self.kind, kind)]
        if self.description:
            lines.append(_line("description", self.description))
        lines.append(
            _line(
                "epsilon",
                self.epsilon,
                "# in nats: smaller is more private, larger is more accurate",
            )
        )
        lines += [_line(key, value) for key, value in self.settings.items()]
        if self.dictionary is not None:
            lines += [
                "",
                f"[questions.{self.name}.dictionary]  # unlisted strings can be discovered",
                *(_line(key, value) for key, value in self.dictionary.items()),
            ]
        return "\n".join(lines) + "\n"


@dataclass(frozen=True)
class Draft:
    """A survey file before it is edited.

    Parameters
    ----------
    name : str
        Name of the survey.
    questions : tuple of DraftQuestion
        Its questions.
    owner, description : str
        Placeholders by default, which `deniable check` reports.
    expires : datetime.date or None, default None
        Last day of the survey; None means one year from today.
    collect : {"once", "repeatedly"}, default "once"
        How often a client reports.
    """

    name: str
    questions: tuple[DraftQuestion, ...]
    owner: str = OWNER_PLACEHOLDER
    description: str = DESCRIPTION_PLACEHOLDER
    expires: dt.date | None = None
    collect: str = "once"

    def __post_init__(self) -> None:
        check_name("survey", self.name)
        names = [question.name for question in self.questions]
        if twice := {name for name in names if names.count(name) > 1}:
            raise InputError(
                f"two questions are called {sorted(twice)[0]!r}: give each its own name"
            )

    def toml(self, file: str = "survey.toml") -> str:
        """Return the file, with comments."""
        expires = self.expires or dt.date.today() + dt.timedelta(days=365)
        head = HEAD.format(
            file=shlex.quote(file),
            name=toml_string(self.name),
            owner=toml_string(self.owner),
            description=toml_string(self.description),
            expires=expires.isoformat(),
            defaults=NEWEST,
            collect=f"{toml_string(self.collect):18} {COLLECT[self.collect]}",
        )
        return "\n".join([head, *(question.toml() for question in self.questions)])

    def survey(self) -> Survey:
        """Return the survey in the file; raise SurveyError if it has mistakes."""
        return Survey.from_toml(self.toml())


def toml_string(value: str) -> str:
    r"""Return a text as a TOML string on one line.

    >>> toml_string('a "quoted" word\n')
    '"a \\"quoted\\" word\\n"'
    """
    # TOML has the escapes of JSON, and also requires one for DEL.
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def survey_name(file: str) -> str:
    """Return a survey name for a file of this name.

    >>> survey_name("Home Pages.toml"), survey_name("2027.toml")
    ('home-pages', 'survey')
    """
    return suggested_name(file.lower().removesuffix(".toml"), "-") or "survey"


def _line(key: str, value: object, comment: str = "") -> str:
    """Return one setting with a comment; the value may be a pair of both."""
    if isinstance(value, tuple):
        value, comment = value
    written = (
        toml_string(value) if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    )
    return f"{f'{key} = {written}':28} {comment}".rstrip()
