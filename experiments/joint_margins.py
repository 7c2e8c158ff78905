"""Margins and cells of joint tables if clients hold strings that nobody listed.

    python -m experiments.joint_margins [--crowds 20] [--jobs 2] [--seed 1]

A string question with ε = 3, and a choice of four options or another string question; a third of
the clients move together (strength .3). `unlisted` says which strings are not candidates: the
heaviest of 20 (28% of clients), 200 rarer ones that 30% of clients hold, or none. Columns, all of
them shares of 95% intervals that contain the truth:

* cells : cells of at least three standard errors;
* margins : shares of the listed strings, as `Joint.margin` gives them;
* other : the share of Other, as `Joint.margin` gives it;
* rates : P(other question given string), of at least three standard errors;
* V : Cramér's V. With 10⁴ reports it is about fewer categories than the truth it is compared with:
  those that are clearly present;
* decode : shares of the same strings, by `decode` of the same reports;
* agree : intervals of `decode` that contain the estimate of the margin;
* former : margins by the former rule, which widened the errors of cells one by one.

Promises about cells, rates and V are judged from 10⁵ reports up. With fewer, most cells are near 0,
where estimates are biased. There are a quarter as many crowds with 10⁶ reports. Takes about two
minutes on 16 processors.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import product
from typing import Any
from unittest.mock import patch

import numpy as np

import deniable
from deniable.analysis import associating
from deniable.inference.joint.uncertainty import widen_errors
from deniable.inference.joint.unlisted import add_unlisted
from deniable.kernels.array_types import Floats, Mask
from deniable.results import Covariance, Joint, Marginal
from deniable.simulation import JointPopulation, correlated, random_strings, simulate, zipf
from deniable.survey import Survey
from experiments.paper.trials import survey_of, truth_of
from experiments.parallel import crowd_arguments, in_processes
from experiments.promises import judged, share_error
from experiments.text_tables import text_table

OPTIONS = ("a", "b", "c", "d")
UNLISTED: dict[str, tuple[Floats, slice]] = {
    "heaviest": (zipf(20), slice(1, None)),
    "30% spread": (np.r_[0.7 * zipf(20), 0.3 * zipf(200)], slice(20)),
    "none": (zipf(20), slice(None)),
}
"""Shares of the strings, and which of them are candidates."""
COLUMNS = ("cells", "margins", "other", "rates", "V", "decode", "agree", "former")
CROWDS_PER_TASK = 5


@dataclass(frozen=True)
class Setting:
    """Two questions, which strings nobody listed, and how the table is made."""

    questions: str
    unlisted: str
    cohorts: int
    reports: int
    made_from: str
    hashes: int = 1

    @property
    def survey(self) -> Survey:
        """Survey of both questions."""
        string = {
            "kind": "string", "epsilon": 3.0, "cohorts": self.cohorts, "hashes": self.hashes,
        }  # fmt: skip
        choice = {"kind": "choice", "epsilon": 3.0, "options": list(OPTIONS)}
        return survey_of(x=string, y=choice if self.questions == "string × choice" else string)


@dataclass(frozen=True)
class Task:
    """Some crowds of one row of the table."""

    setting: Setting
    crowds: int
    seed: tuple[int, ...]


def cover(setting: Setting, rng: np.random.Generator) -> dict[str, Mask]:
    """Return which intervals contain the truth, by column, in one crowd."""
    survey = setting.survey
    weights, listed = UNLISTED[setting.unlisted]
    kinds = {name: survey.question(name).kind for name in ("x", "y")}
    values: dict[str, Any] = {
        name: random_strings(len(weights), 6, rng) if kind == "string" else OPTIONS
        for name, kind in kinds.items()
    }
    shares = [weights if kind == "string" else zipf(len(OPTIONS)) for kind in kinds.values()]
    crowd = JointPopulation(values, correlated(*shares, strength=0.3))
    batch = simulate(survey, crowd.draw(setting.reports, rng), rng=rng)
    candidates = {name: values[name][listed] for name, kind in kinds.items() if kind == "string"}
    with _recorded() as former:
        counted = setting.made_from == "counts"
        source = deniable.count(survey, batch, ["x", "y"]) if counted else batch
        joint = deniable.associate(survey, source, ["x", "y"], candidates=candidates, top=20)
    truth = truth_of(crowd, joint.labels)
    found = {"cells": _large(truth, joint), "V": np.array([_effect_covered(truth, joint)])}
    rates = truth / truth.sum(axis=1, keepdims=True).clip(1e-12)
    found["rates"] = _large(rates, joint.conditional("x"))
    for axis, name in enumerate(joint.questions):
        if name in candidates:
            decoded = deniable.decode(survey, batch, name, candidates[name])
            narrow = replace(joint, covariance=former[-1].matrix) if former else joint
            _add(found, _margin(joint, narrow, axis, truth.sum(axis=1 - axis), decoded))
    return found


def _margin(
    joint: Joint, narrow: Joint, axis: int, truth: Floats, decoded: Marginal
) -> dict[str, Mask]:
    """Return which intervals of a question's shares contain the truth."""
    name, labels = joint.questions[axis], joint.labels[axis]
    listed = [i for i, label in enumerate(labels) if label != "(other)"]
    margin, rows = joint.margin(name), [decoded[labels[i]] for i in listed]
    low, high = (np.array([getattr(row, end) for row in rows]) for end in ("low", "high"))
    inside, estimates = _inside(truth, margin), margin.estimate[listed]
    return {
        "margins": inside[listed],
        "other": np.delete(inside, listed),
        "decode": (low <= truth[listed]) & (truth[listed] <= high),
        "agree": (low <= estimates) & (estimates <= high),
        "former": _inside(truth, narrow.margin(name))[listed],
    }


