"""Cases of discover, and of what is done with the strings that it found."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from deniable import associate, decode, discover
from tests.golden import freezing
from tests.golden.analysis_cases import joint
from tests.golden.compare import JOINT, SINGLE_PRODUCTS
from tests.golden.crowds import CODES, GRAM_WORDS, WORDS, batch, survey
from tests.golden.registry import case


def discovered(name: str, question: str = "word", **settings: Any) -> dict[str, Any]:
    """Freeze the strings found in the reports of the usual crowd."""
    return freezing.result(discover(survey(name), batch(name), question, **settings))


@case(tolerance=SINGLE_PRODUCTS)
def discover_ngrams(folder: Path) -> Any:
    """The default reading of n-grams.

    The threshold with `accept` is four times as high: 30% of the clients hold refused strings,
    which stay in the tables and hide rarer ones. Of planted strings at this threshold 12 of 32 were
    found, and none at .6 times the threshold.
    """
    return {
        "bigrams": discovered("ngrams"),
        "fused by name": discovered("ngrams", reading="fused", alpha=0.01)["strings"],
        "overlapping": discovered("overlap"),
        "accepted": discovered("ngrams", accept="[a-z]{4}"),
    }


@case
def discover_ngrams_paper(folder: Path) -> Any:
    """The paper's reading of n-grams, with its own pair threshold and with another."""
    return {
        "bigrams": discovered("ngrams", reading="paper"),
        "overlapping": discovered("overlap", reading="paper"),
        "large threshold": discovered("ngrams", reading="paper", delta=0.15),
    }


@case
def discover_prefixes(folder: Path) -> Any:
    """Prefixes in Bloom filters and as local hashes."""
    return {
        "filter": discovered("prefixes"),
        "local hashes": discovered("localhash"),
        "accepted": discovered("localhash", accept=lambda text: text.startswith("b")),
    }


@case
def discover_prefixes_with_words(folder: Path) -> Any:
    """Prefixes with a list of strings and words, some of which nobody holds."""
    return {
        "strings": discovered("localhash", words=[*WORDS[:3], "deed", "ea"]),
        "weights": discovered("prefixes", words={"abc": 2.0, "fade": 1.0, "de": 0.5}),
    }


@case
def discover_whole_strings(folder: Path) -> Any:
    """Whole strings of small domains, with and without words."""
    return {
        "word": discovered("whole"),
        "code": discovered("whole", "code"),
        "filter": discovered("whole-filter", alpha=0.2),
        "words": discovered("whole", words=["face", "deed", "b"]),
        "accepted": discovered("whole", "code", accept=r"\d{3}"),
    }


@case(tolerance=SINGLE_PRODUCTS)
def discover_in_few_reports(folder: Path) -> Any:
    """Small crowds, in which light strings are missed."""
    return {
        name: freezing.result(discover(survey(name), batch(name, 9, 1500), "word"))
        for name in ("ngrams", "prefixes", "localhash", "whole")
    }


@case
def decode_discovered(folder: Path) -> Any:
    """Strings that were discovered are decoded in other reports of the same survey."""
    found = discover(survey("localhash"), batch("localhash"), "word")
    return freezing.result(decode(survey("localhash"), batch("localhash", 11, 8000), "word", found))


@case(tolerance=JOINT)
def associate_discovered(folder: Path) -> Any:
    """Two questions whose strings nobody listed, and one with a boolean."""
    found = {
        question: discover(survey("whole"), batch("whole"), question)
        for question in ("word", "code")
    }
    grams = discover(survey("ngrams"), batch("ngrams"), "word")
    both = ["word", "code"]
    return {
        "from reports": joint(
            associate(survey("whole"), batch("whole"), both, candidates=found, top=3)
        ),
        "from counts": joint(
            associate(survey("whole"), batch("whole"), both, candidates=found, top=3,
                      from_counts=True)
        ),
        "one known": joint(
            associate(survey("whole"), batch("whole"), both,
                      candidates={"word": found["word"], "code": CODES}, top=3)
        ),
        "ngrams": joint(
            associate(survey("ngrams"), batch("ngrams"), ["word", "dark"],
                      candidates={"word": grams}, top=len(GRAM_WORDS))
        ),
    }  # fmt: skip
