"""Small simulated crowds with fixed seeds, made with numpy and the top-level names only."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from deniable import ReportBatch, Survey, simulate

HERE = Path(__file__).parent
SURVEYS = HERE / "surveys"

PAGES = tuple(f"page{i}.example" for i in range(12))
BROWSERS = ("Firefox", "Chromium", "Safari")
WORDS = ("abc", "face", "bead", "deaf", "cab", "fed", "added", "b")
GRAM_WORDS = ("rust", "bash", "gather", "cd")
CODES = ("007", "42", "911", "112", "8")
SHARES = (0.3, 0.2, 0.15, 0.12, 0.1, 0.06, 0.04, 0.03)
CLIENTS = 20_000


def survey_path(name: str) -> Path:
    """Return the file of a survey of this folder."""
    return SURVEYS / f"{name}.toml"


@cache
def survey(name: str) -> Survey:
    """Load a survey of this folder."""
    return Survey.load(survey_path(name))


def survey_names() -> list[str]:
    """List the surveys of this folder."""
    return sorted(path.stem for path in SURVEYS.glob("*.toml"))


def zipf(size: int) -> np.ndarray[Any, np.dtype[np.float64]]:
    """Return shares proportional to 1/rank."""
    weights = 1.0 / np.arange(1, size + 1)
    return weights / weights.sum()


def drawn(
    values: Sequence[Any], rng: np.random.Generator, clients: int, shares: Any = None
) -> list[Any]:
    """Draw one value per client; Zipf shares unless others are given."""
    weights = zipf(len(values)) if shares is None else np.array(shares) / np.sum(shares)
    codes = np.searchsorted(np.cumsum(weights)[:-1], rng.random(clients), side="right")
    return [values[i] for i in codes.tolist()]


def following(
    first: Sequence[Any],
    values: Sequence[Any],
    rng: np.random.Generator,
    strength: float,
) -> list[Any]:
    """Draw values that follow those of another question with this probability."""
    order = {value: i for i, value in enumerate(dict.fromkeys(sorted(first)))}
    free = drawn(values, rng, len(first))
    bound = rng.random(len(first)) < strength
    return [
        values[order[other] % len(values)] if held else own
        for other, own, held in zip(first, free, bound.tolist(), strict=True)
    ]


def answers(name: str, seed: int, clients: int) -> dict[str, list[Any]]:
    """Draw the answers of a crowd to the survey of this name."""
    rng = np.random.default_rng(seed)
    if name in ("habits", "repeated"):
        pages = drawn(PAGES, rng, clients)
        options = BROWSERS if name == "habits" else (*BROWSERS, "another")
        browsers = following(pages, options, rng, 0.5)
        dark = following(browsers, (True, False), rng, 0.4)
        return {"page": pages, "browser": browsers, "dark": dark}
    if name == "filters":
        pages = drawn(PAGES[:6], rng, clients)
        return {"page": pages, "word": following(pages, WORDS[:4], rng, 0.5)}
    if name.startswith("rappor"):
        return {"page": drawn(PAGES[:5], rng, clients)}
    if name == "ngrams":
        words = drawn(GRAM_WORDS, rng, clients)
        return {"word": words, "dark": following(words, (True, False), rng, 0.6)}
    if name == "localhash":
        words = drawn(WORDS, rng, clients, SHARES)
        return {"word": words, "browser": following(words, ("Firefox", "Safari"), rng, 0.6)}
    if name == "whole":
        words = drawn([word[:4] for word in WORDS], rng, clients, SHARES)
        return {"word": words, "code": following(words, CODES, rng, 0.6)}
    if name == "homepages":
        pages = drawn(PAGES[:5], rng, clients)
        return {
            "homepage": pages,
            "title": drawn(("Ünïcødé ☃", "plain", "", None), rng, clients),
            "browser": drawn((*BROWSERS, "naïve ☃", None), rng, clients),
            "ad_blocker": following(pages, (True, False), rng, 0.5),
        }
    return {"word": drawn(WORDS, rng, clients, SHARES)}


@cache
def batch(name: str, seed: int = 1, clients: int = CLIENTS) -> ReportBatch:
    """Simulate the reports of a crowd that answers the survey of this name."""
    given = answers(name, seed, clients)
    return simulate(survey(name), given, rng=np.random.default_rng([seed, 2]))
