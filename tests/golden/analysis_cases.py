"""Cases of decode, associate and pair counts, called from Python."""

from __future__ import annotations

from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from deniable import PairCounts, ReportBatch, associate, decode, pair_counts
from tests.golden import freezing
from tests.golden.compare import JOINT, MATRIX_PRODUCTS, REDRAWN
from tests.golden.crowds import (
    CLIENTS,
    CODES,
    GRAM_WORDS,
    PAGES,
    WORDS,
    answers,
    batch,
    survey,
)
from tests.golden.imports import associate_likelihoods, simulate_days
from tests.golden.registry import case

ABSENT = ("absent.example", "nobody.example")
CUT = tuple(word[:4] for word in WORDS)
"""The words as a survey with a max_length of four keeps them."""


# --- decode --------------------------------------------------------------------------------------


def decoded(name: str, question: str, candidates: Any = None, **settings: Any) -> Any:
    """Decode one question of the usual crowd."""
    return freezing.result(decode(survey(name), batch(name), question, candidates, **settings))


@case
def decode_options(folder: Path) -> Any:
    """A choice and a boolean, without and with permanent noise."""
    return {
        f"{name} {question}": decoded(name, question)
        for name, question in product(("habits", "repeated"), ("browser", "dark"))
    }


@case
def decode_filter(folder: Path) -> Any:
    """Bloom filters: 64 cohorts, eight cohorts with two hashes, one cohort with p above q."""
    return {
        "64 cohorts": decoded("habits", "page", [*PAGES, *ABSENT]),
        "8 cohorts": decoded("filters", "page", [*PAGES, *ABSENT]),
        "1 cohort": decoded("filters", "word", [*WORDS, *ABSENT]),
    }


@case
def decode_corrections(folder: Path) -> Any:
    """Every correction for multiple tests, at three significance levels."""
    few = batch("habits", 3, 1500)
    found = {
        f"{correction} {alpha}": decode(
            survey("habits"), few, "page", [*PAGES, *ABSENT], alpha=alpha, correction=correction
        )
        for correction, alpha in product(("holm", "bonferroni", "fdr", None), (0.001, 0.05, 0.3))
    }
    return {
        "all": freezing.result(found["holm 0.05"]),
        "detected": {key: each.detected.tolist() for key, each in found.items()},
        "mass": {key: each.mass_found.estimate for key, each in found.items()},
        "threshold": {key: each.detection_threshold for key, each in found.items()},
    }


@case
def decode_many_candidates(folder: Path) -> Any:
    """More candidates than are fitted together, and more than the bits can tell apart."""
    many = [*PAGES, *(f"page{i}.example" for i in range(100, 900))]
    selected = decode(survey("habits"), batch("habits"), "page", many)
    twins = decode(survey("filters"), batch("filters"), "word", [*WORDS, *many[:60]])
    return {
        "selected": {
            key: value[:40] if isinstance(value, list) else value
            for key, value in freezing.result(selected).items()
        },
        "sums": {
            name: float(np.nansum(getattr(selected, name)))
            for name in ("estimate", "standard_error", "low", "high", "p_value")
        },
        "twins": freezing.result(twins),
    }


@case
def decode_repeated_reports(folder: Path) -> Any:
    """The same clients on seven days: standard errors allow for their permanent noise."""
    days = simulate_days(
        survey("repeated"), answers("repeated", 5, 3000), 7, rng=np.random.default_rng(5)
    )
    together = ReportBatch.concat(days)
    return {
        question: freezing.result(
            decode(survey("repeated"), together, question, candidates, reports_per_client=7)
        )
        for question, candidates in (("page", PAGES), ("browser", None), ("dark", None))
    }


@case
def decode_rappor_schemes(folder: Path) -> Any:
    """Strings hashed as google/rappor's clients do."""
    return {
        name: decoded(name, "page", [*PAGES[:5], *ABSENT])
        for name in ("rappor-python", "rappor-cpp", "rappor-java")
    }


