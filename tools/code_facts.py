"""Facts of the documentation that are computed from the code: settings, defaults, limits.

`tools/facts.py` inserts them where a page says `<!-- generated: code::NAME -->`.
"""

from __future__ import annotations

import json
import math
import re
import tomllib
from bisect import bisect_right
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from deniable import conformance
from deniable.analysis import counting
from deniable.mechanisms import Bloom, Noise, calibrate
from deniable.planning import discoverable
from deniable.store import compaction
from deniable.survey import Survey, defaults, toml_file, toml_tables
from tools.markdown import markdown_table

MEANINGS = tomllib.loads((Path(__file__).parent / "survey_keys.toml").read_text())
PAPER_EPSILON = 4.39
STRING = """
name = "facts"
version = 1
owner = "documentation"
description = "defaults"
expires = 2999-12-31
collect = "once"
[questions.q]
kind = "string"
epsilon = {}
"""
DOMAINS = """
mechanism = "localhash"
[questions.q.dictionary]
protocol = "prefixes"
max_length = 20
alphabet = "a-z0-9._-"
"""


# --- the keys of the survey file -----------------------------------------------------------------


def key_table(section: str) -> str:
    """Return the keys of one part of the survey file: type, default and meaning."""
    accepted, described = SETTINGS[section], MEANINGS[section]
    if accepted.keys() != described.keys():
        different = sorted(accepted.keys() ^ described.keys())
        raise KeyError(f"tools/survey_keys.toml and the code differ in {different}")
    rows = []
    for key, setting in accepted.items():
        default = _default(setting, described[key].get("omitted", ""))
        rows.append([f"`{key}`", _type(setting), default, described[key]["meaning"]])
    return markdown_table(["Key", "Type", "Default", "Meaning"], rows)


def _type(setting: toml_tables.Setting) -> str:
    if setting.among:
        return " or ".join(f'`"{word}"`' for word in setting.among)
    for words, name in TYPES.items():
        if setting.expected.startswith(words):
            limits = setting.expected.removeprefix(words).split(", such as")[0]
            return name + re.sub(r"\d{5,}", lambda digits: f"{int(digits[0]):,}", limits)
    return "string"


def _default(setting: toml_tables.Setting, omitted: str) -> str:
    if setting.default is toml_tables.REQUIRED:
        return "required"
    if omitted:
        return omitted
    return "empty" if setting.default == "" else f"`{json.dumps(setting.default)}`"


TYPES = {
    "an integer": "integer",
    "a number": "number",
    "a list of": "list of",
    "true or false": "boolean",
    "a date without quotes or time": "date",
    "a table": "table",
}
SETTINGS: Mapping[str, Mapping[str, toml_tables.Setting]] = {
    "survey": toml_file.SURVEY,
    "question": toml_file.QUESTION,
    "string": {"mechanism": toml_file.MECHANISM, "dictionary": toml_tables.inner_table},
    **toml_file.MECHANISMS,
    "dictionary": toml_file.DICTIONARY,
    "ngrams": {**toml_file.NGRAMS, "split": toml_tables.numbers([])},
    "prefixes": {"levels": toml_tables.integers([]), "shares": toml_tables.numbers([])},
}


# --- defaults ------------------------------------------------------------------------------------


def default_bits(epsilon: float) -> int:
    """Return the bits of a Bloom filter for a string collected once with this ε."""
    mechanism = Survey.from_toml(STRING.format(epsilon)).questions[0].protocol.mechanisms[0]
    assert isinstance(mechanism, Bloom)
    return mechanism.bits


def bits_sentence() -> str:
    """Return from which ε on how many bits are the default."""
    fewest = defaults.MIN_DEFAULT_BITS
    tenths = bisect_right(range(1, 120), fewest, key=lambda n: default_bits(n / 10))
    last = tenths / 10
    return f"{fewest} up to ε = {last}, {default_bits(PAPER_EPSILON)} at ε = {PAPER_EPSILON}"


def example_levels() -> str:
    """Return the default prefix lengths and shares of 20 characters of a-z0-9._-, as a table."""
    levels = defaults.prefix_lengths(39, 20)
    lengths = [str(length) for length, _ in levels]
    shares = [f"{100 * share:.1f} %" for _, share in levels]
    return markdown_table(["Prefix length", *lengths], [["Clients", *shares]])


def epsilon_table() -> str:
    """Return what ε means for the odds and for a yes-or-no question."""
    headings = ["ε per report", "largest change of the odds"]
    headings += ["probability of a true yes-or-no answer", "example"]
    rows = []
    for epsilon, example in EPSILONS.items():
        odds = math.exp(epsilon)
        rows.append([f"{epsilon:.3g}", f"{odds:.2g}", f"{odds / (1 + odds):.2f}", example])
    return markdown_table(headings, rows)


EPSILONS = {
    0.5: "very strict",
    1.0: "",
    math.log(3): "Warner's coin flips (ln 3)",
    2.0: "",
    PAPER_EPSILON: "the paper's experiment with URLs",
}


def bloom_counters(epsilon: float) -> str:
    """Return the millions of pair counters of two Bloom filters with the defaults for this ε."""
    return f"{default_bits(epsilon) ** 2 * defaults.COHORTS / 1e6:.0f}"


