"""Cases of decode, of subgroups and of changes between periods."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np

from deniable import decode
from deniable.analysis import compare
from deniable.results import Trend
from tests.golden import freezing
from tests.golden.compare import JOINT
from tests.golden.crowds import CODES, GRAM_WORDS, PAGES, WORDS, batch, survey
from tests.golden.registry import case

ABSENT = ("absent.example", "nobody.example")
CUT = tuple(word[:4] for word in WORDS)
"""The words as a survey with a max_length of four keeps them."""


def decoded(name: str, question: str, candidates: Any = None, **settings: Any) -> Any:
    """Decode one question of the stored reports."""
    return freezing.marginal(decode(survey(name), batch(name), question, candidates, **settings))


@case
def decode_options() -> Any:
    """Choices and booleans, without and with permanent noise."""
    asked = (*product(("habits", "repeated"), ("browser", "dark")), ("habits", "month"))
    return {f"{name} {question}": decoded(name, question) for name, question in asked}


@case
def decode_number() -> Any:
    """Bins with their mean and quantiles, of all clients and of a subgroup."""
    found = decode(survey("habits"), batch("habits"), "latency")
    quantiles = {str(p): found.quantile(p) for p in (0.1, 0.5, 0.9)}
    names = ("estimate", "low", "high")
    return {
        "bins": freezing.marginal(found),
        "mean": freezing.fields(found.mean, *names),
        "quantiles": {p: freezing.fields(each, *names) for p, each in quantiles.items()},
    }


@case
def decode_filter() -> Any:
    """Bloom filters: 64 cohorts, 16 cohorts with two hashes, 16 cohorts with p above q."""
    return {
        "64 cohorts": decoded("habits", "page", [*PAGES, *ABSENT]),
        "two hashes": decoded("filters", "page", [*PAGES, *ABSENT]),
        "p above q": decoded("filters", "word", [*WORDS, *ABSENT]),
        "one heavy string not listed": decoded("habits", "page", [*PAGES[1:], *ABSENT]),
    }


@case
def decode_corrections() -> Any:
    """Every correction for multiple tests, at three significance levels."""
    few = batch("habits").select(slice(0, 1500))
    found = {
        f"{correction} {alpha}": decode(
            survey("habits"), few, "page", [*PAGES, *ABSENT], alpha=alpha, correction=correction
        )
        for correction, alpha in product(("holm", "bonferroni", "fdr", None), (0.001, 0.05, 0.3))
    }
    return {
        "all": freezing.marginal(found["holm 0.05"]),
        "detected": {key: each.detected for key, each in found.items()},
        "mass": {key: each.mass_found.estimate for key, each in found.items()},
        "threshold": {key: each.detection_threshold for key, each in found.items()},
    }


@case
def decode_many_candidates() -> Any:
    """More candidates than are fitted together, and more than the bits can tell apart."""
    many = [*PAGES, *(f"page{i}.example" for i in range(100, 900))]
    selected = decode(survey("habits"), batch("habits"), "page", many)
    first = {
        key: value[:40] if np.ndim(value) == 1 else value
        for key, value in freezing.marginal(selected).items()
    }
    sums = {
        name: float(np.nansum(getattr(selected, name)))
        for name in ("estimate", "standard_error", "low", "high", "p_value")
    }
    return {
        "selected": first,
        "sums": sums,
        "indistinguishable": decoded("filters", "word", [*WORDS, *many[:60]]),
    }


@case
def decode_repeated_reports() -> Any:
    """Standard errors allow for several reports per client."""
    asked = (("page", PAGES), ("browser", None), ("dark", None))
    return {
        question: decoded("repeated", question, candidates, reports_per_client=7)
        for question, candidates in asked
    }


@case
def decode_rappor_schemes() -> Any:
    """Strings hashed as google/rappor's clients do."""
    names = ("rappor-python", "rappor-cpp", "rappor-java")
    return {name: decoded(name, "page", [*PAGES[:5], *ABSENT]) for name in names}


@case
def decode_dictionaries() -> Any:
    """Questions with a dictionary, whose candidates are listed all the same."""
    return {
        "ngrams": decoded("ngrams", "word", [*GRAM_WORDS, "absent"]),
        "overlap": decoded("overlap", "word", [*WORDS, "eee"]),
        "prefixes": decoded("prefixes", "word", [*WORDS, "fff"]),
        "local hashes": decoded("localhash", "word", [*WORDS, "fff"]),
        "whole": decoded("whole", "word", [*CUT, "fff"]),
        "whole filter": decoded("whole-filter", "word", [*CUT, "eee"]),
        "bytes": decoded("titles", "title", ["Ünïcødé ☃", "plain", "", "none"]),
    }


@case
def decode_several_sources() -> Any:
    """Several batches together, a selection of rows, and the reports of one slot."""
    whole = batch("habits")
    parts = [whole.select(slice(0, 7000)), whole.select(slice(7000, None))]
    mask = np.arange(len(whole)) % 3 == 0
    slot = batch("ngrams").where("word", (0, 2))
    return {
        "parts": freezing.marginal(decode(survey("habits"), parts, "page", PAGES)),
        "third": freezing.marginal(decode(survey("habits"), whole.select(mask), "page", PAGES)),
        "slot": freezing.marginal(decode(survey("ngrams"), slot, "dark")),
    }


@case(tolerance=JOINT)
def decode_subgroups() -> Any:
    """Clients selected by options, by strings, and by two conditions."""
    return {
        "option": decoded("habits", "page", PAGES, where={"dark": True}),
        "string": decoded(
            "habits", "browser", {"page": list(PAGES)}, where={"page": list(PAGES[:2])}
        ),
        "two": decoded("habits", "month", where={"dark": False, "browser": "Firefox"}),
        "local hash": decoded(
            "whole", "word", {"word": CUT, "code": CODES}, where={"code": CODES[0]}
        ),
        "repeated": decoded("repeated", "dark", where={"browser": "Firefox"}),
    }


@case
def changes() -> Any:
    """Two periods, between which some shares changed."""
    found = {}
    for name, question, candidates in (
        ("habits", "page", PAGES),
        ("habits", "browser", None),
        ("repeated", "dark", None),
    ):
        whole = batch(name)
        early, late = whole.select(slice(0, 8000)), whole.select(slice(8000, None))
        both = [decode(survey(name), part, question, candidates) for part in (early, late)]
        change = compare(Trend("day", ("2025-03-04", "2025-03-05"), tuple(both), {}, None))
        found[f"{name} {question}"] = freezing.fields(
            change, "labels", "earlier", "later", "standard_error", "p_value", "changed"
        )
    return found
