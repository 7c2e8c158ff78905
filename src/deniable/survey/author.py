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

docs/reference/survey.md describes every setting; a test holds the two together.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Sequence

from deniable.errors import InputError, SurveyError
from deniable.mechanisms import Boolean, Mechanism, Noise
from deniable.mechanisms.base import KINDS, Settings
from deniable.mechanisms.local_hash import MAX_VALUES
from deniable.mechanisms.schemes import SCHEME_NAMES
from deniable.privacy import nanonats_down, split
from deniable.protocols import Alphabet, NGrams, Prefixes, Protocol, Single
from deniable.protocols.prefixes import Level
from deniable.survey import defaults, toml
from deniable.survey.survey import NAME, NAME_RULE, Collect, Question, Survey, total_charge
from deniable.survey.toml import Table

SURVEY = {
    "name": toml.text(NAME_RULE, fits=NAME.fullmatch),
    "version": toml.whole(1, 2**31 - 1),
    "owner": toml.text("who answers for this survey, and how to reach them"),
    "description": toml.text("what is asked and why, for those who are asked"),
    "expires": toml.day,
    "collect": toml.one_of("once", "repeatedly"),
    "budget": toml.number("above 0", lambda x: x > 0),
}
PROBABILITY = toml.number("from 0 to 1", lambda x: 0 <= x <= 1)
NOISE = dict.fromkeys("pqf", PROBABILITY)
QUESTION = {
    "kind": toml.one_of("string", "choice", "boolean"),
    "description": toml.text("what is asked", ""),
    **NOISE,
    "epsilon": toml.number("above 0", lambda x: x > 0),
}
MECHANISM = toml.one_of("bloom", "localhash", default="bloom")
MECHANISMS = {
    "bloom": {
        "bits": toml.whole(2, 65536, None),
        "hashes": toml.whole(1, 65536, defaults.HASHES),
        "cohorts": toml.whole(1, 65536, defaults.COHORTS),
        "scheme": toml.one_of(*SCHEME_NAMES, default=SCHEME_NAMES[0]),
    },
    "localhash": {
        "values": toml.whole(2, MAX_VALUES, None),
        "families": toml.whole(1, 65536, defaults.FAMILIES),
    },
    "choice": {"options": toml.texts},
    "boolean": {},
}
DICTIONARY = {
    "protocol": toml.one_of("ngrams", "prefixes"),
    "max_length": toml.whole(1, 255),
    "alphabet": toml.text('characters and ranges such as "a-z0-9._-", or "bytes"'),
}
NGRAMS = {"gram": toml.whole(1, 255, 2), "grams": toml.whole(2, 255, 2), "overlap": toml.flag}

PLACEHOLDER = Boolean(noise=Noise.of(p=0.25, q=0.75))
"""Stands in for a mechanism with mistakes while its dictionary is searched for more."""

Make = Callable[[float | None], Mechanism]
"""From a share of ε, where it is given, to the mechanism that spends it."""


def read_toml(text: str) -> Survey:
    """The survey, or SurveyError with every mistake found."""
    try:
        data = tomllib.loads(text)
    except (ValueError, RecursionError) as error:  # TOMLDecodeError is a ValueError
        raise SurveyError([f"not TOML: {error}"]) from None
    mistakes: list[str] = []
    root = Table(data, "", mistakes, toml.line_numbers(text))
    survey = _survey(root)
    if survey is None or mistakes:
        raise SurveyError(mistakes)
    return survey


def _survey(root: Table) -> Survey | None:
    given = root.read(SURVEY)
    name, budget = given["name"] or "", given["budget"]
    collect: Collect = given["collect"] or "once"
    questions = [_question(table, name, collect) for table in root.tables("questions")]
    root.finish()
    if not questions and not root.mistakes:
        root.mistake("questions", "expected at least one [questions.NAME] table; got 'none'")
    if root.mistakes:
        return None
    asked = tuple(question for question in questions if question is not None)
    # A budget left out is exactly what its answers spend.
    given["budget"] = total_charge(asked, collect) if budget is None else nanonats_down(budget)
    return root.attempt("", lambda: Survey(**given, questions=asked))


