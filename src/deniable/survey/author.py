"""Surveys as people write them: TOML in, every mistake out at once, each with its place.

    name = "homepages"
    version = 1
    owner = "Telemetry, telemetry@example.com"
    description = "Which home pages our users open"
    expires = 2027-12-31
    collect = "once"

    [questions.homepage]
    kind = "string"
    epsilon = 4.0

    [questions.homepage.dictionary]
    protocol = "prefixes"
    max_length = 20
    alphabet = "a-z0-9._-"

    [questions.dark_mode]
    kind = "boolean"
    epsilon = 1.0

docs/survey.md describes every setting; a test holds the two together.
"""

from __future__ import annotations

import datetime as dt
import tomllib
from collections.abc import Callable
from typing import Any

from deniable.errors import InputError, SurveyError
from deniable.mechanisms import Bloom, Boolean, Choice, Mechanism, Noise
from deniable.mechanisms.local_hash import MAX_VALUES
from deniable.mechanisms.schemes import SCHEME_NAMES
from deniable.privacy import nanonats_down, split
from deniable.protocols import Alphabet, NGrams, Prefixes, Protocol, Single
from deniable.protocols.prefixes import Level
from deniable.survey import defaults
from deniable.survey.survey import NAME, Question, Survey, spent
from deniable.survey.toml import Table, line_numbers

NAME_RULE = "a-z, 0-9, _ and -, a letter first, at most 64 characters"


def read_toml(text: str) -> Survey:
    """The survey, or SurveyError with every mistake found."""
    try:
        data = tomllib.loads(text)
    except (ValueError, RecursionError) as error:  # TOMLDecodeError is a ValueError
        raise SurveyError([f"not TOML: {error}"]) from None
    mistakes: list[str] = []
    root = Table(data, "", mistakes, line_numbers(text))
    survey = _survey(root)
    if survey is None or mistakes:
        raise SurveyError(mistakes)
    return survey


def _survey(root: Table) -> Survey | None:
    name = root.text("name", NAME_RULE, valid=lambda s: bool(NAME.fullmatch(s)))
    version = root.integer("version", 1, 2**31 - 1)
    owner = root.text("owner", "who answers for this survey, and how to reach them")
    description = root.text("description", "what is asked and why, for those who are asked")
    expires = root.value("expires", dt.date, "the last day, such as 2027-12-31")
    if isinstance(expires, dt.datetime):
        root.mistake("expires", "a day without a time, such as 2027-12-31", expires)
    collect = root.choice("collect", ("once", "repeatedly"))
    budget = root.number("budget", above=0, default=None)
    questions = [
        _question(table, name or "", collect or "once") for table in root.tables("questions")
    ]
    root.finish()
    if root.mistakes or not questions:
        if not questions and not root.mistakes:
            root.mistake("questions", "at least one [questions.NAME] table", "none")
        return None
    whole = tuple(question for question in questions if question is not None)
    return root.attempt(
        "", lambda: _resolved(name, version, owner, description, expires, collect, budget, whole)
    )


def _resolved(
    name: Any, version: Any, owner: Any, description: Any, expires: Any, collect: Any,
    budget: float | None, questions: tuple[Question, ...],
) -> Survey:  # fmt: skip
    """The survey; a budget left out is exactly what its answers spend."""
    nano = spent(questions, collect) if budget is None else nanonats_down(budget)
    return Survey(name, version, owner, description, expires, collect, nano, questions)


def _question(table: Table, survey: str, collect: str) -> Question | None:
    name = table.name
    before = len(table.mistakes)
    if not NAME.fullmatch(name):
        table.mistake("", f"a question's name of {NAME_RULE}", name)
    kind: Any = table.choice("kind", ("string", "choice", "boolean"))
    description = table.text("description", "what is asked", default="")
    noise = {letter: table.number(letter, 0, 1, default=None) for letter in ("p", "q", "f")}
    epsilon = table.number("epsilon", above=0, default=None)
    build: Callable[[Noise], Mechanism] | None = None
    hashed: Callable[[float | None], Mechanism] | None = None
    dictionary: Table | None = None
    if kind == "string":
        if table.choice("mechanism", ("bloom", "localhash"), default="bloom") == "localhash":
            hashed = _local_hash(table, collect, noise)
        else:
            build = _bloom(table)
        dictionary = table.table("dictionary")
    elif kind == "choice":
        options = table.texts("options")
        build = lambda noise: Choice(noise=noise, options=tuple(options))  # noqa: E731
    elif kind == "boolean":
        build = lambda noise: Boolean(noise=noise)  # noqa: E731
    if kind is not None:
        table.finish()
    if (build is None and hashed is None) or len(table.mistakes) > before:
        if dictionary is not None:
            _dictionary(dictionary, lambda _: None)
        return None
    make: Any = build

    def mechanism(share: float | None) -> Mechanism:
        if hashed is not None:
            return hashed(share)
        return defaults.fill(make, collect, epsilon=share, **noise)

    protocol: Protocol | None
    if dictionary is not None:
        protocol = _dictionary(dictionary, mechanism, epsilon)
    else:
        protocol = table.attempt("", lambda: Single(mechanism(epsilon)))
    if protocol is None:
        return None
    whole = protocol
    return table.attempt(
        "", lambda: Question(name, kind, description or "", whole.within(survey, name))
    )


