"""Requests for jobs: read and check their JSON, and write them for the job's process."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import date
from typing import Any

from deniable.collector.api.problems import BAD_JOB, Problem
from deniable.collector.jobs.limits import MAX_CANDIDATES
from deniable.errors import InputError, did_you_mean
from deniable.survey import Survey

VERBS = ("decode", "associate", "discover")
PERIODS = ("day", "week")


@dataclass(frozen=True)
class JobRequest:
    """A request for an analysis; raises Problem if it is not valid.

    verb : "decode", "associate" or "discover"
    survey, version : name and version of the survey; None for the newest version in the store
    questions : one question, or two or more for "associate"
    candidates : per string question, either candidate strings or the id of a job that discovered
        them
    since, until : first and last day, inclusive
    by : "day" or "week", to analyse each separately; None for all days together
    where : for "decode", the answers that select a subgroup of the clients, by question
    accept : regular expression that discovered strings must match
    alpha : significance level
    """

    verb: str = ""
    survey: str = ""
    questions: tuple[str, ...] = ()
    version: int | None = None
    candidates: Mapping[str, tuple[str, ...] | str] | None = None
    since: date | None = None
    until: date | None = None
    by: str | None = None
    where: Mapping[str, tuple[str | bool, ...]] | None = None
    accept: str | None = None
    alpha: float = 0.05

    def __post_init__(self) -> None:
        verb, count = self.verb, len(self.questions)
        if verb not in VERBS:
            hint = did_you_mean(verb[:40], VERBS)
            raise Problem(BAD_JOB, f"expected verb {', '.join(VERBS)}; got {verb!r:.40}.{hint}")
        valid = count > 1 if verb == "associate" else count == 1
        if len(set(self.questions)) != count or not valid:
            wanted = "two or more different questions" if verb == "associate" else "one question"
            raise Problem(BAD_JOB, f"choose {wanted} for {verb}; {count or 'none'} chosen")
        if self.by not in (None, *PERIODS):
            hint = did_you_mean(str(self.by)[:40], PERIODS)
            raise Problem(BAD_JOB, f"expected by to be day or week, got {self.by!r:.40}.{hint}")
        if self.where and verb != "decode":
            raise Problem(BAD_JOB, f"{verb} has no subgroups: where is a field of decode")
        if self.since and self.until and self.since > self.until:
            detail = f"the first day, {self.since}, is after the last day, {self.until}"
            raise Problem(BAD_JOB, detail)
        listed = sum(len(c) for c in (self.candidates or {}).values() if not isinstance(c, str))
        if listed > MAX_CANDIDATES:
            detail = f"{listed:,} candidates are listed, and an analysis over HTTP may have "
            detail += f"{MAX_CANDIDATES:,}: list fewer, or use the command line"
            raise Problem(BAD_JOB, detail)
        if not 0 < self.alpha < 1:
            raise Problem(BAD_JOB, f"expected alpha between 0 and 1, got {self.alpha!r:.40}")

    @classmethod
    def read(cls, data: bytes) -> JobRequest:
        """Read the body of a request; a field that is null counts as missing."""
        try:
            content = json.loads(data)
        except (ValueError, RecursionError):
            raise Problem(BAD_JOB, "the body is not valid JSON") from None
        if not isinstance(content, dict):
            raise Problem(BAD_JOB, "expected a JSON object")
        if unknown := sorted(content.keys() - FIELD_READERS.keys()):
            hint = did_you_mean(unknown[0][:40], FIELD_READERS)
            fields = ", ".join(FIELD_READERS)
            raise Problem(BAD_JOB, f"unknown field {unknown[0]!r:.40}; fields: {fields}.{hint}")
        return cls(**{k: FIELD_READERS[k](k, v) for k, v in content.items() if v is not None})

    def to_json_line(self, store: str, survey: Survey, discoveries: Mapping[str, str]) -> bytes:
        """Return everything that the job's process needs, as one line of JSON.

        discoveries : results, as JSON, of the jobs named in `candidates`, by question
        """
        self._check_questions(survey)
        candidates = {q: c for q, c in (self.candidates or {}).items() if q not in discoveries}
        content = {
            **vars(self),
            "store": store,
            "survey": survey.canonical.decode(),
            "candidates": candidates,
            "discoveries": discoveries,
        }
        return json.dumps(content, default=date.isoformat).encode() + b"\n"

    def _check_questions(self, survey: Survey) -> None:
        """Raise Problem if the survey cannot answer the request; such a job would fail later."""
        where = self.where or {}
        try:
            asked = [survey.question(name) for name in (*self.questions, *where)]
        except InputError as error:
            raise Problem(BAD_JOB, str(error)) from None
        if both := set(self.questions) & where.keys():
            raise Problem(BAD_JOB, f"question {min(both)!r} cannot also select the subgroup")
        needed = [q.name for q in asked[: len(self.questions)] if q.kind == "string"]
        for name in needed if self.verb != "discover" else ():
            if not (self.candidates or {}).get(name):
                detail = f"question {name!r} asks for strings, so it needs candidates: list at "
                detail += "least one string to look for, or use the strings of a discovery"
                raise Problem(BAD_JOB, detail)

    @property
    def file_name(self) -> str:
        """Name of files with the result, without its ending."""
        period = ("by", self.by) if self.by else ()
        return "-".join((self.verb, *self.questions, *(self.where or {}), *period))

    @property
    def options(self) -> dict[str, object]:
        """The optional fields that distinguish analyses of the same questions, if they are set."""
        days = {name: day.isoformat() for name in ("since", "until") if (day := vars(self)[name])}
        chosen = {name: vars(self)[name] for name in ("by", "where", "accept")}
        return {name: value for name, value in {**chosen, **days}.items() if value}


def _reader_of(kind: type, description: str) -> Callable[[str, object], object]:
    """Return a function that checks the type of a field."""

    def read(name: str, value: object) -> object:
        if kind is int and isinstance(value, float) and value.is_integer():
            value = int(value)  # JSON does not distinguish 1.0 from 1
        if type(value) is not kind:
            raise Problem(BAD_JOB, f"expected {name} to be {description}, got {value!r:.40}")
        return value

    return read


def _read_strings(name: str, value: object) -> tuple[str, ...]:
    """Return a list of strings, or raise Problem."""
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise Problem(BAD_JOB, f"expected {name} to be a list of strings")
    return tuple(value)


def _read_candidates(name: str, content: object) -> dict[str, tuple[str, ...] | str]:
    """Return candidate strings, or the id of a job, by question; or raise Problem."""
    if not isinstance(content, dict):
        raise Problem(BAD_JOB, f"expected {name} to be an object with one entry per question")
    return {
        question: value["job"]
        if isinstance(value, dict) and value.keys() == {"job"} and isinstance(value["job"], str)
        else _read_strings(f"{name} of {question!r:.40}", value)
        for question, value in content.items()
    }


def _read_where(name: str, content: object) -> dict[str, tuple[str | bool, ...]]:
    """Return answers by question, each given alone or as a list; or raise Problem."""
    if not isinstance(content, dict):
        raise Problem(BAD_JOB, f"expected {name} to be an object with one entry per question")
    answers = {q: v if isinstance(v, list) else [v] for q, v in content.items()}
    for question, values in answers.items():
        if not values or not all(isinstance(value, str | bool) for value in values):
            detail = f"expected {name} of {question!r:.40} to be an answer or a list of answers"
            raise Problem(BAD_JOB, detail)
    return {question: tuple(values) for question, values in answers.items()}


def _read_day(name: str, value: object) -> date:
    """Return a date, or raise Problem."""
    try:
        return date.fromisoformat(value if isinstance(value, str) else "")
    except ValueError:
        raise Problem(BAD_JOB, f"expected {name} as YYYY-MM-DD, got {value!r:.40}") from None


FIELD_READERS: dict[str, Callable[[str, object], Any]] = {
    "verb": _reader_of(str, "a string"),
    "survey": _reader_of(str, "a string"),
    "version": _reader_of(int, "a whole number"),
    "questions": _read_strings,
    "candidates": _read_candidates,
    "since": _read_day,
    "until": _read_day,
    "by": _reader_of(str, "a string"),
    "where": _read_where,
    "accept": _reader_of(str, "a string"),
    "alpha": _reader_of(float, "a number"),
}
"""Functions that check and convert the fields of a request."""
