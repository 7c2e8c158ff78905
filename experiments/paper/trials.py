"""Trials: surveys, populations and comparisons for experiments with simulated clients.

A trial draws clients from a population, simulates their reports, and compares an estimate with the
truth. The experiment calls the estimator, so a variant takes ten lines:

    survey = survey_of(x=bloom(f=0.5), y=bloom(f=0.5))
    for rng in generators(seed=1, count=20):
        crowd = pair(zipf(), zipf(), rng=rng)
        reports = simulate(survey, crowd.draw(10_000, rng), rng=rng)
        found = deniable.associate(survey, reports, ["x", "y"], candidates=crowd.values, top=5)
        print(abs(found.table - truth_of(crowd, found.labels)).sum())
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from deniable.analysis import associate
from deniable.columns import ReportBatch
from deniable.errors import InputError
from deniable.kernels.array_types import Floats
from deniable.results import Joint
from deniable.simulation import JointPopulation, correlated, random_strings
from deniable.survey import Survey

Settings = dict[str, Any]
NOISE = {"p": 0.25, "q": 0.75, "f": 0.0}
"""The paper's noise."""


def generators(seed: int, count: int) -> Iterator[np.random.Generator]:
    """Yield one generator per trial; trial i is the same whatever the number of trials.

    >>> first, second = generators(7, 2)
    >>> bool(first.random() == next(generators(7, 1)).random())
    True
    """
    return map(np.random.default_rng, np.random.SeedSequence(seed).spawn(count))


def bloom(**changes: Any) -> Settings:
    """Return the settings of a string question: the paper's, with these changes."""
    return {"kind": "string", "bits": 128, "hashes": 2, "cohorts": 64, **NOISE, **changes}


def choice(options: Sequence[str], **changes: Any) -> Settings:
    """Return the settings of a choice question: Basic RAPPOR, one bit per option."""
    return {"kind": "choice", "options": list(options), **NOISE, **changes}


def boolean(**changes: Any) -> Settings:
    """Return the settings of a yes-or-no question: one bit."""
    return {"kind": "boolean", **NOISE, **changes}


def survey_of(**questions: Settings) -> Survey:
    """Return a survey of these questions, with settings as in a survey file.

    >>> survey_of(x=bloom(), y=boolean()).loss.per_report > 4.39
    True
    """
    head = {"name": "trial", "version": 1, "owner": "a trial", "description": "simulated clients"}
    lines = [*_toml(head), "expires = 2999-12-31", 'collect = "once"']
    for name, settings in questions.items():
        tables = {key: value for key, value in settings.items() if isinstance(value, Mapping)}
        own = {key: value for key, value in settings.items() if key not in tables}
        lines += [f"[questions.{name}]", *_toml(own)]
        for key, table in tables.items():
            lines += [f"[questions.{name}.{key}]", *_toml(table)]
    return Survey.from_toml("\n".join(lines))


def _toml(settings: Mapping[str, object]) -> list[str]:
    """Write settings as TOML, which shares JSON's strings, numbers, lists and booleans."""
    return [f"{key} = {json.dumps(value)}" for key, value in settings.items()]


def pair(
    x: Floats, y: Floats, *, strength: float = 0.0, rng: np.random.Generator | None = None
) -> JointPopulation:
    """Return two variables, x and y, with these weights: independent, or correlated by `strength`.

    Values are x000, x001 … and y000 …; with `rng`, random strings instead. Equal strings collide in
    equal bits, so trials whose errors are averaged should each draw their own.
    """
    values = {
        name: tuple(f"{name}{i:03d}" for i in range(len(w)))
        if rng is None
        else random_strings(len(w), 6, rng)
        for name, w in (("x", x), ("y", y))
    }
    return JointPopulation(values, correlated(x, y, strength=strength))


def associated(
    survey: Survey,
    reports: ReportBatch,
    crowd: JointPopulation,
    ways: Mapping[str, Settings],
    top: int,
) -> dict[str, Joint]:
    """Return the joint table of the questions x and y, estimated in several ways.

    ways : options of `associate`, by the name of the way
    """
    return {
        way: associate(survey, reports, ["x", "y"], candidates=crowd.values, top=top, **options)
        for way, options in ways.items()
    }


def truth_of(population: JointPopulation, labels: Sequence[Sequence[str]]) -> Floats:
    """Return the population's table over the labels of a result.

    Booleans are labelled yes and no. A label that is no value of the population stands for all
    values without a label; if there is no such label, those values are left out.
    """
    if len(labels) != population.table.ndim:
        raise InputError(f"expected labels of {population.table.ndim} questions, got {len(labels)}")
    table = population.table
    for axis, (values, names) in enumerate(zip(population.values.values(), labels, strict=True)):
        table = np.moveaxis(np.tensordot(_grouping(values, names), table, (1, axis)), 0, axis)
    return table


def _grouping(values: Sequence[object], names: Sequence[str]) -> Floats:
    """0/1 matrix [names, values]: which values each label stands for."""
    labels = [_label(value) for value in values]
    others = [i for i, name in enumerate(names) if name not in labels]
    if len(others) > 1:
        unknown = [names[i] for i in others]
        raise InputError(f"expected one label for everything else, got {unknown}")
    matrix = np.array([[name == label for label in labels] for name in names], float)
    matrix[others] = matrix.sum(axis=0) == 0
    return matrix


