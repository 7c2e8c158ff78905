"""Surveys with all their parameters written out, and reports that were simulated once and stored.

Stored columns make a case independent of how reports are simulated. `python -m tests.golden
--reports NAME` draws the reports of a survey anew; then its cases are recorded anew, too.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from deniable import ReportBatch, Survey, simulate

HERE = Path(__file__).parent
CLIENTS = 20_000

PAGES = tuple(f"page{i}.example" for i in range(12))
BROWSERS = ("Firefox", "Chromium", "Safari")
MONTHS = tuple(f"{i:02}" for i in range(1, 13))
WORDS = ("abc", "face", "bead", "deaf", "cab", "fed", "added", "b")
GRAM_WORDS = ("rust", "bash", "gather", "cd")
CODES = ("007", "42", "911", "112", "8")
TITLES = ("Ünïcødé ☃", "plain", "", None)
SHARES = (0.3, 0.2, 0.15, 0.12, 0.1, 0.06, 0.04, 0.03)


@cache
def survey(name: str) -> Survey:
    """Load a survey of this folder."""
    return Survey.load(HERE / "surveys" / f"{name}.toml")


def survey_names() -> list[str]:
    """List the surveys of this folder."""
    return sorted(path.stem for path in (HERE / "surveys").glob("*.toml"))


@cache
def batch(name: str) -> ReportBatch:
    """Load the stored reports of a survey."""
    with np.load(HERE / "reports" / f"{name}.npz") as stored:
        columns = dict(stored)
    questions = survey(name).questions
    parts = [len(question.protocol.parts) for question in questions]
    return ReportBatch(
        survey=survey(name),
        cohort=columns["cohort"],
        clear=tuple(columns[f"clear {i}"] for i in range(len(questions))),
        bits=tuple(
            tuple(columns[f"bits {i} {j}"] for j in range(count)) for i, count in enumerate(parts)
        ),
    )


def store_reports(name: str) -> None:
    """Simulate the reports of a survey and store their columns."""
    rng = np.random.default_rng([survey_names().index(name), 2])
    found = simulate(survey(name), _answers(name, rng), rng=rng)
    columns = {"cohort": found.cohort}
    for i, (clear, bits) in enumerate(zip(found.clear, found.bits, strict=True)):
        columns[f"clear {i}"] = clear
        columns |= {f"bits {i} {j}": each for j, each in enumerate(bits)}
    np.savez_compressed(HERE / "reports" / f"{name}.npz", **columns)  # type: ignore[arg-type]


def zipf(size: int) -> Any:
    """Return shares proportional to 1/rank."""
    weights = 1.0 / np.arange(1, size + 1)
    return weights / weights.sum()


def _drawn(values: Sequence[Any], rng: np.random.Generator, shares: Any = None) -> list[Any]:
    """Draw one value per client; Zipf shares unless others are given."""
    weights = zipf(len(values)) if shares is None else np.array(shares) / np.sum(shares)
    codes = np.searchsorted(np.cumsum(weights)[:-1], rng.random(CLIENTS), side="right")
    return [values[i] for i in codes.tolist()]


def _following(
    first: Sequence[Any], values: Sequence[Any], rng: np.random.Generator, strength: float
) -> list[Any]:
    """Draw values that follow those of another question with this probability."""
    order = {value: i for i, value in enumerate(sorted(set(first)))}
    free = _drawn(values, rng)
    bound = rng.random(CLIENTS) < strength
    return [
        values[order[other] % len(values)] if held else own
        for other, own, held in zip(first, free, bound.tolist(), strict=True)
    ]


def _answers(name: str, rng: np.random.Generator) -> dict[str, list[Any]]:
    """Draw the answers of a crowd to the survey of this name."""
    if name in ("habits", "repeated"):
        pages = _drawn(PAGES, rng)
        options = BROWSERS if name == "habits" else (*BROWSERS, "another")
        browsers = _following(pages, options, rng, 0.5)
        dark = _following(browsers, (True, False), rng, 0.4)
        answers = {"page": pages, "browser": browsers, "dark": dark}
        if name == "habits":
            answers["month"] = _following(pages, MONTHS, rng, 0.3)
            answers["latency"] = rng.gamma(2.0, 20.0, CLIENTS).tolist()
        return answers
    if name == "filters":
        pages = _drawn(PAGES[:6], rng)
        return {"page": pages, "word": _following(pages, WORDS[:4], rng, 0.5)}
    if name.startswith("rappor"):
        return {"page": _drawn(PAGES[:5], rng)}
    if name == "ngrams":
        words = _drawn(GRAM_WORDS, rng)
        return {"word": words, "dark": _following(words, (True, False), rng, 0.6)}
    if name == "localhash":
        words = _drawn(WORDS, rng, SHARES)
        return {"word": words, "browser": _following(words, ("Firefox", "Safari"), rng, 0.6)}
    if name == "whole":
        words = _drawn([word[:4] for word in WORDS], rng, SHARES)
        return {"word": words, "code": _following(words, CODES, rng, 0.6)}
    if name == "titles":
        return {
            "title": _drawn(TITLES, rng),
            "browser": _drawn(("Firefox", "naïve ☃", None), rng),
        }
    return {"word": _drawn(WORDS, rng, SHARES)}