@contextmanager
def _recorded() -> Iterator[list[Covariance]]:
    """Record the errors of a table by the former rule; all fitted categories must be shown."""
    found: list[Covariance] = []

    def record(fitted: Covariance, influence: Floats, unlisted: Any) -> Covariance:
        found.append(widen_errors(fitted, influence, [each is not None for each in unlisted]))
        return add_unlisted(fitted, influence, unlisted)

    with patch.object(associating, "add_unlisted", record):
        yield found


def _inside(truth: Floats, interval: Any) -> Mask:
    return np.asarray((interval.low <= truth) & (truth <= interval.high))


def _large(truth: Floats, interval: Any) -> Mask:
    """Return which intervals contain the truth, of those whose truth is well above their error."""
    return np.asarray(_inside(truth, interval)[truth >= 3 * interval.standard_error])


def _effect_covered(truth: Floats, joint: Joint) -> bool:
    truth = truth[np.ix_(truth.sum(axis=1) > 0, truth.sum(axis=0) > 0)]  # Other may be empty
    independent = np.outer(truth.sum(axis=1), truth.sum(axis=0))
    square = (truth - independent) ** 2 / independent
    effect, v = joint.cramers_v(), np.sqrt(square.sum() / (min(truth.shape) - 1))
    return bool(effect.low <= v <= effect.high)


def _add(found: dict[str, Mask], more: dict[str, Mask]) -> None:
    for column, inside in more.items():
        found[column] = np.append(found.get(column, np.zeros(0, bool)), inside)


def measured(task: Task) -> list[dict[str, Mask]]:
    """Return what `cover` gives for each crowd of a task."""
    rngs = (np.random.default_rng([*task.seed, crowd]) for crowd in range(task.crowds))
    return [cover(task.setting, rng) for rng in rngs]


def row_of(
    setting: Setting, found: list[dict[str, Mask]]
) -> tuple[dict[str, Any], dict[str, float]]:
    """Return a line of the table, and the standard errors of its shares as measurements."""
    row: dict[str, Any] = {
        "questions": setting.questions, "h": setting.hashes, "unlisted": setting.unlisted,
        "cohorts": setting.cohorts, "N": setting.reports, "from": setting.made_from,
    }  # fmt: skip
    errors = {}
    for column in COLUMNS:
        by_crowd = [each[column] for each in found if each[column].size]
        inside = np.concatenate(by_crowd) if by_crowd else np.full(1, np.nan)
        row[column] = float(inside.mean())
        means = [float(each.mean()) for each in by_crowd]
        spread = np.std(means) / max(len(means), 1) ** 0.5 if len(means) > 1 else 0.0
        errors[column] = float(max(spread, share_error(inside.mean(), inside.size)))
    return row, errors


def settings() -> list[Setting]:
    """Return the rows of the table."""
    questions, sizes = ("string × choice", "string × string"), (10**4, 10**5, 10**6)
    every = product(questions, UNLISTED, (64, 8), sizes, ("reports", "counts"))
    more = [
        Setting("string × choice", "heaviest", cohorts, n, made, hashes)
        for cohorts, hashes in ((64, 2), (16, 1))
        for n in sizes[1:]
        for made in ("reports", "counts")
    ]
    return [Setting(*each) for each in every] + more


def main() -> None:
    """Print the table and the promises."""
    given = crowd_arguments(__doc__, 20)
    rows_of = settings()
    tasks = [
        Task(setting, min(CROWDS_PER_TASK, crowds - start), (given.seed, number, start))
        for number, setting in enumerate(rows_of)
        for crowds in [max(given.crowds // (4 if setting.reports == 10**6 else 1), 2)]
        for start in range(0, crowds, CROWDS_PER_TASK)
    ]
    found: dict[Setting, list[dict[str, Mask]]] = {setting: [] for setting in rows_of}
    for task, crowds in zip(tasks, in_processes(measured, tasks, given.jobs), strict=True):
        found[task.setting] += crowds
    rows = [row_of(setting, crowds) for setting, crowds in found.items()]
    print(text_table([row for row, _ in rows]) + "\n")
    promises: dict[str, tuple[str, float, float]] = {
        "cells": ("Intervals of large cells contain the truth beside unlisted strings", 0.93, 0.97),
        "margins": ("Intervals of margins contain the truth beside unlisted strings", 0.93, 0.97),
        "other": ("Intervals of the share of Other contain the truth", 0.93, 1),
        "decode": ("Intervals of decode contain the truth beside unlisted strings", 0.93, 0.97),
        "rates": ("Intervals of rates P(y given x) contain the truth", 0.93, 0.98),
        "V": ("The interval of Cramér's V contains the truth beside unlisted strings", 0.93, 1),
        "agree": ("The interval of decode contains the margin of a table", 0.95, 1),
    }
    for column, (sentence, low, high) in promises.items():
        enough = 10**5 if column in ("cells", "rates", "V") else 0
        known = [(r[column], e[column]) for r, e in rows if r["N"] >= enough]
        known = [each for each in known if np.isfinite(each[0])]
        values, errors = np.array(known, float).T
        print(judged(sentence, values, errors, low, high))


if __name__ == "__main__":
    main()
