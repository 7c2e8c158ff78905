"""Write the survey file that describes the reports of google/rappor's clients."""

from __future__ import annotations

import datetime as dt
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from deniable.errors import InputError
from deniable.rappor.csv_files import csv_rows
from deniable.rappor.files import SCHEMA_HEADER, Params, read_metric, read_params
from deniable.survey import Survey
from deniable.survey.draft import survey_name, toml_value
from deniable.survey.survey import check_name

SCHEMES = {client: f"rappor-{client}" for client in ("python", "cpp", "java")}
"""Hashing scheme of each client."""
HEAD = """\
# Reports of google/rappor's clients. docs/reference/survey.md describes every setting.
name = {name}
version = 1
owner = {owner}
description = "Reports of clients that were deployed with google/rappor"
expires = {expires}  # no new client answers this survey; an import does not check the day
collect = "{collect}"
"""
QUESTION = """
[questions.{name}]
kind = "{kind}"
"""


@dataclass(frozen=True)
class RapporQuestion:
    """One question: its name, its kind (string or boolean), and the parameters of its reports."""

    name: str
    kind: str
    params: Params

    def __post_init__(self) -> None:
        check_name("question", self.name)

    def toml(self, client: str) -> str:
        """Return the table of the question; client : python, cpp or java."""
        drawn = drawn_noise(self.params, client)
        lines = QUESTION.format(name=self.name, kind=self.kind)
        if self.kind == "string":
            lines += f"scheme = {toml_value(SCHEMES[client])}\n"
            lines += f"bits = {drawn.k}\nhashes = {drawn.h}\ncohorts = {drawn.m}\n"
        for name in "pqf":
            asked, got = getattr(self.params, name), getattr(drawn, name)
            rounded = "" if asked == got else f"  # {asked}, as the {client} client rounds it"
            lines += f"{name} = {got}{rounded}\n"
        return lines


def drawn_noise(params: Params, client: str) -> Params:
    """Return the parameters with the probabilities that a client really draws with.

    The C++ client compares random bytes with ⌊256p⌋, ⌊256q⌋ and random 7-bit numbers with ⌊128f⌋;
    the Python client compares 7-bit numbers with 128f.
    """
    if client == "python":
        return replace(params, f=math.ceil(128 * params.f) / 128)
    if client == "java":
        return params
    p, q = (math.floor(256 * share) / 256 for share in (params.p, params.q))
    try:
        return replace(params, p=p, q=q, f=math.floor(128 * params.f) / 128)
    except InputError as error:
        raise InputError(
            f"the C++ client rounds p and q down to multiples of 1/256, f to one of 1/128: {error}"
        ) from None


def question_name(text: str) -> str:
    """Return the name of a variable of google/rappor as that of a question.

    >>> question_name("domain"), question_name("flag..HTTPS"), question_name("3")
    ('domain', 'flag-https', 'q-3')
    """
    name = re.sub(r"[^a-z0-9_-]+", "-", text.lower()).strip("-")[:60]
    return name if name[:1].isalpha() else f"q-{name}"


def read_questions(
    path: Path, *, question: str, metric: str | None, params_dir: Path | None
) -> tuple[str, list[RapporQuestion]]:
    """Return the name and the questions of a metric of a schema, or "" and that of a params.csv.

    question : name of the question of a parameter file
    params_dir : folder of the parameter files of a schema; by default that of the schema
    """
    rows = csv_rows(path)
    if not rows or rows[0][1] != SCHEMA_HEADER:
        return "", [RapporQuestion(question, "string", read_params(path))]
    variables = read_metric(path, metric)
    folder = path.parent if params_dir is None else params_dir
    found = [
        RapporQuestion(question_name(v.name), v.kind, read_params(folder / f"{v.params}.csv"))
        for v in variables
    ]
    if len({q.name for q in found}) != len(found):
        names = ", ".join(f"{v.name!r}" for v in variables)
        raise InputError(f"{path}: rename variables, of which two become one question: {names}")
    return variables[0].metric, found


def survey_toml(name: str, owner: str, questions: Sequence[RapporQuestion], client: str) -> str:
    """Return the survey file of these questions; raise SurveyError if it is not valid."""
    permanent = all(drawn_noise(q.params, client).f > 0 for q in questions)
    head = HEAD.format(
        name=toml_value(survey_name(name)),
        owner=toml_value(owner),
        expires=dt.date.today().isoformat(),
        collect="repeatedly" if permanent else "once",
    )
    text = head + "".join(question.toml(client) for question in questions)
    Survey.from_toml(text)
    return text
