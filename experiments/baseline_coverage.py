"""Intervals, tests and audits in ordinary settings: do they hold what they promise?

    python -m experiments.baseline_coverage [--crowds 200] [--jobs 2] [--seed 1]

Everything goes through `simulate`, `decode`, `associate` and `audit`; strings are drawn anew for
every crowd. Three tables:

* shares of one question, in 36 settings drawn at random: Bloom filters with 1, 2 or 4 hashes and
  16 to 256 bits, 64 cohorts, ε = 1 to 5, 10⁴ or 10⁵ clients, of whom up to half hold strings that
  are not candidates, letters of several alphabets; 100 of 150 candidates are absent;
* joint tables of two choices of six options, or of the five most common of 30 strings and Other:
  cells and rates P(y given x) of at least three standard errors, Cramér's V, and the share of
  crowds in which the score test rejects independence at .05;
* audits of single reports: how often the lower bound of ε exceeds ε (.01 is allowed), and the mean
  of bound / ε.

The number of crowds is per row. Takes about two minutes on 16 processors.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

import deniable
from deniable.mechanisms import Mechanism
from deniable.results import Joint
from deniable.simulation import JointPopulation, Population, simulate, zipf
from experiments.paper.audit import audit
from experiments.paper.records import Row
from experiments.paper.trials import choice, pair, survey_of, truth_of
from experiments.parallel import crowd_arguments, in_processes
from experiments.promises import judged, share_error
from experiments.text_tables import text_table

MARGINALS = 36
LISTED, ABSENT = 50, 100
ALPHABETS = (
    "abcdefghijklmnopqrstuvwxyz",
    "абвгдежзиклмнопрст",
    "あいうえおかきくけこさし",
    "aé😀ß漢",
)
PREFIXES = {"protocol": "prefixes", "max_length": 4, "alphabet": "a-z"}
AUDITED: dict[str, tuple[dict[str, object], object, object]] = {
    "boolean, ε = 1": ({"kind": "boolean", "epsilon": 1.0}, True, False),
    "choice of 3, ε = 2": (
        {"kind": "choice", "options": ["a", "b", "c"], "epsilon": 2.0}, "a", "b",
    ),
    "Bloom, 4 bits, ε = 1": ({"kind": "string", "bits": 4, "epsilon": 1.0}, b"a", b"b"),
    "Bloom, 8 bits, h = 2, ε = 2": (
        {"kind": "string", "bits": 8, "hashes": 2, "epsilon": 2.0}, b"a", b"b",
    ),
    "local hash, ε = 1": (
        {"kind": "string", "mechanism": "localhash", "epsilon": 1.0, "dictionary": PREFIXES},
        b"a", b"c",
    ),
}  # fmt: skip
"""Settings of a question, and two answers, whose hashes differ in cohort 0."""
AUDIT_RUNS = 5_000


@dataclass(frozen=True)
class Task:
    """One row of a table: what to measure, in which setting, on how many crowds."""

    measure: Callable[[Task], Row]
    setting: tuple[object, ...]
    crowds: int
    seed: tuple[int, ...]


def strings(count: int, alphabet: str, rng: np.random.Generator) -> tuple[str, ...]:
    """Return different random strings."""
    letters, found = list(alphabet), set[str]()
    while len(found) < count:
        found.add("".join(rng.choice(letters, 10)))
    return tuple(sorted(found))


def marginal(task: Task) -> Row:
    """Measure coverage and family-wise error of `decode` in a setting drawn from the seed."""
    rng = np.random.default_rng(task.seed)
    hashes, bits = int(rng.choice([1, 2, 4])), int(rng.choice([16, 32, 64, 128, 256]))
    epsilon, clients = float(rng.uniform(1, 5)), int(rng.choice([10**4, 10**5]))
    unlisted, alphabet = float(rng.choice([0, 0.1, 0.3, 0.5])), str(rng.choice(ALPHABETS))
    survey = survey_of(
        x={"kind": "string", "hashes": hashes, "bits": bits, "cohorts": 64, "epsilon": epsilon}
    )
    weights = np.r_[(1 - unlisted) * zipf(LISTED), unlisted * zipf(200)]
    inside, false = [], []
    for _ in range(task.crowds):
        values = strings(len(weights) + ABSENT, alphabet, rng)
        order = rng.permutation(len(values))
        held = tuple(values[i] for i in order[: len(weights)])
        crowd = Population(held, weights)
        candidates = [*held[:LISTED], *(values[i] for i in order[len(weights) :])]
        reports = simulate(survey, {"x": crowd.draw(clients, rng)}, rng=rng)
        found = deniable.decode(survey, reports, "x", candidates=candidates)
        truth = np.r_[weights[:LISTED], np.zeros(ABSENT)]
        inside.append(((found.low <= truth) & (truth <= found.high)).mean())
        false.append(bool(found.detected[LISTED:].any()))
    return {
        "h": hashes, "bits": bits, "epsilon": round(epsilon, 2), "N": clients,
        "unlisted": unlisted, "coverage": float(np.mean(inside)),
        "any false": float(np.mean(false)), "error": float(np.std(inside) / task.crowds**0.5),
    }  # fmt: skip


def joint(task: Task) -> Row:
    """Measure coverage of cells, rates and Cramér's V, and the size of the score test."""
    kind, cohorts, strength, clients = task.setting
    assert isinstance(strength, float) and isinstance(clients, int)
    rng = np.random.default_rng(task.seed)
    cells: list[np.ndarray] = []
    rates: list[np.ndarray] = []
    effects, rejected = [], []
    for _ in range(task.crowds):
        weights = zipf(6 if kind == "choices" else 30)
        crowd = pair(weights, weights, strength=strength, rng=rng)
        if kind == "choices":
            survey = survey_of(**{n: choice(v) for n, v in crowd.values.items()})
        else:
            question = {"kind": "string", "epsilon": 4.0, "cohorts": cohorts}
            survey = survey_of(x=question, y=question)
        reports = simulate(survey, crowd.draw(clients, rng), rng=rng)
        listed = None if kind == "choices" else crowd.values
        found = deniable.associate(survey, reports, ["x", "y"], candidates=listed, top=5)
        truth = truth_of(crowd, found.labels)
        cells.append(_large(truth, found.low, found.high, found.standard_error))
        given_x = found.conditional("x")
        true_rates = truth / truth.sum(axis=1, keepdims=True)
        rates.append(_large(true_rates, given_x.low, given_x.high, given_x.standard_error))
        effects.append(_effect_covered(crowd, found))
        rejected.append(found.test().p_value <= 0.05)
    return {
        "questions": str(kind), "cohorts": cohorts, "strength": strength, "N": clients,
        "cells": float(np.concatenate(cells).mean()), "rates": float(np.concatenate(rates).mean()),
        "V": float(np.mean(effects)), "rejected": float(np.mean(rejected)),
        "error": float(np.std([each.mean() for each in cells if each.size]) / task.crowds**0.5),
    }  # fmt: skip


