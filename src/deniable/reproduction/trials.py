"""Trials: what an experiment on simulated crowds needs around its estimator.

A trial draws a crowd from a population, sends its reports through a survey, and compares the answer
with the truth. Estimators live above this room and are called by the experiment itself, so a
variant is ten lines:

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

from deniable.errors import InputError
from deniable.kernels.array_types import Floats
from deniable.results import Joint
from deniable.simulation.populations import (
    JointPopulation,
    correlated,
    random_strings,
)
from deniable.survey import Survey

Settings = dict[str, Any]


def generators(seed: int, count: int) -> Iterator[np.random.Generator]:
    """One generator a trial; trial i is the same whatever the number of trials.

    >>> first, second = generators(7, 2)
    >>> bool(first.random() == next(generators(7, 1)).random())
    True
    """
    for child in np.random.SeedSequence(seed).spawn(count):
        yield np.random.default_rng(child)


NOISE = {"p": 0.25, "q": 0.75, "f": 0.0}
"""The paper's noise."""


def bloom(**changes: Any) -> Settings:
    """Return a string question's settings: the paper's, unless others are given."""
    return {"kind": "string", "bits": 128, "hashes": 2, "cohorts": 64, **NOISE, **changes}


def choice(options: Sequence[str], **changes: Any) -> Settings:
    """Return a choice question's settings: Basic RAPPOR, one bit per option."""
    return {"kind": "choice", "options": list(options), **NOISE, **changes}


def boolean(**changes: Any) -> Settings:
    """Return a yes-or-no question's settings: one bit."""
    return {"kind": "boolean", **NOISE, **changes}


def survey_of(**questions: Settings) -> Survey:
    """Make a survey of these questions; settings are those of a survey file.

    >>> survey_of(x=bloom(), y=boolean()).loss.per_report > 4.39
    True
    """
    head = {"name": "trial", "version": 1, "owner": "a trial", "description": "simulated clients"}
    lines = [*_lines(head), "expires = 2999-12-31", 'collect = "once"']
    for name, settings in questions.items():
        own = {key: value for key, value in settings.items() if not isinstance(value, Mapping)}
        lines += [f"[questions.{name}]", *_lines(own)]
        for key, value in settings.items():
            if isinstance(value, Mapping):
                lines += [f"[questions.{name}.{key}]", *_lines(value)]
    return Survey.from_toml("\n".join(lines))


def _lines(settings: Mapping[str, object]) -> list[str]:
    """Write settings as TOML: JSON's texts, numbers, lists and booleans are TOML's too."""
    return [f"{key} = {json.dumps(value)}" for key, value in settings.items()]


