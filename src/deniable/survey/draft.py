"""A survey as a person would begin to write it: TOML with a comment at every choice.

`init` fills one in from answers, `plan` from what it recommends. What a draft leaves out, the rule
of `defaults` fills in from ε when the file is read.
"""

from __future__ import annotations

import datetime as dt
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from deniable.survey.survey import Survey, check_name

OWNER_PLACEHOLDER = "YOUR NAME, and how to reach you"
DESCRIPTION_PLACEHOLDER = "WHAT IS ASKED AND WHY, for those who are asked"

HEAD = """\
# A survey for deniable. docs/reference/survey.md describes every setting.
# Next: deniable check {file}               names mistakes, says what is promised and what it costs
#       deniable check {file} -o survey.json   publishes it for clients

name = {name}
version = 1                  # raise it with every change
owner = {owner}
description = {description}
expires = {expires}         # the last day on which a client answers
collect = {collect}
"""
COLLECT = {
    "once": "# one report a client; epsilon is what that report tells",
    "repeatedly": "# any number of reports; epsilon is what all tell of an unchanging value",
}
KINDS = {
    "string": "# any text; estimated for strings that you list",
    "choice": "# one of the options",
    "boolean": "# yes or no; no answer counts as no",
}


@dataclass(frozen=True)
class DraftQuestion:
    """One question; settings : further ones of its table; dictionary : settings of an unknown one.

    Each setting may be a pair of its value and a comment.
    """

    name: str
    kind: str
    epsilon: float
    description: str = ""
    settings: Mapping[str, object] = field(default_factory=dict)
    dictionary: Mapping[str, object] | None = None

    def __post_init__(self) -> None:
        check_name("question", self.name)

    def toml(self) -> str:
        """Its tables."""
        kind = KINDS[self.kind] if self.dictionary is None else "# any text"
        lines = [f"[questions.{self.name}]", _line("kind", self.kind, kind)]
        if self.description:
            lines.append(_line("description", self.description))
        lines.append(
            _line("epsilon", self.epsilon, "# nats: less is more private, more is more precise")
        )
        lines += [_setting(key, value) for key, value in self.settings.items()]
        if self.dictionary is not None:
            lines += [
                "",
                f"[questions.{self.name}.dictionary]  # strings that nobody lists can be learnt",
                *(_setting(key, value) for key, value in self.dictionary.items()),
            ]
        return "\n".join(lines) + "\n"


@dataclass(frozen=True)
class Draft:
    """A survey that is still being written."""

    name: str
    questions: tuple[DraftQuestion, ...]
    owner: str = OWNER_PLACEHOLDER
    description: str = DESCRIPTION_PLACEHOLDER
    expires: dt.date | None = None
    collect: str = "once"

    def toml(self, file: str = "survey.toml") -> str:
        """The file, with comments."""
        expires = self.expires or dt.date.today() + dt.timedelta(days=365)
        head = HEAD.format(
            file=file,
            name=text(self.name),
            owner=text(self.owner),
            description=text(self.description),
            expires=expires.isoformat(),
            collect=f"{text(self.collect):20} {COLLECT[self.collect]}",
        )
        return "\n".join([head, *(question.toml() for question in self.questions)])

    def survey(self) -> Survey:
        """As the file would be read; SurveyError if it has mistakes."""
        return Survey.from_toml(self.toml())


def text(value: str) -> str:
    r"""A TOML string, on one line whatever is in it.

    >>> text('a "quoted" word\n')
    '"a \\"quoted\\" word\\n"'
    """
    # JSON's escapes are TOML's too; TOML also wants DEL escaped.
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def survey_name(file: str) -> str:
    """A name for the survey in a file of this name.

    >>> survey_name("Home Pages.toml"), survey_name("2027.toml")
    ('home-pages', 'survey')
    """
    stem = re.sub(r"[^a-z0-9_-]+", "-", file.lower().removesuffix(".toml")).strip("-")[:64]
    return stem if stem[:1].isalpha() else "survey"


def _setting(key: str, value: object) -> str:
    return _line(key, *value) if isinstance(value, tuple) else _line(key, value)


def _line(key: str, value: object, comment: str = "") -> str:
    shown = text(value) if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return f"{f'{key} = {shown}':28} {comment}".rstrip()
