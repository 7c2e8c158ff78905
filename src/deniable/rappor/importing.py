"""Make a survey, reports and lists of candidates from the files of google/rappor."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from deniable.analysis.source import check_distinct
from deniable.columns import ReportBatch, write
from deniable.columns.batch import column_sizes
from deniable.compute.progress import report_progress
from deniable.errors import InputError, did_you_mean
from deniable.rappor.files import LARGEST_COUNT, Params, Variable, read_map, read_params
from deniable.rappor.reports import read_reports
from deniable.survey import Survey
from deniable.survey.survey import suggested_name

ORIGIN = "reports of google/rappor's clients"
HEAD = """\
# Reports of google/rappor's clients. Nobody can answer this survey: it is for their analysis only.
name = "{name}"
version = 1
owner = "the owner of the google/rappor clients"
description = "Reports of clients that were deployed with google/rappor"
expires = {expires}
collect = "{collect}"
"""
STRING = """\
scheme = "rappor-{client}"
bits = {params.k}
hashes = {params.h}
cohorts = {params.m}
"""


@dataclass(frozen=True)
class RapporQuestion:
    """One question.

    column : column of its reports; kind : string or boolean
    candidates : strings that clients may have; none for a boolean
    """

    column: str
    kind: str
    params: Params
    candidates: Sequence[str] = ()

    @property
    def name(self) -> str:
        """Name of the question in the survey."""
        return suggested_name(self.column, "-") or "value"

    @property
    def candidates_file(self) -> str:
        """Name of the file of its candidates."""
        return f"candidates-{self.name}.txt"

    @property
    def width(self) -> int:
        """Number of bits in its column."""
        return self.params.k if self.kind == "string" else 1

    def toml(self, client: str) -> str:
        """Return the table of the question; client : python, cpp or java."""
        drawn = drawn_noise(self.params, client)
        text = f'\n[questions.{self.name}]\nkind = "{self.kind}"\n'
        if self.kind == "string":
            text += STRING.format(client=client, params=drawn)
        for name in "pqf":
            asked, got = getattr(self.params, name), getattr(drawn, name)
            rounded = "" if asked == got else f"  # {asked}, as the {client} client rounds it"
            text += f"{name} = {got}{rounded}\n"
        return text


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


def survey_toml(
    name: str, questions: Sequence[RapporQuestion], client: str, earlier: Survey | None
) -> str:
    """Return the survey file of these questions.

    earlier : survey of an earlier import, whose name and last day it gets: then the two are equal
    """
    names = [question.name for question in questions]
    if len(set(names)) != len(names):
        columns = ", ".join(repr(question.column) for question in questions)
        raise InputError(f"rename variables, of which two become one question: {columns}")
    permanent = all(drawn_noise(question.params, client).f > 0 for question in questions)
    head = HEAD.format(
        name=earlier.name if earlier else suggested_name(name, "-") or "survey",
        expires=earlier.expires if earlier else dt.date.today(),
        collect="repeatedly" if permanent else "once",
    )
    text = head + "".join(question.toml(client) for question in questions)
    if earlier and Survey.from_toml(text) != earlier:
        raise InputError(
            "the survey of the earlier import describes other reports: give the same parameters, "
            "schema and client as then, and its survey.toml or survey.json unchanged"
        )
    return text


def one_string(params_file: Path, map_file: Path, client: str) -> list[RapporQuestion]:
    """Return the question that reports of one string answer."""
    params = read_params(params_file)
    return [RapporQuestion("value", "string", params, read_map(map_file, params, client))]


def variables_of(
    variables: Sequence[Variable], params_dir: Path, maps: Mapping[str, Path], client: str
) -> list[RapporQuestion]:
    """Return the questions that association reports answer.

    maps : map of each variable that is a string, by its name
    """
    strings = [variable.name for variable in variables if variable.kind == "string"]
    if unknown := sorted(maps.keys() - set(strings)):
        raise InputError(
            f"{unknown[0]!r} of --maps is not a string of the schema, which has "
            f"{', '.join(strings) or 'none'}.{did_you_mean(unknown[0], strings)}"
        )
    if missing := [name for name in strings if name not in maps]:
        raise InputError(f"{missing[0]} is a string: give its map with --maps {missing[0]}=FILE")
    questions = []
    for variable in variables:
        params = read_params(params_dir / f"{variable.params}.csv")
        strings = read_map(maps[variable.name], params, client) if variable.name in maps else []
        questions.append(RapporQuestion(variable.name, variable.kind, params, strings))
    return questions


def import_reports(
    paths: Sequence[Path], text: str, questions: Sequence[RapporQuestion], folder: Path
) -> tuple[int, int]:
    """Write a survey file, its published form, candidates, and the reports in these files.

    Return the numbers of reports and of clients. If a report is wrong, nothing is written.
    """
    check_distinct(list(paths))
    survey = Survey.from_toml(text)
    widths = {question.column: question.width for question in questions}
    strings = [question.params.m for question in questions if question.kind == "string"]
    cohorts = min(strings, default=LARGEST_COUNT)  # questions share it, and booleans ignore it
    batches, clients = [], []
    for done, path in enumerate(paths, 1):
        reports = read_reports(path, widths, cohorts)
        clients += reports.clients.chunks
        count = len(reports.cohort)
        cohort = reports.cohort if strings else np.zeros(count, np.uint16)
        clear = tuple(np.empty((count, fields), np.uint8) for _, fields, _ in column_sizes(survey))
        bits = tuple((column,) for column in reports.bits)
        batches.append(ReportBatch(survey, cohort, clear, bits, ORIGIN))
        report_progress("reading", done / len(paths))
    folder.mkdir(parents=True, exist_ok=True)
    total = write(folder / "reports.parquet", batches)
    (folder / "survey.toml").write_text(text, "utf-8", newline="\n")
    survey.publish(folder / "survey.json")
    for question in questions:
        if question.candidates:
            lines = "".join(f"{string}\n" for string in question.candidates)
            (folder / question.candidates_file).write_text(lines, "utf-8", newline="\n")
    return total, int(pc.count_distinct(pa.chunked_array(clients)).as_py())
