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
from dataclasses import astuple
from fractions import Fraction
from pathlib import Path

from deniable.analysis import counting
from deniable.columns import arrow
from deniable.formatting import epsilon_text, odds_factor
from deniable.mechanisms import Bloom, Choice, Noise, calibrate
from deniable.observers.amplification import DEFAULT_DELTA, shuffled_epsilon
from deniable.observers.clone_sums import numerical_epsilon
from deniable.planning import discoverable
from deniable.privacy import binary_response, total_variation
from deniable.store import compaction
from deniable.survey import Survey, defaults, toml_file, toml_tables
from tools.markdown import markdown_table

MEANINGS = tomllib.loads((Path(__file__).parent / "survey_keys.toml").read_text())
PAPER_EPSILON = 4.39
SHUFFLED_EPSILONS = (0.5, 1, 2, PAPER_EPSILON)
SHUFFLED_CROWDS = (1001, 10**4, 10**5, 10**6, 10**8)
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
    "string": {"mechanism": toml_file.STRING_MECHANISM, "dictionary": toml_tables.inner_table},
    **toml_file.MECHANISMS,
    "choice": {**toml_file.MECHANISMS["choice"], "mechanism": toml_file.CHOICE_MECHANISM},
    "subset": {"members": toml_file.MECHANISMS["subset"]["members"]},
    "number": toml_file.BINS,
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
    shares = [f"{100 * share:.1f}%" for _, share in levels]
    return markdown_table(["Prefix length", *lengths], [["Clients", *shares]])


def epsilon_table() -> str:
    """Return what ε means for the odds and for a yes-or-no question."""
    headings = ["ε per report", "maximum change of the odds"]
    headings += ["probability that a yes-or-no answer is sent unchanged", "example"]
    rows = []
    for epsilon, example in EPSILONS.items():
        odds = math.exp(epsilon)
        rows.append(
            [f"{epsilon:.3g}", f"× {odds_factor(epsilon)}", f"{odds / (1 + odds):.2f}", example]
        )
    return markdown_table(headings, rows)


