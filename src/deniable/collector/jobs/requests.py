"""What an analyst asks for: a request's JSON, checked, and made whole for the job's process."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from typing import Any

from deniable.collector.api.problems import BAD_ORDER, Problem
from deniable.errors import InputError
from deniable.survey import Survey

VERBS = ("decode", "associate", "discover")
FIELDS = ("verb", "survey", "version", "questions", "candidates", "since", "until", "accept",
          "alpha")  # fmt: skip
ALPHA = 0.05


@dataclass(frozen=True)
class Order:
    """One request.

    survey, version : which; None is the newest version that the store keeps
    candidates : of each string question either the strings, or the id of the job that found them
    since, until : first and last day, both included
    accept : a regular expression for discovered strings
    """

    verb: str
    survey: str
    questions: tuple[str, ...]
    version: int | None = None
    candidates: Mapping[str, tuple[str, ...] | str] | None = None
    since: date | None = None
    until: date | None = None
    accept: str | None = None
    alpha: float = ALPHA

    @classmethod
    def read(cls, data: bytes) -> Order:
        """The order in a request's body, or raise Problem."""
        try:
            given = json.loads(data)
        except (ValueError, RecursionError):
            raise Problem(BAD_ORDER, "expected JSON") from None
        if not isinstance(given, dict):
            raise Problem(BAD_ORDER, "expected a JSON object")
        if extra := sorted(given.keys() - set(FIELDS)):
            raise Problem(BAD_ORDER, f"expected {', '.join(FIELDS)}; got {extra[0]!r:.40}")
        questions = _texts(given.get("questions"), "questions")
        verb = given.get("verb")
        if verb not in VERBS:
            raise Problem(BAD_ORDER, f"expected verb {', '.join(VERBS)}; got {verb!r:.40}")
        fits = len(questions) > 1 if verb == "associate" else len(questions) == 1
        if len(set(questions)) != len(questions) or not fits:
            wanted = "two or more different questions" if verb == "associate" else "one question"
            raise Problem(BAD_ORDER, f"expected {wanted} to {verb}, got {len(questions)}")
        return cls(
            verb,
            _one(given, "survey", str, ""),
            questions,
            _one(given, "version", int, None),
            _candidates(given.get("candidates")),
            _day(given, "since"),
            _day(given, "until"),
            _one(given, "accept", str, None),
            _share(given),
        )

    def for_process(self, store: str, survey: Survey, found: Mapping[str, str]) -> bytes:
        """One line of JSON that says all. found : results (JSON) of the jobs named, by question."""
        for name in self.questions:
            try:
                survey.question(name)
            except InputError as error:
                raise Problem(BAD_ORDER, str(error)) from None
        candidates = {q: c for q, c in (self.candidates or {}).items() if q not in found}
        content = {
            "store": store, "survey": survey.canonical.decode(), "verb": self.verb,
            "questions": self.questions, "candidates": candidates, "found": found,
            "since": self.since and self.since.isoformat(),
            "until": self.until and self.until.isoformat(),
            "accept": self.accept, "alpha": self.alpha,
        }  # fmt: skip
        return json.dumps(content).encode() + b"\n"


def _one(given: Mapping[str, Any], name: str, kind: type, default: Any) -> Any:
    value = given.get(name)
    if value is None:
        return default
    if kind is int and isinstance(value, float) and value.is_integer():
        value = int(value)  # to JSON 1.0 is a whole number
    if type(value) is not kind:
        raise Problem(BAD_ORDER, f"expected {name} as {kind.__name__}, got {value!r:.40}")
    return value


def _texts(value: Any, name: str) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise Problem(BAD_ORDER, f"expected {name} as a list of texts")
    return tuple(value)


def _candidates(given: Any) -> dict[str, tuple[str, ...] | str] | None:
    if given is None:
        return None
    if not isinstance(given, dict):
        raise Problem(BAD_ORDER, "expected candidates by question")
    found: dict[str, tuple[str, ...] | str] = {}
    for question, value in given.items():
        if isinstance(value, dict) and value.keys() == {"job"} and isinstance(value["job"], str):
            found[question] = value["job"]
        else:
            found[question] = _texts(value, f"candidates of {question!r:.40}")
    return found


def _day(given: Mapping[str, Any], name: str) -> date | None:
    text = _one(given, name, str, None)
    try:
        return None if text is None else date.fromisoformat(text)
    except ValueError:
        raise Problem(BAD_ORDER, f"expected {name} as YYYY-MM-DD, got {text!r:.40}") from None


def _share(given: Mapping[str, Any]) -> float:
    alpha = given.get("alpha")
    if alpha is None:
        return ALPHA
    if type(alpha) is not float or not 0 < alpha < 1:
        raise Problem(BAD_ORDER, f"expected alpha between 0 and 1, got {alpha!r:.40}")
    return alpha