def pair(
    x: Floats, y: Floats, *, strength: float = 0.0, rng: np.random.Generator | None = None
) -> JointPopulation:
    """Two variables, x and y, with these weights: independent, or correlated by `strength`.

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


def truth_of(population: JointPopulation, labels: Sequence[Sequence[str]]) -> Floats:
    """The population's table over a result's labels.

    A label that is no value of the population stands for all values that have no label of their
    own. Booleans are labelled yes and no. Without such a label the rest is left out.
    """
    if len(labels) != population.table.ndim:
        raise InputError(f"expected labels of {population.table.ndim} questions, got {len(labels)}")
    table = population.table
    for axis, (values, names) in enumerate(zip(population.values.values(), labels, strict=True)):
        table = np.moveaxis(np.tensordot(_sorting(values, names), table, (1, axis)), 0, axis)
    return table


def _sorting(values: Sequence[object], names: Sequence[str]) -> Floats:
    """0/1 matrix [names, values]: which values a label stands for."""
    spoken = [_label(value) for value in values]
    rest = [i for i, name in enumerate(names) if name not in spoken]
    if len(rest) > 1:
        raise InputError(f"expected one label for everything else, got {[names[i] for i in rest]}")
    place = {name: i for i, name in enumerate(names)}
    matrix = np.zeros((len(names), len(values)))
    for column, value in enumerate(spoken):
        row = place.get(value, rest[0] if rest else None)
        if row is not None:
            matrix[row, column] = 1.0
    return matrix


def _label(value: object) -> str:
    """A value as results label it."""
    return str(value) if not isinstance(value, bool) else "yes" if value else "no"


def hellinger(truth: Mapping[str, float], found: Mapping[str, float]) -> float:
    """Hellinger distance of what was found from the truth, in [0, 1].

    Estimates are clipped at 0 and scaled down only if they sum above 1. Mass that is left, and that
    of strings which do not exist, lies on an extra symbol where the truth has none.

    >>> hellinger({"a": 0.5, "b": 0.5}, {"a": 0.5, "b": 0.5})
    0.0
    >>> round(hellinger({"a": 1.0}, {"b": 0.3}), 6)
    1.0
    """
    total = sum(max(value, 0.0) for value in found.values())
    scale = 1.0 / max(total, 1.0)
    known = {name: scale * max(found.get(name, 0.0), 0.0) for name in truth}
    unseen = max(1.0 - sum(known.values()), 0.0)
    squares = sum((np.sqrt(share) - np.sqrt(known[name])) ** 2 for name, share in truth.items())
    return float(np.sqrt((squares + unseen) / 2))


@dataclass(frozen=True, eq=False)
class TrialTable:
    """One trial's estimated table and the truth, its categories in the population's order.

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

        Results list categories by estimated rank; in the population's order a cell stays the same
        values over trials, and averages are not those of whatever came out largest.
        """
        orders = [
            np.argsort(_places(values, names), kind="stable")
            for values, names in zip(population.values.values(), joint.labels, strict=True)
        ]
        truth = truth_of(population, joint.labels)
        arrays = (joint.table, truth, joint.low, joint.high, joint.standard_error)
        return TrialTable(*(array[np.ix_(*orders)] for array in arrays))

    def __getitem__(self, part: tuple[slice, ...]) -> TrialTable:
        """Return some categories of each question: `table[:-1, :-1]` leaves out Other."""
        return TrialTable(*(getattr(self, field.name)[part] for field in fields(self)))


def _places(values: Sequence[object], names: Sequence[str]) -> list[int]:
    """Return where each label's value stands in the population; the rest last."""
    places = {_label(value): place for place, value in enumerate(values)}
    return [places.get(name, len(places)) for name in names]


@dataclass(frozen=True, eq=False)
class TrialTables(TrialTable):
    """Many trials' tables of one shape, float64[trials, cells]: error, bias, coverage."""

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
        """Stack the tables of every shape, the most common first: detection varies."""
        groups: dict[tuple[int, ...], list[TrialTable]] = {}
        for trial in trials:
            groups.setdefault(trial.truth.shape, []).append(trial)
        ordered = sorted(groups.values(), key=len, reverse=True)
        return [TrialTables.stacked(group) for group in ordered]

    def hits(self, least: float = 3.0) -> tuple[int, int]:
        """How many true cells of `least` standard errors or more lie in their intervals, and how
        many there are.

        The truth is compared with its cell's *average* standard error: standard errors grow with
        estimates, and comparing with each trial's own would pick the low estimates.
        """
        large = self.truth >= least * self.error.mean(axis=0)
        inside = (self.low <= self.truth) & (self.truth <= self.high)
        return int(inside[large].sum()), int(large.sum())

    def bias(self) -> Floats:
        """Mean error of every cell."""
        return np.asarray((self.estimate - self.truth).mean(axis=0))

    def bias_error(self) -> Floats:
        """Monte-Carlo standard error of `bias`; NaN for a single trial."""
        return np.asarray(self._spread() / np.sqrt(len(self.truth)))

    def absolute(self) -> Floats:
        """Sum of absolute errors of every trial."""
        return np.asarray(np.abs(self.estimate - self.truth).sum(axis=1))

    def largest(self) -> Floats:
        """Largest absolute error of every trial."""
        return np.asarray(np.abs(self.estimate - self.truth).max(axis=1))

    def spread_ratio(self) -> Floats:
        """Standard deviation of the errors over the average standard error, by cell: 1 is right."""
        return np.asarray(self._spread() / self.error.mean(axis=0))

    def _spread(self) -> Floats:
        errors = self.estimate - self.truth
        if len(errors) < 2:
            return np.full(errors.shape[1], np.nan)
        return np.asarray(errors.std(axis=0, ddof=1))


def coverage(trials: Sequence[TrialTable], least: float = 3.0) -> tuple[float, int]:
    """Share of intervals that hold the truth, over true cells of `least` standard errors or more,
    and the number of such cells."""
    hits = [tally.hits(least) for tally in TrialTables.by_shape(trials)]
    inside, count = (sum(column) for column in zip(*hits, strict=True)) if hits else (0, 0)
    return (inside / count if count else float("nan"), count)
