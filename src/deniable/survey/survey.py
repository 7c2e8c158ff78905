"""The survey: what is asked, with every default resolved and every probability an integer.

People write TOML (`author.py`); publishing resolves it into canonical JSON: sorted keys, no spaces,
ASCII, integers and strings only. The digest is the SHA-256 of those bytes and stands in every
report, so a later release of this library cannot change what a live survey means.
"""

from __future__ import annotations

import datetime as dt
import hashlib
import json
import math
import re
from collections.abc import Iterable
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import TYPE_CHECKING, Literal

from deniable import protocols
from deniable.errors import InputError, check_integer
from deniable.mechanisms.base import MAX_COHORTS, Settings
from deniable.privacy import NANO, NO_LOSS, PrivacyLoss, nanonats_up
from deniable.protocols import Protocol
from deniable.protocols.base import Draw, Value

if TYPE_CHECKING:
    from pathlib import Path

FORMAT = "deniable-survey/1"
DIGEST_SIZE = 16
NAME = re.compile(r"[a-z][a-z0-9_-]{0,63}")
NAME_RULE = "a-z, 0-9, _ and -, a letter first, at most 64 characters"

Kind = Literal["string", "choice", "boolean"]
Collect = Literal["once", "repeatedly"]

_ANSWERS: dict[str, type] = {"string": str, "choice": str, "boolean": bool}


def check_name(what: str, name: str) -> None:
    """Raise InputError unless this can be the name of a survey or a question."""
    if not NAME.fullmatch(name):
        raise InputError(f"expected a {what}'s name of {NAME_RULE}; got {name!r}")


def check_text(what: str, text: object) -> None:
    """Raise InputError unless this is a text."""
    if type(text) is not str:
        raise InputError(f"expected {what} to be a text, got {text!r:.80}")


@dataclass(frozen=True)
class Question:
    """One thing that is asked."""

    name: str
    kind: Kind
    description: str
    protocol: Protocol

    def __post_init__(self) -> None:
        check_text("description", self.description)
        check_name("question", self.name)
        if self.kind not in _ANSWERS:
            raise InputError(f"expected kind string, choice or boolean, got {self.kind!r}")
        mechanisms = self.protocol.mechanisms
        if any(
            m.question_kind != self.kind or self.protocol.name not in m.protocols
            for m in mechanisms
        ):
            got = sorted({m.kind for m in mechanisms})
            raise InputError(f"a {self.kind} question cannot be reported by {got}")

    @property
    def loss(self) -> PrivacyLoss:
        """ε of one report, and of any number about one value."""
        return self.protocol.loss

    @cached_property
    def charges(self) -> tuple[tuple[int, int | None], ...]:
        """(once, for ever) of each slot in billionths of a nat, rounded up; None is no limit."""
        losses = [m.loss for m in self.protocol.mechanisms]
        return tuple((nanonats_up(x.per_report) or 0, nanonats_up(x.in_total)) for x in losses)

    @property
    def size(self) -> int:
        """Bytes in a report's body: clear fields, then each slot's packed bits."""
        return len(self.protocol.clear) + sum(m.size for m in self.protocol.mechanisms)

    def checked(self, value: Value) -> Value:
        """The value, if it is of this question's type or None (no answer).

        Only the type is checked. Any string at all is reported, so that silence tells nothing.
        """
        if value is None or isinstance(value, _ANSWERS[self.kind]):
            return value
        raise InputError(
            f"question {self.name!r} expects {_ANSWERS[self.kind].__name__} or None, "
            f"got {type(value).__name__}"
        )

    def canonical(self) -> Settings:
        """The question as the published survey holds it."""
        return {
            "name": self.name,
            "kind": self.kind,
            "description": self.description,
            "protocol": self.protocol.canonical(),
            "encodings": [m.domain.encoding.hex() for m in self.protocol.mechanisms],
            "loss": [{"once": once, "forever": forever} for once, forever in self.charges],
        }

    @classmethod
    def from_canonical(cls, data: Settings) -> Question:
        """The question that `canonical` described."""
        protocol = protocols.from_canonical(data["protocol"])
        return cls(data["name"], data["kind"], data["description"], protocol)


def total_charge(questions: Iterable[Question], collect: Collect) -> int:
    """What one client's answers spend, in billionths of a nat: once, or for ever if repeatedly."""
    return sum(
        once if collect == "once" or forever is None else forever
        for question in questions
        for once, forever in question.charges
    )


def _no_float(text: str) -> None:
    raise InputError(f"expected whole numbers only in a published survey, got {text}")


