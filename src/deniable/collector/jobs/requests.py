"""Requests for jobs: read and check their JSON, and write them for the job's process."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import date
from typing import Any

from deniable.collector.api.problems import BAD_JOB, Problem
from deniable.errors import InputError, did_you_mean
from deniable.survey import Survey

VERBS = ("decode", "associate", "discover")


@dataclass(frozen=True)
class JobRequest:
    """A request for an analysis; raises Problem if it is not valid.

    verb : "decode", "associate" or "discover"
    survey, version : name and version of the survey; None for the newest version in the store
    questions : one question, or two or more for "associate"
    candidates : per string question, either candidate strings or the id of a job that discovered
        them
    since, until : first and last day, inclusive
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
            raise Problem(BAD_JOB, f"expected {wanted} for {verb!r}, got {count}")
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
        try:
            for name in self.questions:
                survey.question(name)
        except InputError as error:
            raise Problem(BAD_JOB, str(error)) from None
        candidates = {q: c for q, c in (self.candidates or {}).items() if q not in discoveries}
        content = {
            **vars(self),
            "store": store,
            "survey": survey.canonical.decode(),
            "candidates": candidates,
            "discoveries": discoveries,
        }
        return json.dumps(content, default=date.isoformat).encode() + b"\n"


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
    "accept": _reader_of(str, "a string"),
    "alpha": _reader_of(float, "a number"),
}
"""Functions that check and convert the fields of a request."""
