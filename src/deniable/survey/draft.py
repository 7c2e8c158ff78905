"""Survey files that people go on to edit: TOML with a comment on every choice.

`deniable init` writes one from answers, `deniable plan` from its recommendation. Settings that a
file leaves out get their defaults when it is read.
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
    settings : mapping, optional
        Further settings of its table. A value may be a pair of the value and a comment.
    dictionary : mapping, optional
        Settings of its dictionary, for discovering strings; empty if there is no dictionary.
    """

    name: str
    kind: str
    epsilon: float
    settings: Mapping[str, object] = field(default_factory=dict)
    dictionary: Mapping[str, object] = field(default_factory=dict)

    def __post_init__(self) -> None:
        check_name("question", self.name)
        if self.epsilon > MAX_EPSILON:
            raise InputError(
                f"epsilon = {self.epsilon:g} would hide nothing about the answers to {self.name}: "
                f"choose at most {MAX_EPSILON:g} per question; 1 to 4 is usual"
            )

    def toml(self) -> str:
        """Return the tables of the question as TOML."""
        nats = "# in nats: smaller is more private, larger is more accurate"
        kind = "# any text" if self.dictionary else KINDS[self.kind]
        first = {"kind": (self.kind, kind), "epsilon": (self.epsilon, nats)}
        text = f"[questions.{self.name}]\n{_settings({**first, **self.settings})}"
        if self.dictionary:
            text += f"\n[questions.{self.name}.dictionary]  # unlisted strings can be discovered\n"
        return text + _settings(self.dictionary)


@dataclass(frozen=True)
class Draft:
    """A survey file before it is edited.

    Parameters
    ----------
    name : str
        Name of the survey.
    questions : tuple of DraftQuestion
        Its questions.
    owner, description : str or None
        As in the survey file; if None, placeholders that `deniable check` reports.
    expires : datetime.date or None
        Last day of the survey; None means one year from today.
    collect : {"once", "repeatedly"}
        How often a client reports.
    """

    name: str
    questions: tuple[DraftQuestion, ...]
    owner: str | None = None
    description: str | None = None
    expires: dt.date | None = None
    collect: str = "once"

    def toml(self, file: str = "survey.toml") -> str:
        """Return the file, with comments."""
        head = HEAD.format(
            file=shlex.quote(file),
            name=toml_value(self.name),
            owner=toml_value(self.owner or OWNER_PLACEHOLDER),
            description=toml_value(self.description or DESCRIPTION_PLACEHOLDER),
            expires=self.expires or dt.date.today() + dt.timedelta(days=365),
            collect=f"{toml_value(self.collect):18} {COLLECT[self.collect]}",
            defaults=NEWEST,
        )
        return "\n".join([head, *(question.toml() for question in self.questions)])

    def survey(self) -> Survey:
        """Return the survey in the file; raise SurveyError if it has mistakes."""
        return Survey.from_toml(self.toml())


def toml_value(value: object) -> str:
    r"""Return a text, number or list as TOML on one line.

    >>> toml_value('a "quoted" word\n')
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


def _settings(table: Mapping[str, object]) -> str:
    """Return one line per setting; a value may be a pair of the value and a comment."""
    text = ""
    for key, given in table.items():
        value, comment = given if isinstance(given, tuple) else (given, "")
        text += f"{f'{key} = {toml_value(value)}':28} {comment}".rstrip() + "\n"
    return text
