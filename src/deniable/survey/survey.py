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
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

from deniable import protocols
from deniable.errors import InputError
from deniable.privacy import NANO, PrivacyLoss, nanonats_up, total
from deniable.protocols import Protocol
from deniable.protocols.base import Draw

if TYPE_CHECKING:
    from pathlib import Path

FORMAT = "deniable-survey/1"
DIGEST_SIZE = 16
MAX_COHORTS = 65536
NAME = re.compile(r"[a-z][a-z0-9_-]{0,63}")

Kind = Literal["string", "choice", "boolean"]
Collect = Literal["once", "repeatedly"]

_ANSWERS: dict[str, type] = {"string": str, "choice": str, "boolean": bool}


@dataclass(frozen=True)
class Question:
    """One thing that is asked."""

    name: str
    kind: Kind
    description: str
    protocol: Protocol

    def __post_init__(self) -> None:
        if type(self.description) is not str:
            raise InputError(f"expected a description that is a text, got {self.description!r:.80}")
        if not NAME.fullmatch(self.name):
            raise InputError(
                f"expected a question's name of a-z, 0-9, _ and -, a letter first, at most 64; "
                f"got {self.name!r}"
            )
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
        return tuple((nanonats_up(x.once) or 0, nanonats_up(x.forever)) for x in losses)

    @property
    def size(self) -> int:
        """Bytes in a report's body: clear fields, then each slot's packed bits."""
        return len(self.protocol.clear) + sum(m.size for m in self.protocol.mechanisms)

    def checked(self, value: Any) -> Any:
        """The value, if it is of this question's type or None (no answer).

        Only the type is checked. Any string at all is reported, so that silence tells nothing.
        """
        if value is None or isinstance(value, _ANSWERS[self.kind]):
            return value
        raise InputError(
            f"question {self.name!r} expects {_ANSWERS[self.kind].__name__} or None, "
            f"got {type(value).__name__}"
        )

    def canonical(self) -> dict[str, Any]:
        return {
            "name": self.name, "kind": self.kind, "description": self.description,
            "protocol": self.protocol.canonical(),
            "encodings": [encoding.hex() for encoding in self.protocol.encodings],
            "loss": [{"once": once, "forever": forever} for once, forever in self.charges],
        }  # fmt: skip


def spent(questions: Iterable[Question], collect: Collect) -> int:
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
        if not NAME.fullmatch(self.name):
            raise InputError(
                f"expected a survey's name of a-z, 0-9, _ and -, a letter first, at most 64; "
                f"got {self.name!r}"
            )
        if type(self.version) is not int or not 1 <= self.version < 2**31:
            raise InputError(f"expected a version of 1 or more, got {self.version!r}")
        if type(self.budget) is not int:
            raise InputError(f"expected a whole budget in billionths of a nat, got {self.budget!r}")
        if type(self.owner) is not str or type(self.description) is not str:
            raise InputError("expected an owner and a description that are texts")
        if not self.questions:
            raise InputError("expected at least one question, got none")
        if self.collect not in ("once", "repeatedly"):
            raise InputError(f"expected collect once or repeatedly, got {self.collect!r}")
        names = [q.name for q in self.questions]
        if len(set(names)) != len(names):
            raise InputError(f"expected questions with different names, got {names}")
        for question in self.questions:
            if self.collect == "repeatedly" and any(
                m.noise.flip == 0 for m in question.protocol.mechanisms
            ):
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
        if self.budget < (least := spent(self.questions, self.collect)):
            raise InputError(
                f"expected a budget of at least {least / NANO:.9f}, what one client's answers "
                f"spend; got {self.budget / NANO:.9f}"
            )
        # Noise and hashing belong to this survey and to each question's name.
        own = tuple(
            Question(q.name, q.kind, q.description, q.protocol.within(self.name, q.name))
            for q in self.questions
        )
        object.__setattr__(self, "questions", own)

    # --- what it promises -------------------------------------------------------------------

    @cached_property
    def loss(self) -> PrivacyLoss:
        """ε of one whole report, and of any number about unchanging values."""
        return total([q.loss for q in self.questions])

    @property
    def promise(self) -> float:
        """The ε that `epsilon` means here: once for one-time collection, else for ever."""
        return self.loss.once if self.collect == "once" else self.loss.forever

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
        count = self.cohorts
        for question in self.questions:
            count *= question.protocol.groups[0]
        return count

    @cached_property
    def smallest_group(self) -> float:
        """The smallest group's expected share of clients."""
        share = 1 / self.cohorts
        for question in self.questions:
            share *= question.protocol.groups[1]
        return share

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
            "format": FORMAT, "name": self.name, "version": self.version, "owner": self.owner,
            "description": self.description, "expires": self.expires.isoformat(),
            "collect": self.collect, "budget": self.budget,
            "questions": [q.canonical() for q in self.questions],
        }  # fmt: skip
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
            survey = cls(
                raw["name"], raw["version"], raw["owner"], raw["description"],
                dt.date.fromisoformat(raw["expires"]), raw["collect"], raw["budget"],
                tuple(
                    Question(q["name"], q["kind"], q["description"],
                             protocols.from_canonical(q["protocol"]))
                    for q in raw["questions"]
                ),
            )  # fmt: skip
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
