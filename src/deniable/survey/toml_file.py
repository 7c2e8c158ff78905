"""Read a survey from the TOML file that people write, and report all of its mistakes at once.

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

docs/reference/survey.md describes every setting; its tables are generated from this module.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from deniable.errors import InputError, SurveyError
from deniable.mechanisms import Boolean, Mechanism, Noise
from deniable.mechanisms.base import Settings
from deniable.mechanisms.local_hash import MAX_VALUES
from deniable.mechanisms.schemes import SCHEME_NAMES
from deniable.mechanisms.subset import MAX_SUBSET_OPTIONS
from deniable.privacy import nanonats_down, split
from deniable.protocols import Alphabet, Bins, NGrams, Prefixes, Protocol, Single
from deniable.protocols.bins import (
    MAX_BINS,
    bin_labels,
    check_edges,
    linear_edges,
    logarithmic_edges,
)
from deniable.protocols.prefixes import Level
from deniable.survey import defaults
from deniable.survey import toml_tables as toml
from deniable.survey.survey import NAME, NAME_RULE, Collect, Question, Survey, total_charge
from deniable.survey.toml_tables import Table

SURVEY = {
    "name": toml.text(NAME_RULE, fits=NAME.fullmatch),
    "version": toml.integer(1, 2**31 - 1),
    "owner": toml.text("a text: who is responsible for the survey, and how to reach them"),
    "description": toml.text("a text for the people who are asked: what is asked, and why"),
    "expires": toml.day,
    "collect": toml.one_of("once", "repeatedly"),
    "defaults": toml.integer(1, defaults.NEWEST, 1),
    "budget": toml.number("above 0", lambda x: x > 0),
}
PROBABILITY = toml.number("from 0 to 1", lambda x: 0 <= x <= 1)
NOISE = dict.fromkeys("pqf", PROBABILITY)
QUESTION = {
    "kind": toml.one_of("string", "choice", "boolean", "number"),
    "description": toml.text("a text: what is asked", ""),
    **NOISE,
    "epsilon": toml.number("above 0", lambda x: x > 0),
    "epsilon_per_report": toml.number("above 0", lambda x: x > 0),
}
STRING_MECHANISM = toml.one_of("bloom", "localhash", default="bloom")
CHOICE_MECHANISM = toml.one_of("subset", "bits", default=None)
MECHANISMS = {
    "bloom": {
        "bits": toml.integer(2, 65536, None),
        "hashes": toml.integer(1, 65536, defaults.HASHES),
        "cohorts": toml.integer(1, 65536, defaults.COHORTS),
        "scheme": toml.one_of(*SCHEME_NAMES, default=SCHEME_NAMES[0]),
    },
    "localhash": {
        "values": toml.integer(2, MAX_VALUES, None),
        "families": toml.integer(1, 65536, defaults.FAMILIES),
    },
    "subset": {"options": toml.texts, "members": toml.integer(1, MAX_SUBSET_OPTIONS, None)},
    "choice": {"options": toml.texts},
    "boolean": {},
}
ONLY_EPSILON = {"localhash": "local hashing", "subset": "subset selection"}
"""Mechanisms whose noise follows from ε alone, with their names in words."""
DICTIONARY = {
    "protocol": toml.one_of("ngrams", "prefixes"),
    "max_length": toml.integer(1, 255),
    "alphabet": toml.text('characters and ranges such as "a-z0-9._-", or "bytes"'),
}
BINS = {
    "edges": toml.any_numbers(None),
    "low": toml.number("", lambda _: True),
    "high": toml.number("", lambda _: True),
    "bins": toml.integer(2, MAX_BINS, None),
    "scale": toml.one_of("linear", "log", default="linear"),
    "unit": toml.text('a text: the unit of the numbers, such as "ms"', ""),
}
NGRAMS = {"gram": toml.integer(1, 255, 2), "grams": toml.integer(2, 255, 2), "overlap": toml.flag}

PLACEHOLDER = Boolean(noise=Noise.of(p=0.25, q=0.75))
"""Replaces a mechanism that has mistakes while its dictionary is checked for more."""

Make = Callable[[float | None], Mechanism]
"""From a share of ε, or None if ε is not given, to a mechanism that spends it."""


@dataclass(frozen=True)
class Rules:
    """What a survey file says for all of its questions.

    Parameters
    ----------
    survey : str
        Name of the survey.
    collect : {"once", "repeatedly"}
        How often a client reports.
    defaults : int
        Version of the defaults: which values settings have that the file leaves out.
    """

    survey: str
    collect: Collect
    defaults: int


def read_toml(text: str) -> Survey:
    """Return the survey in a TOML text; raise SurveyError with all mistakes if there are any."""
    if not isinstance(text, str):
        raise InputError(f"a survey in TOML must be text, not {type(text).__name__}")
    try:
        data = tomllib.loads(text)
    except (ValueError, RecursionError) as error:  # TOMLDecodeError is a ValueError
        raise SurveyError([f"this is not valid TOML: {error}"]) from None
    mistakes: list[str] = []
    root = Table(data, "", mistakes, toml.line_numbers(text))
    survey = _survey(root)
    if survey is None or mistakes:
        raise SurveyError(mistakes)
    return survey


def _survey(root: Table) -> Survey | None:
    """Return the survey of the root table, or None if there are mistakes."""
    settings = root.read(SURVEY)
    name, budget = settings["name"] or "", settings["budget"]
    collect: Collect = settings["collect"] or "once"
    rules = Rules(name, collect, settings.pop("defaults") or 1)
    read = [_question(table, rules) for table in root.tables("questions")]
    root.finish("survey")
    if not read and not root.mistakes:
        root.mistake("questions", "a survey needs at least one table [questions.NAME]")
    if root.mistakes:
        return None
    questions = tuple(question for question in read if question is not None)
    # Without a budget, clients may spend exactly the loss of their answers.
    least = total_charge(questions, collect)
    settings["budget"] = least if budget is None else nanonats_down(budget)
    return root.attempt("", lambda: Survey(**settings, questions=questions))


def _question(table: Table, rules: Rules) -> Question | None:
    """Return the question of a table [questions.NAME], or None if it has mistakes."""
    before = len(table.mistakes)
    if not NAME.fullmatch(table.name):
        table.mistake("", f'the name of a question must be {NAME_RULE}, not "{table.name}"')
    settings = table.read(QUESTION)
    kind, epsilon, per_report = (settings[x] for x in ("kind", "epsilon", "epsilon_per_report"))
    noise = {letter: settings[letter] for letter in NOISE}
    if per_report is not None:
        _check_per_report(table, settings, rules)
    mechanism, dictionary = _mechanism(table, kind, rules), None
    wanted = dict(MECHANISMS.get(mechanism, {}))
    if bins := _bins(table) if kind == "number" else None:
        del wanted["options"]  # a number is reported as a choice of bins
    parameters = table.read(wanted) | (bins.options if bins else {})
    if mechanism in ONLY_EPSILON:
        for letter, value in noise.items():
            if value is not None:
                table.mistake(letter, f"not used with {ONLY_EPSILON[mechanism]}: set epsilon only")
    if kind == "string":
        data = table.read({"dictionary": toml.inner_table})["dictionary"]
        dictionary = None if data is None else table.inner("dictionary", data)
    if kind is not None:
        table.finish(f"{kind} question")
    if len(table.mistakes) > before:
        if dictionary is not None:
            _dictionary(dictionary, lambda _: PLACEHOLDER, None)
        return None
    make = _maker(mechanism, parameters, noise, rules, (epsilon, per_report))
    if dictionary is not None:
        protocol = _dictionary(dictionary, make, epsilon)
    elif bins is not None:
        protocol = table.attempt("", lambda: Bins(make(epsilon), bins.edges, bins.unit))
    else:
        protocol = table.attempt("", lambda: Single(make(epsilon)))
    if protocol is None:
        return None
    keyed = protocol.within(rules.survey, table.name)
    return table.attempt("", lambda: Question(table.name, kind, settings["description"], keyed))


def _mechanism(table: Table, kind: str | None, rules: Rules) -> str:
    """Return the kind of the mechanism that a question names, or the default."""
    if kind == "string":
        named = table.read({"mechanism": STRING_MECHANISM})["mechanism"] or "bloom"
        return "localhash" if rules.defaults >= 2 and _means_local_hashing(table) else named
    if kind not in ("choice", "number"):
        return kind or ""
    named = table.read({"mechanism": CHOICE_MECHANISM})["mechanism"]
    if named is None and rules.collect == "once" and rules.defaults >= 2:
        options = table.data.get("options", [])
        few = isinstance(options, list) and len(options) <= MAX_SUBSET_OPTIONS
        named = "subset" if few and not table.data.keys() & NOISE.keys() else "bits"
    if named != "subset" and "members" in table.data:
        table.known.append("members")
        table.mistake("members", 'only used with mechanism = "subset"')
    return "subset" if named == "subset" else "choice"


def _check_per_report(table: Table, settings: Settings, rules: Rules) -> None:
    """Add what is wrong with `epsilon_per_report` of a question."""
    key, epsilon = "epsilon_per_report", settings["epsilon"]
    if rules.collect == "once":
        table.mistake(key, 'only for collect = "repeatedly"; otherwise, epsilon is per report')
    elif epsilon is None:
        table.mistake(key, "needs epsilon, the loss of all reports in total")
    elif any(settings[letter] is not None for letter in NOISE):
        table.mistake(
            key, "not together with p, q or f, which are computed from it: leave them out"
        )
    elif table.data.get("scheme", SCHEME_NAMES[0]) != SCHEME_NAMES[0]:
        table.mistake(key, f'only for scheme = "{SCHEME_NAMES[0]}": leave out one of them')
    elif settings[key] >= epsilon:
        equal = "otherwise all reports of a client would be the same, and tell who it is"
        table.mistake(key, f"must be below epsilon = {epsilon:g}, the loss in total: {equal}")


def _means_local_hashing(table: Table) -> bool:
    """Return whether a string question without a mechanism means local hashing.

    It does if its dictionary has prefixes, and no setting is one of Bloom filters.
    """
    dictionary = table.data.get("dictionary")
    if not isinstance(dictionary, dict) or dictionary.get("protocol") != "prefixes":
        return False
    return table.data.keys().isdisjoint({"mechanism", *NOISE, *MECHANISMS["bloom"]})


@dataclass(frozen=True)
class _Bins:
    """The bins of a number question; no edges if they have mistakes."""

    edges: tuple[float, ...]
    unit: str

    @property
    def options(self) -> Settings:
        """The bins as the options of a choice."""
        return {"options": list(bin_labels(self.edges))}


def _bins(table: Table) -> _Bins:
    """Return the bins that a number question gives by `edges`, or by `low`, `high` and `bins`."""
    settings = table.read(BINS)
    edges, unit = settings["edges"], settings["unit"]
    given = [key for key in ("low", "high", "bins", "scale") if key in table.data]
    missing = [key for key in ("low", "high", "bins") if key not in table.data]
    if "edges" in table.data:
        if given:
            table.mistake(given[0], "not used with edges, which give every bin: leave out one")
        made = edges and tuple(map(float, edges))
    elif missing:
        table.mistake(missing[0], "missing; a number question needs edges, or low, high and bins")
        made = None
    else:
        made = table.attempt("low", lambda: _computed_edges(settings))
    if made:
        table.attempt("edges" if edges else "low", lambda: check_edges(made))
    return _Bins(made or (), unit or "")


def _computed_edges(settings: Settings) -> tuple[float, ...] | None:
    """Return the edges from `low` to `high`; None if one of the settings is invalid."""
    low, high, bins, scale = (settings[key] for key in ("low", "high", "bins", "scale"))
    if None in (low, high, bins, scale):
        return None
    if not low < high:
        raise InputError(f"low must be below high, unlike {low:g} and {high:g}")
    make = linear_edges if scale == "linear" else logarithmic_edges
    return make(float(low), float(high), bins)


def _maker(
    kind: str,
    parameters: Settings,
    noise: dict[str, float | None],
    rules: Rules,
    limits: tuple[float | None, float | None],
) -> Make:
    """Return the function that makes a mechanism of this kind from a share of ε.

    limits : ε of the question, and ε per report if that is given
    """
    collect, (epsilon, per_report) = rules.collect, limits
    best = per_report is not None or (
        rules.defaults >= 2 and parameters.get("scheme", SCHEME_NAMES[0]) == SCHEME_NAMES[0]
    )

    def build(drawn: Noise) -> Mechanism:
        complete = dict(parameters)
        if kind == "bloom" and complete["bits"] is None:
            complete["bits"] = defaults.bits_for(drawn, complete["hashes"])
        return defaults.built(kind, complete, drawn)

    def make(share: float | None) -> Mechanism:
        own = None
        if per_report is not None and share is not None and epsilon is not None:
            own = per_report if share == epsilon else per_report * (share / epsilon)
        if kind == "localhash":
            return defaults.local_hash(collect, epsilon=share, per_report=own, **parameters)
        if kind == "subset":
            return defaults.subset(collect, epsilon=share, **parameters)
        return defaults.fill(build, collect, epsilon=share, per_report=own, best=best, **noise)

    return make


def _dictionary(table: Table, make: Make, epsilon: float | None) -> Protocol | None:
    """Return the protocol of a table [questions.NAME.dictionary], or None if it has mistakes."""
    before = len(table.mistakes)
    settings = table.read(DICTIONARY)
    name, length = settings["protocol"], settings["max_length"]
    alphabet = table.attempt("alphabet", lambda: parse_alphabet(settings["alphabet"] or "a"))
    if name == "ngrams":
        grams = table.read(NGRAMS)
        slots = (grams["grams"] or 2) + 1
        shares = _shares(table, "split", [1.0] * slots, "the full string, then each n-gram")
    elif name == "prefixes":
        usual = defaults.prefix_lengths(len(alphabet.content) if alphabet else 1, length or 1)
        setting = toml.integers([n for n, _ in usual])
        lengths = table.read({"levels": setting})["levels"] or []
        default_shares = [share for _, share in usual]
        if "levels" in table.data:
            default_shares = [1.0] * len(lengths)
        shares = _shares(table, "shares", default_shares, "one per prefix length")
    if name is not None:
        table.finish(f"dictionary with {name}")
    if alphabet is None or len(table.mistakes) > before:
        return None

    def build() -> Protocol:
        if name == "prefixes":
            levels = tuple(map(Level, lengths, defaults.weights(shares)))
            return Prefixes(alphabet, length, levels, make(epsilon))
        each = [None] * slots if epsilon is None else split(epsilon, shares)
        full, *others = map(make, each)
        return NGrams(alphabet, length, grams["gram"], full, tuple(others), grams["overlap"])

    return table.attempt("", build)


def _shares(table: Table, key: str, default: Sequence[float], meaning: str) -> list[float]:
    """Return a list of shares, which must be as long as the default."""
    shares: list[float] = table.read({key: toml.numbers(default)})[key]
    if shares is not None and len(shares) != len(default):
        count = f"{len(default)} numbers ({meaning})"
        table.mistake(key, f"must be {count}, not {toml.as_written(shares)}")
    return shares


def parse_alphabet(written: str) -> Alphabet:
    """Return the alphabet of characters and ranges such as a-z; "bytes" means any text.

    >>> parse_alphabet("a-c_-").characters
    'abc_-'
    """
    if written == "bytes":
        return Alphabet(None)
    sources: dict[str, str] = {}  # from each character to the character or range that gave it
    at = 0
    while at < len(written):
        is_range = at + 2 < len(written) and written[at + 1] == "-"
        source = written[at : at + 3] if is_range else written[at]
        first, last = source[0], source[-1]
        if first > last:
            raise InputError(
                f"alphabet has the range {source!r}, which runs backwards: write '{last}-{first}', "
                "or put a literal hyphen last"
            )
        for character in map(chr, range(ord(first), ord(last) + 1)):
            if character in sources:
                raise InputError(_repeated(character, source, sources[character]))
            sources[character] = source
        at += len(source)
    return Alphabet("".join(sources))


def accidental_ranges(written: str) -> list[str]:
    """Return what to say about ranges of an alphabet that were probably meant as a hyphen.

    >>> accidental_ranges("a-z.-_")
    ["'.-_' is a range of 50 characters (put a literal hyphen last)"]
    """
    return [
        f"'{first}-{last}' is a range of {ord(last) - ord(first) + 1} characters (put a literal "
        "hyphen last)"
        for first, last in re.findall("(.)-(.)", written)
        if not (first.isalnum() and last.isalnum())
    ]


def _repeated(character: str, *sources: str) -> str:
    """Explain why an alphabet repeats a character: often a hyphen is a range by accident."""
    for source in sources:
        if len(source) == 3 and not (source[0].isalnum() and source[2].isalnum()):
            return (
                f"alphabet repeats {character!r}: {source!r} is a range from {source[0]!r} to "
                f"{source[2]!r}; put a literal hyphen last"
            )
    return f"alphabet repeats {character!r}: list each character once"