def _question(table: Table, survey: str, collect: Collect) -> Question | None:
    before = len(table.mistakes)
    if not NAME.fullmatch(table.name):
        table.mistake("", f"expected a question's name of {NAME_RULE}; got {table.name!r}")
    asked = table.read(QUESTION)
    kind, epsilon = asked["kind"], asked["epsilon"]
    noise = {letter: asked[letter] for letter in NOISE}
    reported_by, dictionary = kind, None
    if kind == "string":
        reported_by = table.read({"mechanism": MECHANISM})["mechanism"] or "bloom"
    settings = table.read(MECHANISMS.get(reported_by, {}))
    if reported_by == "localhash":
        for letter, value in noise.items():
            if value is not None:
                says = f"expected none: local hashing follows from epsilon; got {value!r}"
                table.mistake(letter, says)
    if kind == "string":
        data = table.read({"dictionary": toml.inner_table})["dictionary"]
        dictionary = None if data is None else table.inner("dictionary", data)
    if kind is not None:
        table.finish()
    if len(table.mistakes) > before:
        if dictionary is not None:
            _dictionary(dictionary, lambda _: PLACEHOLDER, None)
        return None
    make = _maker(reported_by, settings, noise, collect)
    if dictionary is not None:
        protocol = _dictionary(dictionary, make, epsilon)
    else:
        protocol = table.attempt("", lambda: Single(make(epsilon)))
    if protocol is None:
        return None
    located = protocol.within(survey, table.name)
    return table.attempt("", lambda: Question(table.name, kind, asked["description"], located))


def _maker(kind: str, settings: Settings, noise: dict[str, float | None], collect: Collect) -> Make:
    def build(drawn: Noise) -> Mechanism:
        filled = dict(settings)
        if kind == "bloom" and filled["bits"] is None:
            filled["bits"] = defaults.bits_for(drawn, filled["hashes"])
        return KINDS[kind].from_settings(drawn, filled)

    if kind == "localhash":
        return lambda share: defaults.local_hash(collect, epsilon=share, **settings)
    return lambda share: defaults.fill(build, collect, epsilon=share, **noise)


def _dictionary(table: Table, make: Make, epsilon: float | None) -> Protocol | None:
    before = len(table.mistakes)
    given = table.read(DICTIONARY)
    name, length = given["protocol"], given["max_length"]
    alphabet = table.attempt("alphabet", lambda: _alphabet(given["alphabet"] or "a"))
    if name == "ngrams":
        asked = table.read(NGRAMS)
        parts = (asked["grams"] or 2) + 1
        shares = _shares(table, "split", [1.0] * parts, "weights: full string, then each n-gram")
    elif name == "prefixes":
        usual = defaults.prefix_lengths(len(alphabet.content) if alphabet else 1, length or 1)
        lengths = table.read({"levels": toml.integers([n for n, _ in usual])})["levels"] or []
        even = [1.0] * len(lengths)
        own = even if "levels" in table.data else [share for _, share in usual]
        shares = _shares(table, "shares", own, "shares, one a level")
    if name is not None:
        table.finish()
    if alphabet is None or len(table.mistakes) > before:
        return None

    def build() -> Protocol:
        if name == "prefixes":
            levels = tuple(map(Level, lengths, defaults.weights(shares)))
            return Prefixes(alphabet, length, levels, make(epsilon))
        each = [None] * parts if epsilon is None else split(epsilon, shares)
        full, *grams = map(make, each)
        return NGrams(alphabet, length, asked["gram"], full, tuple(grams), asked["overlap"])

    return table.attempt("", build)


def _shares(table: Table, key: str, default: Sequence[float], expected: str) -> list[float]:
    """As many shares as the default has."""
    shares: list[float] = table.read({key: toml.numbers(default)})[key]
    if shares is not None and len(shares) != len(default):
        table.mistake(key, f"expected {len(default)} {expected}; got {shares!r}")
    return shares


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