def _label(value: object) -> str:
    """Return a value as results label it."""
    return str(value) if not isinstance(value, bool) else "yes" if value else "no"


def hellinger(truth: Mapping[str, float], estimates: Mapping[str, float]) -> float:
    """Return the Hellinger distance of estimated shares from the true ones, in [0, 1].

    Estimates are clipped at 0, and scaled down if they sum to more than 1. The remainder, and the
    share of strings that do not exist, lies on an extra symbol where the truth has none.

    >>> hellinger({"a": 0.5, "b": 0.5}, {"a": 0.5, "b": 0.5})
    0.0
    >>> round(hellinger({"a": 1.0}, {"b": 0.3}), 6)
    1.0
    """
    total = sum(max(value, 0.0) for value in estimates.values())
    scale = 1.0 / max(total, 1.0)
    known = {name: scale * max(estimates.get(name, 0.0), 0.0) for name in truth}
    unseen = max(1.0 - sum(known.values()), 0.0)
    squares = sum((np.sqrt(share) - np.sqrt(known[name])) ** 2 for name, share in truth.items())
    return float(np.sqrt((squares + unseen) / 2))


@dataclass(frozen=True, eq=False)
class TrialTable:
    """Estimated table and truth of one trial, categories in the order of the population.

    All arrays are float64 with one axis per question; `TrialTables` adds an axis for the trials.
    """

    estimate: Floats
    truth: Floats
    low: Floats
    high: Floats
    error: Floats

    @staticmethod
    def of(population: JointPopulation, joint: Joint) -> TrialTable:
        """Compare a result with the population.

        Results order categories by their estimates. In the order of the population, a cell has the
        same values in every trial, so that averages over trials are meaningful.
        """
        orders = []
        for values, names in zip(population.values.values(), joint.labels, strict=True):
            places = {_label(value): place for place, value in enumerate(values)}
            order = [places.get(name, len(places)) for name in names]
            orders.append(np.argsort(order, kind="stable"))
        truth = truth_of(population, joint.labels)
        arrays = (joint.table, truth, joint.low, joint.high, joint.standard_error)
        return TrialTable(*(array[np.ix_(*orders)] for array in arrays))

    def __getitem__(self, part: tuple[slice, ...]) -> TrialTable:
        """Return some categories of each question: `table[:-1, :-1]` leaves out Other."""
        return TrialTable(*(getattr(self, field.name)[part] for field in fields(self)))


@dataclass(frozen=True, eq=False)
class TrialTables(TrialTable):
    """Tables of many trials with one shape, float64[trials, cells]: error, bias, coverage."""

    @staticmethod
    def stacked(trials: Sequence[TrialTable]) -> TrialTables:
        """Stack trials whose tables have one shape; see `by_shape`."""
        shapes = {trial.truth.shape for trial in trials}
        if len(shapes) != 1:
            raise InputError(f"expected tables of one shape, got {shapes or 'no trial'}")
        names = [field.name for field in fields(TrialTable)]
        return TrialTables(*(np.array([getattr(t, n).ravel() for t in trials]) for n in names))

    @staticmethod
    def by_shape(trials: Sequence[TrialTable]) -> list[TrialTables]:
        """Stack the tables of every shape, the most common first; shapes vary with detection."""
        groups: dict[tuple[int, ...], list[TrialTable]] = {}
        for trial in trials:
            groups.setdefault(trial.truth.shape, []).append(trial)
        ordered = sorted(groups.values(), key=len, reverse=True)
        return [TrialTables.stacked(group) for group in ordered]

    def hits(self, least: float = 3.0) -> tuple[int, int]:
        """Return how many cells have the truth in their interval, and how many were counted.

        Cells count if their truth is at least `least` standard errors. These are *averages* over
        trials: standard errors grow with estimates, and the standard error of each trial would
        select low estimates.
        """
        large = self.truth >= least * self.error.mean(axis=0)
        inside = (self.low <= self.truth) & (self.truth <= self.high)
        return int(inside[large].sum()), int(large.sum())

    def bias(self) -> Floats:
        """Return the mean error of every cell."""
        return np.asarray((self.estimate - self.truth).mean(axis=0))

    def spread(self) -> Floats:
        """Return the standard deviation of the errors of every cell; NaN for a single trial."""
        errors = self.estimate - self.truth
        if len(errors) < 2:
            return np.full(errors.shape[1], np.nan)
        return np.asarray(errors.std(axis=0, ddof=1))

    def bias_error(self) -> Floats:
        """Return the Monte-Carlo standard error of `bias`; NaN for a single trial."""
        return np.asarray(self.spread() / np.sqrt(len(self.truth)))

    def absolute(self) -> Floats:
        """Return the sum of absolute errors of every trial."""
        return np.asarray(np.abs(self.estimate - self.truth).sum(axis=1))

    def largest(self) -> Floats:
        """Return the largest absolute error of every trial."""
        return np.asarray(np.abs(self.estimate - self.truth).max(axis=1))


def coverage(trials: Sequence[TrialTable], least: float = 3.0) -> tuple[float, int]:
    """Return the share of intervals that contain the truth, and the number of cells counted.

    Cells count if their truth is at least `least` standard errors.
    """
    hits = [tables.hits(least) for tables in TrialTables.by_shape(trials)]
    inside, count = (sum(column) for column in zip(*hits, strict=True)) if hits else (0, 0)
    return (inside / count if count else float("nan"), count)