def rarest_domain() -> str:
    """Return n such that a million clients at the paper's ε find a domain that one in n holds."""
    question = Survey.from_toml(STRING.format(PAPER_EPSILON) + DOMAINS).questions[0]
    return f"{round(1 / discoverable(question, 1_000_000), -1):,.0f}"


def paper_bloom(q: float) -> Bloom:
    """Return the mechanism of the paper's URL experiment."""
    return Bloom(noise=Noise.of(p=0.25, q=q), bits=128, hashes=2, cohorts=64)


def q_of_a_third() -> str:
    """Return the q with which each of three slots has a third of the paper's ε."""
    mechanism = calibrate(paper_bloom(0.5), PAPER_EPSILON / 3, vary="q")
    return f"{float(mechanism.noise.q_star):.3f}"


def power_of_ten(value: int) -> str:
    """Return a large number as a multiple of a power of ten.

    >>> power_of_ten(1_200_000_000), power_of_ten(4_000_000)
    ('1.2 · 10⁹', '4 · 10⁶')
    """
    exponent = int(math.log10(value))
    superscript = str(exponent).translate(str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹"))
    return f"{value / 10**exponent:g} · 10{superscript}"


# --- limits of the guarantee ---------------------------------------------------------------------


def change_evidence(changed: bool, bits: int = 128, hashes: int = 2) -> float:
    """Return the largest log-likelihood ratio of two reports for or against a change of the value.

    Permanent noise f = ½, fresh noise p = ¼ and q = ¾. Each bit contributes the largest ratio over
    both reports' bits; `hashes` bits are set by the first value only, as many by the second only.
    """
    permanent, fresh = {0: 0.25, 1: 0.75}, {0: 0.25, 1: 0.75}

    def sent(bit: int, out: int) -> float:
        return fresh[bit] if out else 1 - fresh[bit]

    def both(value_bit: int, first: int, second: int) -> float:
        one = permanent[value_bit]
        return sum((one if b else 1 - one) * sent(b, first) * sent(b, second) for b in (0, 1))

    def single(value_bit: int, out: int) -> float:
        return both(value_bit, out, 0) + both(value_bit, out, 1)

    def largest(before: int, after: int) -> float:
        ratios = [
            math.log(single(before, x) * single(after, y) / both(before, x, y))
            for x in (0, 1) for y in (0, 1)
        ]  # fmt: skip
        return max(ratios) if changed else -min(ratios)

    unset = (bits - 2 * hashes) * largest(0, 0)
    return unset + hashes * (largest(1, 0) + largest(0, 1))


# --- the wire format -----------------------------------------------------------------------------


def wire_examples() -> str:
    """Return one vector of each step that begins with a value or a token."""
    blocks = []
    for file in EXAMPLES:
        vectors = json.loads((VECTORS / file).read_text())
        vector = next(vector for vector in vectors if _has_input(vector))
        shown = json.dumps(vector, indent=1, ensure_ascii=False)
        blocks.append(f"`{file}`:\n\n```json\n{shown}\n```")
    return "\n\n".join(blocks)


def _has_input(vector: Mapping[str, Any]) -> bool:
    values = [
        vector.get("token", "x"),
        vector.get("value", "x"),
        *vector.get("values", {}).values(),
    ]
    return all(values)


VECTORS = Path(conformance.__file__).parent / "vectors"
EXAMPLES = ("hashing.json", "permanent.json", "instantaneous.json", "slots.json", "reports.json")


CODE_FACTS: dict[str, Callable[[], str]] = {
    **{f"keys.{section}": lambda s=section: key_table(s) for section in SETTINGS},  # type: ignore[misc]
    "default.bits": bits_sentence,
    "default.hashes": lambda: str(defaults.HASHES),
    "default.cohorts": lambda: str(defaults.COHORTS),
    "default.families": lambda: str(defaults.FAMILIES),
    "bits.least": lambda: str(defaults.MIN_DEFAULT_BITS),
    "bits.most": lambda: f"{defaults.MAX_DEFAULT_BITS:,}",
    "levels.whole": lambda: power_of_ten(defaults.MAX_ENUMERATED_STRINGS),
    "levels.longest": lambda: str(defaults.MAX_ENUMERATED_LENGTH),
    "levels.first": lambda: f"{defaults.MAX_FIRST_PREFIXES:,}",
    "levels.decay": lambda: f"{defaults.SHARE_DECAY:g}",
    "levels.last": lambda: f"{100 * defaults.CONFIRMATION_SHARE:g} %",
    "levels.example": example_levels,
    "wire.examples": wire_examples,
    "urls.printed-epsilon": lambda: f"{3 * paper_bloom(0.32).loss.per_report:.2f}",
    "urls.third-q": q_of_a_third,
    "threshold.urls": rarest_domain,
    "segment.bytes": lambda: str(compaction.MAX_SEGMENT_BYTES >> 20),
    "segment.uploads": lambda: f"{compaction.MAX_SEGMENT_UPLOADS:,}",
    "counters.most": lambda: f"{counting.MAX_COUNTERS / 1e6:.0f}",
    "counters.3": lambda: bloom_counters(3.0),
    "counters.5": lambda: bloom_counters(5.0),
    "epsilon.table": epsilon_table,
    "odds.paper": lambda: f"{math.exp(PAPER_EPSILON):.0f}",
    "evidence.changed": lambda: str(math.floor(change_evidence(True))),
    "evidence.unchanged": lambda: str(math.floor(change_evidence(False))),
}
