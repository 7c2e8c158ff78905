"""Cases of associate: from reports, from likelihoods, and from counts of pairs."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from deniable import associate, count
from deniable.analysis import associate_likelihoods
from tests.golden import freezing
from tests.golden.compare import JOINT
from tests.golden.crowds import CLIENTS, CODES, GRAM_WORDS, PAGES, WORDS, batch, survey
from tests.golden.marginal_cases import CUT
from tests.golden.registry import case


def associated(name: str, *questions: str, **settings: Any) -> dict[str, Any]:
    """Freeze the joint table of some questions of the stored reports."""
    return freezing.joint(associate(survey(name), batch(name), questions, **settings))


@case(tolerance=JOINT)
def associate_string_choice() -> Any:
    """A string with a choice, with every model of what is not listed."""
    settings = {"candidates": {"page": PAGES}, "top": 4}
    return {
        str(other): associated("habits", "page", "browser", other=other, **settings)
        for other in (True, "mixture", "product", False)
    }


@case(tolerance=JOINT)
def associate_options() -> Any:
    """A boolean with a choice, without and with permanent noise, in both orders."""
    return {
        "once": associated("habits", "dark", "browser"),
        "reversed": associated("habits", "browser", "dark"),
        "several members": associated("habits", "month", "dark"),
        "number": associated("habits", "latency", "dark"),
        "repeatedly": associated("repeated", "browser", "dark"),
    }


@case(tolerance=JOINT)
def associate_strings() -> Any:
    """Two strings: Bloom filters of different shapes, and local hashes."""
    return {
        "filters": associated(
            "filters", "page", "word", candidates={"page": PAGES, "word": WORDS}, top=3
        ),
        "local hashes": associated(
            "whole", "word", "code", candidates={"word": CUT, "code": CODES}, top=4
        ),
    }


@case(tolerance=JOINT)
def associate_dictionaries() -> Any:
    """A question with a dictionary beside options."""
    return {
        "prefixes": associated(
            "localhash", "word", "browser", candidates={"word": WORDS}, top=4, fitted=6
        ),
        "ngrams": associated("ngrams", "word", "dark", candidates={"word": GRAM_WORDS}, top=3),
    }


@case(tolerance=JOINT)
def associate_three() -> Any:
    """Three questions, with the test of mutual independence."""
    return associated(
        "habits", "page", "browser", "dark", candidates={"page": PAGES}, top=2, alpha=0.01
    )


@case(tolerance=JOINT)
def associate_few_reports() -> Any:
    """So few reports that the p-value may come from shuffles with a fixed seed."""
    few = batch("habits").select(slice(0, 1200))
    questions = ["page", "browser"]
    return freezing.joint(
        associate(survey("habits"), few, questions, candidates={"page": PAGES}, top=3)
    )


@case(tolerance=JOINT)
def associate_other_mechanisms() -> Any:
    """Rows of likelihoods that no mechanism of the package made."""
    first = np.arange(4000) % 3
    second = np.where(np.arange(4000) % 7 < 3, first, np.arange(4000) // 3 % 3)
    rows = [
        np.where(np.arange(3) == each[:, None], 0.8, 0.1).astype(np.float32)
        for each in (first, second)
    ]
    labels = [["a", "b", "c"], ["x", "y", "z"]]
    strata = np.arange(4000) // 11 % 16
    return {
        "plain": freezing.joint(associate_likelihoods(rows, labels, questions=["first", "second"])),
        "strata": freezing.joint(associate_likelihoods(rows, labels, strata=strata)),
        "one": freezing.joint(associate_likelihoods(rows[:1], labels[:1])),
    }


@case
def associate_counts() -> Any:
    """Joint tables from counts of bits that are set together."""
    strings = {"page": PAGES, "word": WORDS}
    page: dict[str, Any] = {"candidates": {"page": PAGES}, "top": 4}
    codes = {"candidates": {"word": CUT, "code": CODES}, "top": 4}
    return {
        "string and choice": from_counts("habits", "page", "browser", **page),
        "without other": from_counts("habits", "page", "browser", other=False, **page),
        "options": from_counts("habits", "dark", "browser"),
        "several members": from_counts("habits", "month", "browser"),
        "filters": from_counts("filters", "page", "word", candidates=strings, top=3),
        "local hashes": from_counts("whole", "word", "code", **codes),
    }


def from_counts(name: str, *questions: str, **settings: Any) -> dict[str, Any]:
    """Freeze the joint table of two questions from their counts."""
    counts = count(survey(name), batch(name), questions)
    return freezing.joint(associate(survey(name), counts, questions, **settings))


@case
def counts_saved_and_added() -> Any:
    """Counts of two shards, saved, loaded, added and associated."""
    whole, half = batch("filters"), CLIENTS // 2
    shards = [whole.select(slice(0, half)), whole.select(slice(half, None))]
    questions = ["page", "word"]
    counts = [count(survey("filters"), shard, questions) for shard in shards]
    with tempfile.TemporaryDirectory() as folder:
        counts[0].save(Path(folder) / "first.npz")
        total = count(survey("filters"), [Path(folder) / "first.npz", counts[1]], questions)
    settings: dict[str, Any] = {"candidates": {"page": PAGES, "word": WORDS}, "top": 3}
    return {
        "reports": [each.reports for each in (*counts, total)],
        "joint": freezing.joint(associate(survey("filters"), total, questions, **settings)),
    }