@case
def decode_dictionaries(folder: Path) -> Any:
    """Questions with a dictionary, whose candidates are listed all the same."""
    return {
        "ngrams": decoded("ngrams", "word", [*GRAM_WORDS, "absent"]),
        "overlap": decoded("overlap", "word", [*WORDS, "eee"]),
        "prefixes": decoded("prefixes", "word", [*WORDS, "fff"]),
        "localhash": decoded("localhash", "word", [*WORDS, "fff"]),
        "whole": decoded("whole", "word", [*CUT, "fff"]),
        "whole filter": decoded("whole-filter", "word", [*CUT, "eee"]),
        "bytes": decoded("homepages", "title", ["Ünïcødé ☃", "plain", "", "none"]),
    }


@case
def decode_several_sources(folder: Path) -> Any:
    """Several batches together, and a selection of rows."""
    whole = batch("habits")
    parts = [whole.select(slice(0, 7000)), whole.select(slice(7000, None))]
    mask = np.arange(len(whole)) % 3 == 0
    return {
        "parts": freezing.result(decode(survey("habits"), parts, "page", PAGES)),
        "third": freezing.result(decode(survey("habits"), whole.select(mask), "page", PAGES)),
        "slots": freezing.result(
            decode(survey("ngrams"), batch("ngrams").where("word", (0, 2)), "dark")
        ),
    }


# --- associate -----------------------------------------------------------------------------------


def joint(found: Any) -> dict[str, Any]:
    """Freeze a joint table with everything that it offers."""
    data: dict[str, Any] = {
        "result": freezing.result(found),
        "margins": {name: freezing.interval(found.margin(name)) for name in found.questions},
        "conditional": {
            name: freezing.interval(found.conditional(name)) for name in found.questions
        },
        "cell": found.cell(*(labels[0] for labels in found.labels)),
    }
    if found.table.size > 16:
        del data["result"]["covariance"]
        data["variance"] = {"covariance": np.diagonal(found.covariance).tolist()}
    if found.made_from == "counts":
        return data
    if len(found.questions) == 2:
        tests = {method: found.test(method) for method in ("score", "paper", "lrt")}
        effect = found.cramers_v()
        data["effect"] = [effect.estimate, effect.low, effect.high]
    else:
        first, second, third = found.questions
        tests = {
            "mutual": found.mutual_independence(),
            "conditional": found.conditional_independence(first, second),
            "other pair": found.conditional_independence(third, first),
        }
    data["tests"] = {name: freezing.association(each) for name, each in tests.items()}
    return data


def associated(name: str, *questions: str, **settings: Any) -> dict[str, Any]:
    """Freeze the joint table of some questions of the usual crowd."""
    return joint(associate(survey(name), batch(name), questions, **settings))


@case(tolerance=JOINT)
def associate_string_choice(folder: Path) -> Any:
    """A string with a choice, with every model of what is not listed."""
    settings = {"candidates": {"page": PAGES}, "top": 4}
    return {
        str(other): associated("habits", "page", "browser", other=other, **settings)
        for other in (True, "mixture", "product", False)
    }


@case(tolerance=JOINT)
def associate_options(folder: Path) -> Any:
    """A boolean with a choice, without and with permanent noise, in both orders."""
    return {
        "once": associated("habits", "dark", "browser"),
        "reversed": associated("habits", "browser", "dark"),
        "repeatedly": associated("repeated", "browser", "dark"),
    }


@case(tolerance=JOINT)
def associate_strings(folder: Path) -> Any:
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
def associate_dictionaries(folder: Path) -> Any:
    """Prefixes by local hashing with a choice, n-grams with a boolean."""
    return {
        "prefixes": associated(
            "localhash", "word", "browser", candidates={"word": WORDS}, top=4, fitted=6
        ),
        "ngrams": associated("ngrams", "word", "dark", candidates={"word": GRAM_WORDS}, top=3),
    }


@case(tolerance=REDRAWN)
def associate_three(folder: Path) -> Any:
    """Three questions, with tests of mutual and of conditional independence."""
    return associated(
        "habits", "page", "browser", "dark", candidates={"page": PAGES}, top=2, alpha=0.01
    )


