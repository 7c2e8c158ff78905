"""Surveys: all questions, with every default resolved and every probability an integer.

People write TOML (`toml_file.py`). Publishing turns it into canonical JSON: sorted keys, no spaces,
ASCII, integers and strings only. Every report contains the digest of those bytes, so a later
release of this library cannot change the meaning of a published survey.
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
from numbers import Real
from os import PathLike
from typing import Literal, NamedTuple, TypeAlias

from deniable import protocols
from deniable.errors import InputError, SurveyError, check_integer, did_you_mean
from deniable.mechanisms.base import MAX_COHORTS, Settings
from deniable.privacy import NANO, NO_LOSS, PrivacyLoss, nanonats_up
from deniable.protocols import Protocol
from deniable.protocols.base import Draw, Value
from deniable.text_files import read_text

FORMAT = "deniable-survey/1"
TESTING_FORMAT = "deniable-testing-survey/1"
"""Format of a survey that was published for testing; releases that do not know it refuse it."""
DIGEST_SIZE = 16
MAX_SIZE = 1 << 22
"""Maximum size of a published survey in bytes; 65,536 options of 60 characters fit."""
MAX_PARTS = 4096
"""Maximum number of parts of a report, each of which is randomised on its own. It bounds the time
to read a survey, since the exact loss of a part takes most of a millisecond."""
MAX_BUDGET = 10**309
"""Maximum budget in billionths of a nat: the largest that a survey file can set."""
NAME = re.compile(r"[a-z][a-z0-9_-]{0,63}")
NAME_RULE = "1 to 64 characters from a-z, 0-9, _ and -, beginning with a letter"

Kind = Literal["string", "choice", "boolean", "number"]
Collect = Literal["once", "repeatedly"]

_ANSWERS: dict[str, tuple[type, str]] = {
    "string": (str, "a string"),
    "choice": (str, "a string"),
    "boolean": (bool, "a boolean"),
    "number": (Real, "a number"),
}
"""From a kind of question to the type of its answers, in Python and in words."""


def check_name(noun: str, name: str) -> None:
    """Raise InputError unless `name` is a valid name of a survey or question."""
    if not NAME.fullmatch(name):
        suggestion = suggested_name(name, "-" if noun == "survey" else "_")
        hint = f' Did you mean "{suggestion}"?' if suggestion else ""
        raise InputError(f"the name of a {noun} must be {NAME_RULE}, not {name!r:.200}.{hint}")


def suggested_name(text: str, separator: str = "_") -> str:
    """Return a valid name that resembles a text; empty if nothing of it can be kept.

    >>> suggested_name("Dark Mode?"), suggested_name("Café 2027", "-"), suggested_name("1")
    ('dark_mode', 'cafe-2027', '')
    """
    import unicodedata  # loaded after a mistake only

    plain = unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode().lower()
    joined = re.sub(r"[^a-z0-9_-]+", separator, plain)
    return re.sub(r"^[^a-z]+", "", joined)[:64].rstrip("_-")


def check_text(setting: str, text: object) -> None:
    """Raise InputError unless `text` is a string."""
    if type(text) is not str:
        raise InputError(f"{setting} must be a text, not {text!r:.80}")


class SlotForm(NamedTuple):
    """Position and limits of a slot in the bytes of a question.

    start, end : range of its bytes; width : number of bits, above which all are 0
    bound : upper limit (exclusive) if the slot is a number; ones : number of bits that are 1, if
        it is fixed
    """

    start: int
    end: int
    width: int
    bound: int | None
    ones: int | None


@dataclass(frozen=True)
class Question:
    """One question of a survey.

    Parameters
    ----------
    name : str
        Name of the question.
    kind : {"string", "choice", "boolean", "number"}
        Type of its answers.
    description : str
        What is asked, for people.
    protocol : Protocol
        How clients report their answers.

    Examples
    --------
    >>> from deniable.mechanisms import Boolean, Noise
    >>> from deniable.protocols import Single
    >>> coin = Single(Boolean(noise=Noise.of(p=0.25, q=0.75)))
    >>> round(Question("dark_mode", "boolean", "", coin).loss.per_report, 4)
    1.0986
    """

    name: str
    kind: Kind
    description: str
    protocol: Protocol

    def __post_init__(self) -> None:
        check_text("description", self.description)
        check_name("question", self.name)
        if self.kind not in _ANSWERS:
            raise InputError(
                f"kind must be string, choice, boolean or number, not {self.kind!r:.200}"
            )
        mechanisms = self.protocol.mechanisms
        if not all(self.protocol.accepts(self.kind, m) for m in mechanisms):
            kinds = " or ".join(sorted({m.kind for m in mechanisms}))
            raise InputError(
                f"a {self.kind} question with the protocol {self.protocol.name} cannot use the "
                f"mechanism {kinds}"
            )

    def __repr__(self) -> str:
        return f"<Question {self.name}: {self.kind}, ε = {self.loss.per_report:.2f} per report>"

    @property
    def loss(self) -> PrivacyLoss:
        """Privacy loss ε per report, and in total for any number of reports about one value."""
        return self.protocol.loss

    @cached_property
    def charges(self) -> tuple[tuple[int, int | None], ...]:
        """Loss of each slot per report and in total, in billionths of a nat, rounded up.

        None means that the loss in total is unlimited.
        """
        losses = [m.charge for m in self.protocol.mechanisms]
        return tuple((nanonats_up(x.per_report) or 0, nanonats_up(x.in_total)) for x in losses)

    @cached_property
    def size(self) -> int:
        """Number of bytes in the body of a report: clear fields, then slots."""
        return len(self.protocol.clear) + sum(m.size for m in self.protocol.mechanisms)

    @cached_property
    def slot_forms(self) -> tuple[SlotForm, ...]:
        """Form of each slot in the bytes of this question."""
        forms, start = [], len(self.protocol.clear)
        for m in self.protocol.mechanisms:
            forms.append(SlotForm(start, start + m.size, m.width, m.bound, m.ones))
            start += m.size
        return tuple(forms)

    def checked(self, value: Value) -> Value:
        """Return the value, or raise InputError if it has the wrong type.

        Every string and every number is reported, whatever it is, so that a missing report reveals
        nothing.

        Parameters
        ----------
        value : str, bool, int, float or None
            Answer to this question; None means no answer.

        Returns
        -------
        str, bool, int, float or None
            The same value.

        Raises
        ------
        InputError
            If the value has the type of answers to another kind of question. A boolean is no
            number.
        """
        answer_type, in_words = _ANSWERS[self.kind]
        if value is None or (
            isinstance(value, answer_type) and isinstance(value, bool) == (answer_type is bool)
        ):
            return value
        raise InputError(
            f"the answer to question {self.name!r} must be {in_words} or None (no answer), "
            f"not {type(value).__name__}"
        )

    def lost(self, value: Value) -> str | None:
        """Say what no report about this value contains.

        Simulations and `Client.for_testing` warn about it. The client of a real survey never asks,
        because its behaviour must not depend on the answer.

        Parameters
        ----------
        value : str, bool, int, float or None
            Answer to this question.

        Returns
        -------
        str or None
            What is lost, in words; None if the whole value can be reported.
        """
        return None if value is None else self.protocol.lost(self.checked(value))

    def canonical(self) -> Settings:
        """Return the question as in the published survey.

        Returns
        -------
        dict
            Strings, integers, and lists and dictionaries of them.
        """
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
        """Return the question that `canonical` describes.

        Parameters
        ----------
        data : dict
            What `canonical` returns.

        Returns
        -------
        Question
            The question.
        """
        protocol = protocols.from_canonical(data["protocol"])
        return cls(data["name"], data["kind"], data["description"], protocol)


def total_charge(questions: Iterable[Question], collect: Collect) -> int:
    """Return the loss of one client's answers in billionths of a nat.

    It is the loss per report if collected once, in total if collected repeatedly.
    """
    return sum(
        once if collect == "once" or forever is None else forever
        for question in questions
        for once, forever in question.charges
    )


def _no_float(text: str) -> None:
    """Refuse a number of a published survey that is not an integer."""
    raise InputError(
        f"this is not a published survey, which has integers only: it has the number {text:.80}"
    )


@dataclass(frozen=True)
class Survey:
    """A survey: what is asked, and with which privacy loss.

    Read one with `Survey.load`. Two surveys are equal if their published forms are.

    Parameters
    ----------
    name : str
        Name of the survey. All versions share its permanent noise and its budget.
    version : int
        Version, increased with every change.
    owner : str
        Who is responsible, and how to reach them.
    description : str
        What is asked and why, for the people who are asked.
    expires : datetime.date
        Last day on which clients answer.
    collect : {"once", "repeatedly"}
        Whether a client sends one report or any number of them.
    budget : int
        Maximum loss in total of one client over all versions, in billionths of a nat.
    questions : tuple of Question
        The questions.
    testing : bool, default False
        Whether the survey is for testing only; see `for_testing`.

    Raises
    ------
    InputError
        If a parameter is invalid, or if one client's answers would exceed the budget.

    Examples
    --------
    >>> survey = Survey.from_toml('''
    ... name = "example"
    ... version = 1
    ... owner = "docs"
    ... description = "an example"
    ... expires = 2099-12-31
    ... collect = "once"
    ... [questions.dark_mode]
    ... kind = "boolean"
    ... epsilon = 1.0
    ... ''')
    >>> survey.question("dark_mode").kind, round(survey.loss.per_report, 6)
    ('boolean', 1.0)
    """

    name: str
    version: int
    owner: str
    description: str
    expires: dt.date
    collect: Collect
    budget: int
    questions: tuple[Question, ...]
    testing: bool = False

    def __post_init__(self) -> None:
        check_name("survey", self.name)
        check_integer("version", self.version, 1, 2**31 - 1)
        check_text("owner", self.owner)
        check_text("description", self.description)
        if type(self.budget) is not int or not 0 <= self.budget <= MAX_BUDGET:
            got = "one out of range" if type(self.budget) is int else f"{self.budget!r:.80}"
            raise InputError(f"budget must be an integer from 0 (billionths of a nat), not {got}")
        if not self.questions:
            raise InputError("a survey needs at least one question")
        if self.collect not in ("once", "repeatedly"):
            raise InputError(f'collect must be "once" or "repeatedly", not {self.collect!r:.80}')
        names = [q.name for q in self.questions]
        if len(set(names)) != len(names):
            raise InputError(f"the questions must have different names, unlike {names}")
        for question in self.questions if self.collect == "repeatedly" else ():
            if any(m.noise.flip == 0 for m in question.protocol.mechanisms):
                raise InputError(
                    f"question {question.name!r} has no permanent noise (f = 0), so its privacy "
                    'loss would grow with every report: set f above 0, or collect = "once"'
                )
        if self.cohorts > MAX_COHORTS:
            raise InputError(
                f"the least common multiple of all questions' cohorts must be at most "
                f"{MAX_COHORTS}, not {self.cohorts}, because a client has one cohort for all of "
                "them: choose numbers with common factors, such as powers of two"
            )
        if (parts := sum(len(q.protocol.parts) for q in self.questions)) > MAX_PARTS:
            raise InputError(
                f"a report may have at most {MAX_PARTS} parts (one per question, and one per "
                f"n-gram), not {parts}: ask fewer questions"
            )
        # Hashing and noise are keyed by the names of the survey and the question.
        keyed = tuple(
            replace(q, protocol=q.protocol.within(self.name, q.name)) for q in self.questions
        )
        object.__setattr__(self, "questions", keyed)
        if self.budget < (least := total_charge(keyed, self.collect)):
            raise InputError(
                f"budget = {self.budget / NANO:.9f} is below ε = {least / NANO:.9f} of one "
                "client's answers: increase the budget, or leave it out"
            )

    def for_testing(self) -> Survey:
        """Return the same survey, marked as a survey for testing.

        It has another digest, so a collector of the real survey refuses its reports. Only
        `Client.for_testing` answers it.

        Returns
        -------
        Survey
            The survey for testing.

        Examples
        --------
        >>> from deniable.survey import example_survey
        >>> example_survey().for_testing()
        <Survey example v1 FOR TESTING 58bbdf433285>
        """
        return replace(self, testing=True)

    # --- privacy and clear fields -----------------------------------------------------------

    @cached_property
    def loss(self) -> PrivacyLoss:
        """ε of all questions per report, and in total for unchanging values."""
        return sum((q.loss for q in self.questions), NO_LOSS)

    @cached_property
    def cohorts(self) -> int:
        """Number of cohorts: the least common multiple over all mechanisms."""
        cohorts = 1
        for question in self.questions:
            cohorts = math.lcm(cohorts, *{m.cohorts for m in question.protocol.mechanisms})
            if cohorts > MAX_COHORTS:  # such a survey is invalid; more factors would take long
                break
        return cohorts

    def question(self, name: str) -> Question:
        """Return the question of this name.

        Parameters
        ----------
        name : str
            Name of the question.

        Returns
        -------
        Question
            The question.

        Raises
        ------
        InputError
            If the survey has no such question.
        """
        for question in self.questions:
            if question.name == name:
                return question
        known = [q.name for q in self.questions]
        raise InputError(
            f"survey {self.name!r} has no question {name!r:.200}; its questions are "
            f"{', '.join(known)}.{did_you_mean(name, known)}"
        )

    @cached_property
    def groups(self) -> int:
        """Number of groups into which the clear fields divide the clients."""
        return self.cohorts * math.prod(q.protocol.groups for q in self.questions)

    @cached_property
    def smallest_group(self) -> float:
        """Expected share of clients in the smallest of these groups."""
        shares = (q.protocol.smallest_group for q in self.questions)
        return math.prod(shares, start=1 / self.cohorts)

    # --- bytes ------------------------------------------------------------------------------

    @cached_property
    def cohort_size(self) -> int:
        """Number of bytes of the cohort in a report; 0 if there is only one cohort."""
        return 2 if self.cohorts > 1 else 0

    @cached_property
    def body_size(self) -> int:
        """Number of bytes of one report in a batch; the same for all clients and values."""
        return self.cohort_size + sum(q.size for q in self.questions)

    @cached_property
    def canonical(self) -> bytes:
        """Published form: canonical JSON."""
        data = {
            **{field.name: getattr(self, field.name) for field in fields(self)},
            "format": TESTING_FORMAT if self.testing else FORMAT,
            "expires": self.expires.isoformat(),
            "questions": [q.canonical() for q in self.questions],
        }
        del data["testing"]  # the format says it
        return json.dumps(data, sort_keys=True, separators=(",", ":")).encode()

    @cached_property
    def sha256(self) -> bytes:
        """SHA-256 of the published form."""
        return hashlib.sha256(self.canonical).digest()

    @property
    def digest(self) -> bytes:
        """First 16 bytes of the SHA-256 of the published form; every report contains them."""
        return self.sha256[:DIGEST_SIZE]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Survey) and self.sha256 == other.sha256

    def __hash__(self) -> int:
        return hash(self.sha256)

    def __str__(self) -> str:
        mark = " for testing" if self.testing else ""
        return f"survey {self.name} version {self.version}{mark} (digest {self.digest.hex()[:12]})"

    def __repr__(self) -> str:
        mark = "FOR TESTING " if self.testing else ""
        return f"<Survey {self.name} v{self.version} {mark}{self.digest.hex()[:12]}>"

    def draw(self, secret: bytes) -> tuple[int, tuple[Draw, ...]]:
        """Return the cohort and the clear fields of a client, which never change.

        Parameters
        ----------
        secret : bytes
            Secret of the client.

        Returns
        -------
        cohort : int
            The cohort.
        clear : tuple of tuple of int
            The clear fields of each question.
        """
        return (
            protocols.base.cohort_of(secret, self.name, self.cohorts),
            tuple(q.protocol.draw(secret, self.name, q.name) for q in self.questions),
        )

    # --- reading and writing ----------------------------------------------------------------

    @classmethod
    def from_json(cls, data: bytes | str) -> Survey:
        """Read a published survey.

        Parameters
        ----------
        data : bytes or str
            JSON, exactly as `publish` writes it.

        Returns
        -------
        Survey
            The survey.

        Raises
        ------
        InputError
            If the bytes are not a published survey, or not in its canonical form.
        """
        if isinstance(data, bytes | str) and len(data) > MAX_SIZE:
            raise InputError(
                f"a published survey has at most {MAX_SIZE:,} bytes, not {len(data):,}: is this "
                "the right file?"
            )
        try:
            raw = json.loads(data, parse_float=_no_float, parse_constant=_no_float)
        except (TypeError, ValueError, RecursionError) as error:
            if isinstance(error, InputError):
                raise
            raise InputError(
                "this is not a published survey, because it is not JSON; publish one with: "
                "deniable check survey.toml -o survey.json"
            ) from None
        got = raw.get("format") if isinstance(raw, dict) else raw
        if got not in (FORMAT, TESTING_FORMAT):
            raise InputError(
                f"this is not a published survey: its format must be {FORMAT!r}, not {got!r:.80}"
            )
        raw["testing"] = got == TESTING_FORMAT
        try:
            raw["expires"] = dt.date.fromisoformat(raw["expires"])
            raw["questions"] = tuple(map(Question.from_canonical, raw["questions"]))
            survey = cls(**{field.name: raw[field.name] for field in fields(cls)})
        except InputError:
            raise
        except KeyError as error:
            raise InputError(
                f"this is not a published survey: it has no {error.args[0]!r:.80}; publish it "
                "again from its TOML file"
            ) from None
        except (TypeError, ValueError, AttributeError, RecursionError):
            raise InputError(
                "this is not a published survey: a setting has the wrong type; publish it again "
                "from its TOML file"
            ) from None
        written = data.encode() if isinstance(data, str) else data
        if survey.canonical != written.removesuffix(b"\n"):
            raise InputError(
                "the published survey was changed after publication: it is not in canonical form, "
                "or states a wrong loss; publish it again from its TOML file"
            )
        return survey

    @classmethod
    def from_toml(cls, text: str) -> Survey:
        """Read a survey in TOML.

        Parameters
        ----------
        text : str
            Contents of a survey file, not its path; docs/reference/survey.md describes it.

        Returns
        -------
        Survey
            The survey, with defaults for everything that is left out.

        Raises
        ------
        SurveyError
            If there are mistakes; it lists all of them.
        """
        from deniable.survey.toml_file import read_toml

        return read_toml(text)

    @classmethod
    def of(cls, given: SurveyOrPath) -> Survey:
        """Return a survey that is given as such, or as the path of its file.

        Parameters
        ----------
        given : Survey, str or Path
            A survey, or the path of a survey file, as for `load`.

        Returns
        -------
        Survey
            The survey.

        Raises
        ------
        InputError
            If it is neither, or a published survey is invalid.
        SurveyError
            If a TOML file has mistakes; it lists all of them.
        """
        if isinstance(given, cls):
            return given
        if isinstance(given, str | PathLike):
            return cls.load(given)
        raise InputError(
            "survey must be a Survey or the path of a survey file, such as survey.json, "
            f"not {type(given).__name__}"
        )

    @classmethod
    def load(cls, path: str | PathLike[str]) -> Survey:
        """Read a survey file.

        Parameters
        ----------
        path : str or Path
            A `.json` file is a published survey; any other file is TOML.

        Returns
        -------
        Survey
            The survey.

        Raises
        ------
        InputError
            If a published survey is invalid, or the file is not UTF-8.
        SurveyError
            If a TOML file has mistakes; it lists all of them.
        """
        if not str(path).endswith(".json"):
            try:
                return cls.from_toml(read_text(path))
            except SurveyError as error:
                raise SurveyError(error.mistakes, str(path)) from None
        with open(path, "rb") as file:
            data = file.read()
        try:
            return cls.from_json(data)
        except InputError as error:
            raise InputError(f"{path}: {error}") from None

    def publish(self, path: str | PathLike[str]) -> None:
        """Write the published form, which clients load.

        Parameters
        ----------
        path : str or Path
            File to write; its name should end in `.json`.
        """
        with open(path, "wb") as file:
            file.write(self.canonical + b"\n")


SurveyOrPath: TypeAlias = Survey | str | PathLike[str]
"""A survey, or the path of its file."""
