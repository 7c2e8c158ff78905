"""Cases of surveys, simulated reports and plans."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

import deniable
from deniable import Client, Survey, plan, simulate
from tests.golden import freezing
from tests.golden.crowds import answers, batch, survey, survey_names
from tests.golden.imports import simulate_days
from tests.golden.registry import case
from tests.surveys import ANY_SURVEY

HEAD = """
name = "x"
version = 1
owner = "tests"
description = "mistakes"
expires = 2999-12-31
collect = "once"
"""
MISTAKES = {
    "no TOML": "name = ",
    "nothing": "",
    "no questions": HEAD,
    "unknown settings": HEAD + "colour = 1\n[questions.q]\nkind = 'boolean'\nepsilon = 1\nbits = 2",
    "kinds": HEAD + "[questions.q]\nkind = 'number'\n[questions.r]\nkind = 'choice'\nepsilon = 1",
    "no epsilon": HEAD + "[questions.q]\nkind = 'boolean'",
    "too much": HEAD + "[questions.q]\nkind = 'boolean'\nepsilon = 0.1\np = 0.1\nq = 0.9",
    "localhash": HEAD
    + "[questions.q]\nkind = 'string'\nmechanism = 'localhash'\nf = 0.1\nepsilon = 1",
    "dictionary": HEAD + "[questions.q]\nkind = 'string'\nepsilon = 1\n[questions.q.dictionary]\n"
    "protocol = 'ngrams'\nmax_length = 5\nalphabet = 'z-a'",
}
"""Surveys with mistakes; how many mistakes are named is frozen, not the words."""


@case
def public_names(folder: Path) -> Any:
    """What the package exports, and its version."""
    return {"names": sorted(deniable.__all__), "version": deniable.__version__}


@case
def surveys(folder: Path) -> Any:
    """Every survey as published, its digest, and what it promises."""
    found = {}
    for name in survey_names():
        each = survey(name)
        each.publish(folder / f"{name}.json")
        assert Survey.load(folder / f"{name}.json") == each
        found[name] = {
            "sha256": each.sha256.hex(),
            "digest": each.digest.hex(),
            "file": freezing.sha256((folder / f"{name}.json").read_bytes()),
            "canonical": json.loads(each.canonical),
            "once": each.loss.per_report,
            "forever": str(each.loss.in_total),
            "promise": each.loss.per_report if each.collect == "once" else each.loss.in_total,
            "budget": each.budget,
            "cohorts": each.cohorts,
            "groups": each.groups,
            "smallest group": each.smallest_group,
            "body": each.body_size,
        }
    return found


@case
def survey_mistakes(folder: Path) -> Any:
    """How many mistakes are named in surveys that have some, and the class of the error."""
    found = {}
    for name, text in MISTAKES.items():
        try:
            Survey.from_toml(text)
        except Exception as error:
            found[name] = [type(error).__name__, len(error.mistakes)]
    assert found.keys() == MISTAKES.keys()
    return found


@case
def simulated_reports(folder: Path) -> Any:
    """Reports of every survey, byte for byte, with seeded noise."""
    return {name: freezing.batch(batch(name, 21, 400)) for name in survey_names()}


@case
def simulated_clients(folder: Path) -> Any:
    """The same where cohorts, positions and permanent noise come from each client's secret."""
    found = {}
    for name in survey_names():
        rng = np.random.default_rng(22)
        secrets = rng.integers(0, 256, (100, 32), np.uint8)
        given = answers(name, 22, 100)
        found[name] = freezing.batch(simulate(survey(name), given, rng=rng, secrets=secrets))
    return found


@case
def simulated_days(folder: Path) -> Any:
    """The same clients on three days: permanent noise is kept, fresh noise is not."""
    found = {}
    for name in ("repeated", "ngrams-repeatedly", "prefixes-repeatedly", "rappor-cpp", "whole"):
        days = simulate_days(survey(name), answers(name, 23, 200), 3, rng=np.random.default_rng(23))
        found[name] = [freezing.batch(day) for day in days]
    return found


@case
def simulated_silence(folder: Path) -> Any:
    """Clients that do not answer, one question left out, and a survey of one question."""
    rng = np.random.default_rng(24)
    empty = {"page": [None, "", "x" * 300], "browser": ["none of them", None, "Safari"]}
    return {
        "left out": freezing.batch(simulate(survey("habits"), empty, rng=rng)),
        "one question": freezing.batch(simulate(survey("prefixes"), ["abc", None], rng=rng)),
    }


@case
def clients(folder: Path) -> Any:
    """What a client derives from its secret: its cohort, its positions, and the report's size."""
    found: dict[str, Any] = {}
    for name in survey_names():
        drawn = []
        for number in range(5):
            client = Client(survey(name), secret=bytes([number]) * 32, limits=ANY_SURVEY)
            report = client.answer({})
            clear = [list(report[q.name].clear) for q in survey(name).questions]
            drawn.append([report.cohort, clear, len(bytes(report))])
        found[name] = drawn
    return found


@case
def plans(folder: Path) -> Any:
    """What is recommended and predicted, for every kind of question."""
    asked: dict[str, dict[str, Any]] = {
        "string": {"epsilon": 3.0, "detect": 0.005, "candidates": 200, "alpha": 0.01},
        "choice": {"epsilon": 1.0, "detect": 0.02, "kind": "choice", "options": 9},
        "boolean": {"clients": 1e5, "detect": 0.01, "kind": "boolean"},
        "repeatedly": {"clients": 50_000, "epsilon": 2.0, "kind": "boolean",
                       "collect": "repeatedly"},
        "unknown": {"clients": 1_000_000, "epsilon": 4.0, "unknown": True},
        "random": {"clients": 1e6, "epsilon": 6.0, "unknown": True, "random": True, "length": 8},
        "short": {"clients": 1e5, "epsilon": 4.0, "unknown": True, "max_length": 4,
                  "alphabet": "a-z"},
    }  # fmt: skip
    return {name: freezing.result(plan(**settings)) for name, settings in asked.items()}