def _bloom(table: Table) -> Callable[[Noise], Mechanism]:
    bits = table.integer("bits", 2, 65536, default=None)
    hashes = table.integer("hashes", 1, 65536, default=defaults.HASHES)
    cohorts = table.integer("cohorts", 1, 65536, default=defaults.COHORTS)
    scheme = table.choice("scheme", SCHEME_NAMES, default=SCHEME_NAMES[0])
    return lambda noise: Bloom(
        noise=noise, bits=bits or defaults.bits_for(noise, hashes or 1),
        hashes=hashes or 1, cohorts=cohorts or 1, scheme_name=scheme or SCHEME_NAMES[0],
    )  # fmt: skip


def _local_hash(
    table: Table, collect: str, noise: dict[str, float | None]
) -> Callable[[float | None], Mechanism]:
    values = table.integer("values", 2, MAX_VALUES, default=None)
    families = table.integer("families", 1, 65536, default=defaults.FAMILIES)
    for letter in (letter for letter, given in noise.items() if given is not None):
        table.mistake(letter, "none: local hashing follows from epsilon", noise[letter])
    return lambda epsilon: defaults.local_hash(
        collect, epsilon=epsilon, values=values, families=families or 1
    )


def _dictionary(
    table: Table, mechanism: Callable[[float | None], Any], epsilon: float | None = None
) -> Protocol | None:
    before = len(table.mistakes)
    name = table.choice("protocol", ("ngrams", "prefixes"))
    length = table.integer("max_length", 1, 255)
    ranges = table.text("alphabet", 'characters and ranges such as "a-z0-9._-", or "bytes"')
    alphabet = table.attempt("alphabet", lambda: _alphabet(ranges or "a"))
    if name == "ngrams":
        gram = table.integer("gram", 1, 255, default=2)
        grams = table.integer("grams", 2, 255, default=2)
        overlap = table.value("overlap", bool, "true or false", default=False)
        shares = table.numbers("split", default=[1.0] * ((grams or 2) + 1))
        if grams is not None and len(shares) != grams + 1:
            table.mistake("split", f"{grams + 1} weights: full string, then each n-gram", shares)
    elif name == "prefixes":
        usual = defaults.levels(len(alphabet.content) if alphabet else 1, length or 1)
        lengths = table.integers("levels", default=[length for length, _ in usual])
        even = [1.0] * len(lengths)
        given = "levels" in table.data
        shares = table.numbers("shares", default=even if given else [s for _, s in usual])
        if len(shares) != len(lengths):
            table.mistake("shares", f"{len(lengths)} shares, one a level", shares)
    if name is not None:
        table.finish()
    if name is None or length is None or alphabet is None or len(table.mistakes) > before:
        return None

    def build() -> Protocol:
        if name == "prefixes":
            levels = tuple(map(Level, lengths, defaults.weights(shares)))
            return Prefixes(alphabet, length, levels, mechanism(epsilon))
        each = [None] * len(shares) if epsilon is None else split(epsilon, shares)
        full, *each_gram = map(mechanism, each)
        return NGrams(alphabet, length, gram or 2, full, tuple(each_gram), bool(overlap))

    return table.attempt("", build)


def _alphabet(ranges: str) -> Alphabet:
    """Characters, and ranges such as a-z written with a hyphen; "bytes" is any text at all."""
    if ranges == "bytes":
        return Alphabet(None)
    characters, at = "", 0
    while at < len(ranges):
        if at + 2 < len(ranges) and ranges[at + 1] == "-":
            first, last = ord(ranges[at]), ord(ranges[at + 2])
            if first > last:
                raise InputError(
                    f"expected a range that goes up, got {ranges[at : at + 3]!r}; "
                    "put a hyphen itself last"
                )
            characters += "".join(map(chr, range(first, last + 1)))
            at += 3
        else:
            characters += ranges[at]
            at += 1
    return Alphabet(characters)
