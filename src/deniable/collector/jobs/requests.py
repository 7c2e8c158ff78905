"""What an analyst asks for: a request's JSON, checked, and made whole for the job's process."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import date
from typing import Any

from deniable.collector.api.problems import BAD_JOB, Problem
from deniable.errors import InputError
from deniable.survey import Survey

VERBS = ("decode", "associate", "discover")


@dataclass(frozen=True)
class JobRequest:
    """One request; raises Problem if it makes no sense.

    survey, version : which; None is the newest version that the store keeps
    candidates : of each string question either the strings, or the id of the job that found them
    since, until : first and last day, both included
    accept : a regular expression for discovered strings
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
            raise Problem(BAD_JOB, f"expected verb {', '.join(VERBS)}; got {verb!r:.40}")
        fits = count > 1 if verb == "associate" else count == 1
        if len(set(self.questions)) != count or not fits:
            wanted = "two or more different questions" if verb == "associate" else "one question"
            raise Problem(BAD_JOB, f"expected {wanted} to {verb}, got {count}")
        if not 0 < self.alpha < 1:
            raise Problem(BAD_JOB, f"expected alpha between 0 and 1, got {self.alpha!r:.40}")

    @classmethod
    def read(cls, data: bytes) -> JobRequest:
        """Read a request's body; fields that are null are as if left out."""
        try:
            given = json.loads(data)
        except (ValueError, RecursionError):
            raise Problem(BAD_JOB, "expected JSON") from None
        if not isinstance(given, dict):
            raise Problem(BAD_JOB, "expected a JSON object")
        if extra := sorted(given.keys() - READERS.keys()):
            raise Problem(BAD_JOB, f"expected {', '.join(READERS)}; got {extra[0]!r:.40}")
        fields = {k: READERS[k](k, value) for k, value in given.items() if value is not None}
        return cls(**fields)

    def to_json_line(self, store: str, survey: Survey, found: Mapping[str, str]) -> bytes:
        """Return all that the job's process needs, as one line of JSON.

        found : results (JSON) of the jobs named in `candidates`, by question
        """
        try:
            for name in self.questions:
                survey.question(name)
        except InputError as error:
            raise Problem(BAD_JOB, str(error)) from None
        candidates = {q: c for q, c in (self.candidates or {}).items() if q not in found}
        content = {
            **{name: vars(self)[name] for name in ("verb", "questions", "accept", "alpha")},
            "store": store,
            "survey": survey.canonical.decode(),
            "candidates": candidates,
            "found": found,
            "since": self.since and self.since.isoformat(),
            "until": self.until and self.until.isoformat(),
        }
        return json.dumps(content).encode() + b"\n"


def _typed(kind: type) -> Callable[[str, object], object]:
    def read(name: str, value: object) -> object:
        if kind is int and isinstance(value, float) and value.is_integer():
            value = int(value)  # to JSON 1.0 is a whole number
        if type(value) is not kind:
            raise Problem(BAD_JOB, f"expected {name} as {kind.__name__}, got {value!r:.40}")
        return value

    return read


def _texts(name: str, value: object) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise Problem(BAD_JOB, f"expected {name} as a list of texts")
    return tuple(value)


def _candidates(name: str, given: object) -> dict[str, tuple[str, ...] | str]:
    if not isinstance(given, dict):
        raise Problem(BAD_JOB, f"expected {name} by question")
    return {
        question: value["job"]
        if isinstance(value, dict) and value.keys() == {"job"} and isinstance(value["job"], str)
        else _texts(f"{name} of {question!r:.40}", value)
        for question, value in given.items()
    }


def _day(name: str, value: object) -> date:
    try:
        return date.fromisoformat(value if isinstance(value, str) else "")
    except ValueError:
        raise Problem(BAD_JOB, f"expected {name} as YYYY-MM-DD, got {value!r:.40}") from None


READERS: dict[str, Callable[[str, object], Any]] = {
    "verb": _typed(str),
    "survey": _typed(str),
    "version": _typed(int),
    "questions": _texts,
    "candidates": _candidates,
    "since": _day,
    "until": _day,
    "accept": _typed(str),
    "alpha": _typed(float),
}