def _large(truth: np.ndarray, low: np.ndarray, high: np.ndarray, error: np.ndarray) -> np.ndarray:
    """Return which intervals contain the truth, of those with a truth well above their error."""
    return np.asarray(((low <= truth) & (truth <= high))[truth >= 3 * np.median(error)])


def _effect_covered(crowd: JointPopulation, found: Joint) -> bool:
    """Return whether the interval of Cramér's V contains that of the crowd's table."""
    truth = truth_of(crowd, found.labels)
    independent = np.outer(truth.sum(axis=1), truth.sum(axis=0))
    square = ((truth - independent) ** 2 / independent).sum() / (min(truth.shape) - 1)
    effect = found.cramers_v()
    return bool(effect.low - 1e-9 <= np.sqrt(square) <= effect.high + 1e-9)


def audits(task: Task) -> Row:
    """Audit a mechanism repeatedly."""
    (name,) = task.setting
    settings, first, second = AUDITED[str(name)]
    mechanism = survey_of(x=settings).question("x").protocol.mechanisms[0]
    claim = mechanism.loss.per_report
    runs = _encoding(mechanism, first), _encoding(mechanism, second)
    found = [audit(*runs, runs=AUDIT_RUNS).epsilon for _ in range(task.crowds)]
    return {
        "mechanism": str(name), "epsilon": claim,
        "exceeds": float(np.mean(np.array(found) > claim)),
        "reaches": float(np.mean(found) / claim),
    }  # fmt: skip


def _encoding(mechanism: Mechanism, value: object) -> Callable[[], bytes]:
    def encode() -> bytes:
        secret, rand = os.urandom(32), os.urandom(mechanism.rand_size)
        return mechanism.encode(value, cohort=0, secret=secret, rand=rand)

    return encode


def measured(task: Task) -> Row:
    """Return the row of a task."""
    return task.measure(task)


def main() -> None:
    """Print the three tables and the promises."""
    given = crowd_arguments(__doc__, 200)
    tables = [("choices", 1), ("strings", 8), ("strings", 64)]
    sizes = (2 * 10**4, 10**5)
    settings = [(*kind, strength, n) for kind in tables for strength in (0.0, 0.3) for n in sizes]
    tasks = [Task(marginal, (), given.crowds, (given.seed, i)) for i in range(MARGINALS)]
    tasks += [Task(joint, s, given.crowds, (given.seed, 99, i)) for i, s in enumerate(settings)]
    tasks += [Task(audits, (name,), given.crowds, ()) for name in AUDITED]
    rows = list(in_processes(measured, tasks, given.jobs))
    shares, pairs = rows[:MARGINALS], rows[MARGINALS : MARGINALS + len(settings)]
    checked = rows[MARGINALS + len(settings) :]
    for title, part in (("Shares", shares), ("Joint tables", pairs), ("Audits", checked)):
        print(f"{title}, {given.crowds} crowds per row\n{text_table(part)}\n")

    def column(part: list[Row], name: str) -> np.ndarray:
        return np.array([row[name] for row in part], dtype=float)

    false = column(shares, "any false")
    null = [row for row in pairs if row["strength"] == 0]
    size, effect = column(null, "rejected"), column(pairs, "V")
    over = column(checked, "exceeds")
    for promise in (
        judged("Intervals of shares contain the truth",
               column(shares, "coverage"), column(shares, "error"), 0.93, 0.97),
        judged("Any absent candidate is detected (mean of all settings)",
               false.mean(), share_error(false.mean(), given.crowds * len(false)), 0, 0.05),
        judged("Intervals of large cells of joint tables contain the truth",
               column(pairs, "cells"), column(pairs, "error"), 0.93, 0.97),
        judged("Intervals of rates P(y given x) contain the truth",
               column(pairs, "rates"), column(pairs, "error"), 0.93, 0.98),
        judged("The interval of Cramér's V contains the truth",
               effect, share_error(effect, given.crowds), 0.93, 0.98),
        judged("The score test rejects independent questions at .05",
               size, share_error(size, given.crowds), 0, 0.05),
        judged("The lower bound of an audit exceeds ε",
               over, share_error(over, given.crowds), 0, 0.01),
    ):  # fmt: skip
        print(promise)


if __name__ == "__main__":
    main()