EPSILONS = {
    0.5: "very strict",
    1.0: "",
    math.log(3): "randomised response with two coin flips (ε = ln 3)",
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


EVIDENCE_NOISE = Noise.of(p=0.25, q=0.75, f=0.5)
EVIDENCE_BITS, EVIDENCE_HASHES = 128, 2


def change_evidence() -> tuple[float, float, float]:
    """Return the evidence of two reports that a value changed, as log-likelihood ratios in nats.

    The ratio compares "the first value, then the second" with "the first value twice". Both
    reports of one value contain the same permanent noise; a new value gets new permanent noise.
    Bits are independent, so the ratio is a sum over bits. Two values differ most if each sets
    `EVIDENCE_HASHES` bits that the other does not set.

    Returns
    -------
    largest, average, largest_against : float
        Maximum for a change over all pairs of reports, average if the value did change, and
        maximum against a change.
    """
    flip, p, q = (float(Fraction(t, 1 << 32)) for t in astuple(EVIDENCE_NOISE)[:3])
    bits = (0, 1)

    def noisy(value: int, kept: int) -> float:
        return 1 - flip if kept == value else flip

    def sent(kept: int, out: int) -> float:
        one = q if kept else p
        return one if out else 1 - one

    def alone(value: int, out: int) -> float:
        return sum(noisy(value, b) * sent(b, out) for b in bits)

    def same_noise(value: int, first: int, second: int) -> float:
        return sum(noisy(value, b) * sent(b, first) * sent(b, second) for b in bits)

    total = [0.0, 0.0, 0.0]
    differing = EVIDENCE_HASHES
    for before, after, number in (
        (0, 0, EVIDENCE_BITS - 2 * differing), (1, 0, differing), (0, 1, differing),
    ):  # fmt: skip
        changed = [alone(before, x) * alone(after, y) for x in bits for y in bits]
        unchanged = [same_noise(before, x, y) for x in bits for y in bits]
        ratios = [math.log(a / b) for a, b in zip(changed, unchanged, strict=True)]
        total[0] += number * max(ratios)
        total[1] += number * sum(a * r for a, r in zip(changed, ratios, strict=True))
        total[2] -= number * min(ratios)
    return total[0], total[1], total[2]


def evidence_epsilon() -> str:
    """Return ε in total of the string in the example of `change_evidence`."""
    bloom = Bloom(noise=EVIDENCE_NOISE, bits=EVIDENCE_BITS, hashes=EVIDENCE_HASHES, cohorts=64)
    return f"{bloom.loss.in_total:.1f}"


def repeated_gain() -> str:
    """Return how much smaller the variance of a day is with ε = 3.36 per report than by default."""
    start = Choice(noise=Noise.of(p=0.25, q=0.75, f=0.5), options=("a", "b"))
    usual = calibrate(start, 4.0, vary="f", in_total=True).loss.per_report
    default, more = (defaults.most_accurate(start, 4.0, one) for one in (usual, 3.36))
    return f"{default.variance() / more.variance():.0f}"


def shuffling_table() -> str:
    """Return ε of shuffled batches, by ε per report and size of the crowd, with the closed form."""
    rows = []
    for epsilon in SHUFFLED_EPSILONS:
        variation = total_variation([binary_response(epsilon)])
        row = [f"{epsilon:g}"]
        for crowd in SHUFFLED_CROWDS:
            bound = numerical_epsilon(epsilon, variation, crowd, DEFAULT_DELTA)
            formula = shuffled_epsilon(epsilon, crowd, DEFAULT_DELTA)
            known = f" ({epsilon_text(formula)})" if formula else ""
            row.append(f"{epsilon_text(bound)}{known}" if bound < epsilon else "no gain")
        rows.append(row)
    headings = ["ε per report", *(f"{crowd:,} reports" for crowd in SHUFFLED_CROWDS)]
    return markdown_table(headings, rows)


def flood_table() -> str:
    """Return what a flood of false reports amounts to, by what limits its rate."""
    data = Path(__file__).parents[1] / "docs" / "results" / "data"
    speed = json.loads((data / "benchmarks.json").read_text())["tables"]["collector"]
    rate = speed["rows"]["one"][list(speed["columns"]).index("rate")]
    poisoning = json.loads((data / "accuracy.json").read_text())["tables"]["poisoning"]
    column = list(poisoning["columns"]).index("influence")
    influence = [float(poisoning["rows"][f"string-{epsilon}-up"][column]) for epsilon in (3, 1)]
    limits = {  # reports at once, and reports per second
        "only the speed of the collector": (0, rate),
        "a quota of 100,000 reports per hour with `--require-key`, unused until then": (
            100_000,
            100_000 / 3600,
        ),
        "a proxy that allows 10 requests per second and address, per address": (100, 10),
    }
    rows = []
    for limit, (burst, per_second) in limits.items():
        minute, hour = (burst + seconds * per_second for seconds in (60, 3600))
        numbers = (minute, hour, *(count * hour for count in influence))
        rows.append([limit, *(f"{number:,.0f}" for number in numbers)])
    headings = ["What limits them", "False reports in a minute", "in an hour"]
    headings += [f"those of an hour count as clients (string, ε = {e})" for e in (3, 1)]
    return markdown_table(headings, rows)


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
    "levels.last": lambda: f"{100 * defaults.CONFIRMATION_SHARE:g}%",
    "levels.example": example_levels,
    "flood": flood_table,
    "urls.printed-epsilon": lambda: f"{3 * paper_bloom(0.32).loss.per_report:.2f}",
    "urls.third-q": q_of_a_third,
    "threshold.urls": rarest_domain,
    "segment.bytes": lambda: str(compaction.MAX_SEGMENT_BYTES >> 20),
    "segment.uploads": lambda: f"{compaction.MAX_SEGMENT_UPLOADS:,}",
    "group.rows": lambda: f"{arrow.MAX_READ_ROWS / 1e6:.1f}",
    "group.bytes": lambda: str(arrow.MAX_READ_BYTES >> 20),
    "counters.most": lambda: f"{counting.MAX_COUNTERS / 1e6:.0f}",
    "counters.3": lambda: bloom_counters(3.0),
    "counters.5": lambda: bloom_counters(5.0),
    "epsilon.table": epsilon_table,
    "shuffling.table": shuffling_table,
    "odds.paper": lambda: f"{math.exp(PAPER_EPSILON):.0f}",
    "evidence.changed": lambda: str(math.ceil(change_evidence()[0])),
    "evidence.average": lambda: f"{change_evidence()[1]:.1f}",
    "evidence.unchanged": lambda: str(math.ceil(change_evidence()[2])),
    "evidence.epsilon": evidence_epsilon,
    "repeated.gain": repeated_gain,
}
