"""Read reports of google/rappor's clients as reports of a survey."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from deniable.columns import ReportBatch
from deniable.columns.batch import column_sizes
from deniable.errors import InputError, did_you_mean
from deniable.mechanisms import Bloom
from deniable.rappor.reports import ReportsFile
from deniable.rappor.survey_file import SCHEMES, question_name
from deniable.survey import Question, Survey

ORIGIN = "reports of google/rappor's clients"


@dataclass(frozen=True, eq=False)
class ImportedFile:
    """The reports of one file, and the ids of their clients, which a survey's reports lack."""

    batch: ReportBatch
    clients: NDArray[np.bytes_]


def read_files(
    paths: Sequence[Path], survey: Survey, columns: Mapping[str, str]
) -> list[ImportedFile]:
    """Read reports files as reports of a survey; raise InputError if anything is wrong with one.

    columns : bit column of some questions; of the others, it is the column of the same name
    """
    for name in columns:
        survey.question(name)  # raises if there is none
    for question in survey.questions:
        _check_question(question)
    return [_read_file(path, survey, columns) for path in paths]


def count_clients(files: Sequence[ImportedFile]) -> int:
    """Return the number of different client ids."""
    ids = pa.chunked_array([pa.array(file.clients, pa.binary()) for file in files])
    return int(pc.count_distinct(ids).as_py())


def _read_file(path: Path, survey: Survey, columns: Mapping[str, str]) -> ImportedFile:
    """Return the reports of one file."""
    file = ReportsFile(path)
    chosen = {q.name: _column_of(q, survey, file, columns) for q in survey.questions}
    if len(set(chosen.values())) != len(chosen):
        pairs = ", ".join(f"{name}={column}" for name, column in chosen.items())
        raise InputError(f"{file.name}: two questions have the same column ({pairs})")
    mechanisms = {q.name: q.protocol.mechanisms[0] for q in survey.questions}
    # All questions share the cohort, and booleans ignore it.
    cohorts = min((m.cohorts for m in mechanisms.values() if m.kind == "bloom"), default=None)
    reports = file.read(
        columns=list(chosen.values()),
        cohorts=cohorts,
        bits={column: mechanisms[name].width for name, column in chosen.items()},
    )
    count = len(reports)
    batch = ReportBatch(
        survey,
        reports.cohort if cohorts is not None else np.zeros(count, np.uint16),
        tuple(np.empty((count, fields), np.uint8) for _, fields, _ in column_sizes(survey)),
        tuple((reports.columns[column][0],) for column in chosen.values()),
        ORIGIN,
    )
    return ImportedFile(batch, reports.clients)


def _check_question(question: Question) -> None:
    """Raise InputError unless google/rappor's clients can have answered the question."""
    mechanism, *others = question.protocol.mechanisms
    where = f"question {question.name!r}"
    if others or question.protocol.clear or mechanism.kind not in ("bloom", "boolean"):
        raise InputError(
            f"{where}: clients of google/rappor report only booleans, and strings with a Bloom "
            "filter and without a dictionary"
        )
    if isinstance(mechanism, Bloom) and mechanism.scheme_name not in SCHEMES.values():
        raise InputError(
            f"{where} hashes strings with the scheme {mechanism.scheme_name}, which no client of "
            f"google/rappor does: set scheme to {', '.join(SCHEMES.values())}"
        )


def _column_of(
    question: Question, survey: Survey, file: ReportsFile, columns: Mapping[str, str]
) -> str:
    """Return the bit column with the reports of a question."""
    if question.name in columns:
        file.check_column(columns[question.name])
        return columns[question.name]
    option = f"--column {question.name}=COLUMN"
    named = [column for column in file.columns if question_name(column) == question.name]
    if len(named) == 1:
        return named[0]
    if len(survey.questions) == 1 and not named:
        return file.main_column(option)
    raise InputError(
        f"{file.name} has the bit columns {', '.join(file.columns) or 'none'}: say with {option} "
        f"which one answers {question.name!r}.{did_you_mean(question.name, file.columns)}"
    )