@dataclass(frozen=True)
class Survey:
    """A published survey. Read one with `Survey.load`; two are equal when their digests are."""

    name: str
    version: int
    owner: str
    description: str
    expires: dt.date
    collect: Collect
    budget: int
    """What one client may spend over all versions of this name, in billionths of a nat."""
    questions: tuple[Question, ...]

    def __post_init__(self) -> None:
        check_name("survey", self.name)
        check_integer("a version", self.version, 1, 2**31 - 1)
        check_text("owner", self.owner)
        check_text("description", self.description)
        if type(self.budget) is not int:
            raise InputError(f"expected a whole budget in billionths of a nat, got {self.budget!r}")
        if not self.questions:
            raise InputError("expected at least one question, got none")
        if self.collect not in ("once", "repeatedly"):
            raise InputError(f"expected collect once or repeatedly, got {self.collect!r}")
        names = [q.name for q in self.questions]
        if len(set(names)) != len(names):
            raise InputError(f"expected questions with different names, got {names}")
        for question in self.questions if self.collect == "repeatedly" else ():
            if any(m.noise.flip == 0 for m in question.protocol.mechanisms):
                raise InputError(
                    f"question {question.name!r} has f = 0: collected repeatedly its ε would grow "
                    "with every report; give f above 0, or collect once"
                )
        if self.cohorts > MAX_COHORTS:
            raise InputError(
                f"a client has one cohort, reduced for each question, so the least common multiple "
                f"of their numbers counts: expected at most {MAX_COHORTS}, got {self.cohorts}; "
                "choose numbers that share factors"
            )
        if self.budget < (least := total_charge(self.questions, self.collect)):
            raise InputError(
                f"expected a budget of at least {least / NANO:.9f}, what one client's answers "
                f"spend; got {self.budget / NANO:.9f}"
            )
        # Noise and hashing belong to this survey and to each question's name.
        own = tuple(
            replace(q, protocol=q.protocol.within(self.name, q.name)) for q in self.questions
        )
        object.__setattr__(self, "questions", own)

    # --- what it promises -------------------------------------------------------------------

    @cached_property
    def loss(self) -> PrivacyLoss:
        """ε of one whole report, and of any number about unchanging values."""
        return sum((q.loss for q in self.questions), NO_LOSS)

    @cached_property
    def cohorts(self) -> int:
        """The least common multiple of all mechanisms' cohorts: each has a fair share of it."""
        return math.lcm(*(m.cohorts for q in self.questions for m in q.protocol.mechanisms))

    def question(self, name: str) -> Question:
        """The question of this name."""
        for question in self.questions:
            if question.name == name:
                return question
        known = ", ".join(q.name for q in self.questions)
        raise InputError(f"survey {self.name!r} asks {known}; it has no question {name!r}")

    @cached_property
    def groups(self) -> int:
        """How many groups the clear fields divide clients into."""
        return self.cohorts * math.prod(q.protocol.groups[0] for q in self.questions)

    @cached_property
    def smallest_group(self) -> float:
        """The smallest group's expected share of clients."""
        shares = (q.protocol.groups[1] for q in self.questions)
        return math.prod(shares, start=1 / self.cohorts)

    # --- bytes ------------------------------------------------------------------------------

    @property
    def cohort_size(self) -> int:
        """Bytes of the cohort in a report: none when there is only one."""
        return 2 if self.cohorts > 1 else 0

    @cached_property
    def body_size(self) -> int:
        """Bytes of one report in a batch: the same for every client and every value."""
        return self.cohort_size + sum(q.size for q in self.questions)

    @cached_property
    def canonical(self) -> bytes:
        """The published form."""
        data = {
            **{field.name: getattr(self, field.name) for field in fields(self)},
            "format": FORMAT,
            "expires": self.expires.isoformat(),
            "questions": [q.canonical() for q in self.questions],
        }
        return json.dumps(data, sort_keys=True, separators=(",", ":")).encode()

    @cached_property
    def sha256(self) -> bytes:
        return hashlib.sha256(self.canonical).digest()

    @property
    def digest(self) -> bytes:
        """The first 16 bytes of the SHA-256 of the published form: what reports carry."""
        return self.sha256[:DIGEST_SIZE]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Survey) and self.sha256 == other.sha256

    def __hash__(self) -> int:
        return hash(self.sha256)

    def __repr__(self) -> str:
        return f"<Survey {self.name} v{self.version} {self.digest.hex()[:12]}>"

    def draw(self, secret: bytes) -> tuple[int, tuple[Draw, ...]]:
        """A client's cohort and its clear fields for each question, for ever."""
        return (
            protocols.base.cohort_of(secret, self.name, self.cohorts),
            tuple(q.protocol.draw(secret, self.name, q.name) for q in self.questions),
        )

    # --- reading and writing ----------------------------------------------------------------

    @classmethod
    def from_json(cls, data: bytes) -> Survey:
        """A published survey. Its bytes must be exactly what this release would publish."""
        try:
            raw = json.loads(data, parse_float=_no_float, parse_constant=_no_float)
            if raw.get("format") != FORMAT:
                raise InputError(f"expected format {FORMAT!r}, got {raw.get('format')!r}")
            raw["expires"] = dt.date.fromisoformat(raw["expires"])
            raw["questions"] = tuple(map(Question.from_canonical, raw["questions"]))
            survey = cls(**{field.name: raw[field.name] for field in fields(cls)})
        except InputError:
            raise
        except (KeyError, TypeError, ValueError, AttributeError, RecursionError) as error:
            raise InputError(f"this is not a published survey: {error!r}") from None
        if survey.canonical != data.removesuffix(b"\n"):
            raise InputError(
                "the published survey is not canonical, or claims another loss than its integers "
                "give; publish it again from its TOML"
            )
        return survey

    @classmethod
    def from_toml(cls, text: str) -> Survey:
        """A survey as people write it; raises SurveyError with every mistake."""
        from deniable.survey.author import read_toml

        return read_toml(text)

    @classmethod
    def load(cls, path: str | Path) -> Survey:
        """A `.json` file is a published survey, anything else is TOML."""
        with open(path, "rb") as file:
            data = file.read()
        if str(path).endswith(".json"):
            return cls.from_json(data)
        try:
            return cls.from_toml(data.decode())
        except UnicodeDecodeError as error:
            raise InputError(f"{path} is not UTF-8 text: {error}") from None

    def publish(self, path: str | Path) -> None:
        """Write the canonical form."""
        with open(path, "wb") as file:
            file.write(self.canonical + b"\n")