@case(tolerance=JOINT)
def associate_few_reports(folder: Path) -> Any:
    """Too few reports for χ²: the p-value comes from shuffles with a fixed seed."""
    return joint(
        associate(
            survey("habits"),
            batch("habits", 4, 900),
            ["page", "browser"],
            candidates={"page": PAGES},
            top=3,
        )
    )


@case(tolerance=JOINT)
def associate_shrunk(folder: Path) -> Any:
    """Point estimates shrunk towards independence, for weak and for strong associations."""
    rng = np.random.default_rng(7)
    return {
        "weak": joint(
            associate(
                survey("habits"), batch("habits", 6, 1000), ["browser", "dark"], shrink=rng
            )
        ),
        "strong": joint(
            associate(survey("ngrams"), batch("ngrams"), ["word", "dark"],
                      candidates={"word": GRAM_WORDS}, shrink=rng)
        ),
    }  # fmt: skip


@case(tolerance=JOINT)
def associate_other_mechanisms(folder: Path) -> Any:
    """Rows of likelihoods that no mechanism of the package made."""
    rng = np.random.default_rng(8)
    first = rng.integers(0, 3, 4000)
    second = np.where(rng.random(4000) < 0.5, first, rng.integers(0, 3, 4000))
    rows = [
        np.where(np.arange(3) == each[:, None], 0.8, 0.1).astype(np.float32)
        for each in (first, second)
    ]
    labels = [["a", "b", "c"], ["x", "y", "z"]]
    strata = rng.integers(0, 4, 4000)
    return {
        "plain": joint(associate_likelihoods(rows, labels, questions=["first", "second"])),
        "strata": joint(associate_likelihoods(rows, labels, strata=strata)),
        "one": freezing.result(associate_likelihoods(rows[:1], labels[:1])),
    }


# --- counts instead of reports -------------------------------------------------------------------


@case(tolerance=MATRIX_PRODUCTS)
def associate_counts(folder: Path) -> Any:
    """Joint tables from counts of bits that are set together."""
    strings = {"page": PAGES, "word": WORDS}
    return {
        "string and choice": associated(
            "habits", "page", "browser", candidates={"page": PAGES}, top=4, from_counts=True
        ),
        "product": associated("habits", "page", "browser", candidates={"page": PAGES}, top=4,
                              other="product", from_counts=True),
        "without other": associated("habits", "page", "browser", candidates={"page": PAGES},
                                    top=4, other=False, from_counts=True),
        "options": associated("habits", "dark", "browser", from_counts=True),
        "filters": associated(
            "filters", "page", "word", candidates=strings, top=3, from_counts=True
        ),
        "local hashes": associated(
            "whole", "word", "code", candidates={"word": CUT, "code": CODES}, top=4,
            from_counts=True,
        ),
    }  # fmt: skip


@case(tolerance=MATRIX_PRODUCTS)
def counts_saved_and_added(folder: Path) -> Any:
    """Counts of two shards, saved, loaded, added and associated."""
    whole, half = batch("filters"), CLIENTS // 2
    shards = [whole.select(slice(0, half)), whole.select(slice(half, None))]
    questions = ["page", "word"]
    counts = [pair_counts(survey("filters"), shard, questions) for shard in shards]
    counts[0].save(folder / "first.npz")
    loaded = PairCounts.load(folder / "first.npz")
    total = loaded + counts[1]
    settings: dict[str, Any] = {"candidates": {"page": PAGES, "word": WORDS}, "top": 3}
    from_file = pair_counts(survey("filters"), [str(folder / "first.npz"), counts[1]], questions)
    return {
        "arrays": {
            name: freezing.sha256(getattr(total, name).tobytes())
            for name in ("both", "first", "second", "total")
        },
        "same from a file": bool(np.array_equal(from_file.both, total.both)),
        "reports": [each.reports for each in (*counts, loaded, total)],
        "survey": total.survey,
        "questions": list(total.questions),
        "joint": joint(associate(survey("filters"), total, questions, **settings)),
    }
