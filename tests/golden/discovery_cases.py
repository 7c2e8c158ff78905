"""Cases of discover, and of what is done with the strings that it found."""

from __future__ import annotations

from typing import Any

from deniable import associate, decode, discover
from tests.golden import freezing
from tests.golden.compare import JOINT, SINGLE_PRODUCTS
from tests.golden.crowds import CODES, GRAM_WORDS, WORDS, batch, survey
from tests.golden.registry import case


def discovered(name: str, question: str = "word", **settings: Any) -> dict[str, Any]:
    """Freeze the strings found in the stored reports."""
    return freezing.discovery(discover(survey(name), batch(name), question, **settings))


@case(tolerance=SINGLE_PRODUCTS)
def discover_ngrams() -> Any:
    """The default reading of n-grams."""
    return {
        "bigrams": discovered("ngrams"),
        "overlapping": discovered("overlap"),
        "accepted": discovered("ngrams", accept="[a-z]{4}"),
    }


@case
def discover_ngrams_paper() -> Any:
    """The paper's reading of n-grams, with its own pair threshold and with another."""
    return {
        "bigrams": discovered("ngrams", reading="paper"),
        "overlapping": discovered("overlap", reading="paper"),
        "large threshold": discovered("ngrams", reading="paper", delta=0.15),
    }


@case
def discover_prefixes() -> Any:
    """Prefixes in Bloom filters and as local hashes."""
    return {
        "filter": discovered("prefixes"),
        "local hashes": discovered("localhash"),
        "accepted": discovered("localhash", accept=lambda text: text.startswith("b")),
    }


@case
def discover_prefixes_with_words() -> Any:
    """Prefixes with a list of strings and words, some of which nobody holds."""
    return {
        "strings": discovered("localhash", words=[*WORDS[:3], "deed", "ea"]),
        "weights": discovered("prefixes", words={"abc": 2.0, "fade": 1.0, "de": 0.5}),
    }


@case
def discover_whole_strings() -> Any:
    """Whole strings of small domains, with and without words."""
    return {
        "word": discovered("whole"),
        "code": discovered("whole", "code"),
        "filter": discovered("whole-filter", alpha=0.2),
        "words": discovered("whole", words=["face", "deed", "b"]),
        "accepted": discovered("whole", "code", accept=r"\d{3}"),
    }


@case(tolerance=SINGLE_PRODUCTS)
def discover_in_few_reports() -> Any:
    """Small crowds, in which rare strings are missed."""
    few = slice(0, 1500)
    return {
        name: freezing.discovery(discover(survey(name), batch(name).select(few), "word"))
        for name in ("ngrams", "prefixes", "localhash", "whole")
    }


@case
def decode_discovered() -> Any:
    """Strings that were discovered are decoded in other reports of the same survey."""
    whole = batch("localhash")
    found = discover(survey("localhash"), whole.select(slice(0, 12_000)), "word")
    rest = whole.select(slice(12_000, None))
    return freezing.marginal(decode(survey("localhash"), rest, "word", found))


@case(tolerance=JOINT)
def associate_discovered() -> Any:
    """Two questions whose strings nobody listed, and one with a boolean."""
    found = {
        question: discover(survey("whole"), batch("whole"), question)
        for question in ("word", "code")
    }
    grams = discover(survey("ngrams"), batch("ngrams"), "word")
    both = ["word", "code"]
    known = {"word": found["word"], "code": CODES}
    return {
        "two": freezing.joint(
            associate(survey("whole"), batch("whole"), both, candidates=found, top=3)
        ),
        "one known": freezing.joint(
            associate(survey("whole"), batch("whole"), both, candidates=known, top=3)
        ),
        "ngrams": freezing.joint(
            associate(
                survey("ngrams"), batch("ngrams"), ["word", "dark"],
                candidates={"word": grams}, top=len(GRAM_WORDS),
            )
        ),
    }  # fmt: skip
