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
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deniable.errors import InputError
from deniable.simulation.populations import (
    JointPopulation,
    Weights,
    correlated,
    random_strings,
)
from deniable.survey import Survey

Floats = NDArray[np.float64]


def generators(seed: int, count: int) -> Iterator[np.random.Generator]:
    """One generator a trial; trial i is the same whatever the number of trials.

    >>> first, second = generators(7, 2)
    >>> bool(first.random() == next(generators(7, 1)).random())
    True
    """
    for child in np.random.SeedSequence(seed).spawn(count):
        yield np.random.default_rng(child)


def bloom(
    *, p: float = 0.25, q: float = 0.75, f: float = 0.0, bits: int = 128, hashes: int = 2,
    cohorts: int = 64,
) -> dict[str, Any]:  # fmt: skip
    """A string question's settings; the paper's, unless others are given."""
    return {
        "kind": "string", "bits": bits, "hashes": hashes, "cohorts": cohorts,
        "p": p, "q": q, "f": f,
    }  # fmt: skip


def choice(
    options: Sequence[str], *, p: float = 0.25, q: float = 0.75, f: float = 0.0
) -> dict[str, Any]:
    """A choice question's settings: Basic RAPPOR, one bit an option."""
    return {"kind": "choice", "options": list(options), "p": p, "q": q, "f": f}


def boolean(*, p: float = 0.25, q: float = 0.75, f: float = 0.0) -> dict[str, Any]:
    """A yes-or-no question's settings: one bit."""
    return {"kind": "boolean", "p": p, "q": q, "f": f}


def survey_of(**questions: Mapping[str, Any]) -> Survey:
    """A survey of these questions, for trials: settings as in a survey's TOML.

    >>> survey_of(x=bloom(), y=boolean()).loss.once > 4.39
    True
    """
    head = {"name": "trial", "version": 1, "owner": "a trial", "description": "simulated clients"}
    lines = [f"{key} = {json.dumps(value)}" for key, value in head.items()]
    lines += ["expires = 2999-12-31", 'collect = "once"']
    for name, settings in questions.items():
        lines += [f"[questions.{name}]"]
        # JSON's texts, numbers, lists and booleans are TOML's too.
        lines += [f"{key} = {json.dumps(value)}" for key, value in settings.items()]
    return Survey.from_toml("\n".join(lines))


def pair(
    x: Weights, y: Weights, *, strength: float = 0.0, rng: np.random.Generator | None = None
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


def _sorting(values: Sequence[Any], names: Sequence[str]) -> Floats:
    """0/1 matrix [names, values]: which values a label stands for."""
    spoken = [_spoken(value) for value in values]
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


def _spoken(value: Any) -> str:
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
class Beside:
    """One trial's table beside the truth, its categories in the population's order.

    estimate, truth, low, high, error : float64, one axis a question
    """

    estimate: Floats
    truth: Floats
    low: Floats
    high: Floats
    error: Floats

    @staticmethod
    def of(population: JointPopulation, found: Any) -> Beside:
        """From a result with labels, table, low, high and standard_error.

        Results list categories by estimated rank; in the population's order a cell stays the same
        values over trials, and averages are not those of whatever came out largest.
        """
        orders = [
            np.argsort(_places(values, names), kind="stable")
            for values, names in zip(population.values.values(), found.labels, strict=True)
        ]
        truth = truth_of(population, found.labels)
        arrays = (found.table, truth, found.low, found.high, found.standard_error)
        return Beside(*(array[np.ix_(*orders)] for array in arrays))

    def __getitem__(self, cells: Any) -> Beside:
        """Part of the table."""
        return Beside(*(getattr(self, name)[cells] for name in self.__dataclass_fields__))


def _places(values: Sequence[Any], names: Sequence[str]) -> list[int]:
    """Where each label's value stands in the population; the rest last."""
    spoken = {_spoken(value): place for place, value in enumerate(values)}
    return [spoken.get(name, len(spoken)) for name in names]


@dataclass(frozen=True, eq=False)
class Tally:
    """Many trials' tables of one shape: error, bias, coverage.

    estimate, truth, low, high, error : float64[trials, cells]
    """

    estimate: Floats
    truth: Floats
    low: Floats
    high: Floats
    error: Floats

    @staticmethod
    def of(trials: Sequence[Beside]) -> Tally:
        """From trials whose tables have one shape; see `by_shape`."""
        shapes = {trial.truth.shape for trial in trials}
        if len(shapes) != 1:
            raise InputError(f"expected tables of one shape, got {shapes or 'no trial'}")
        names = Tally.__dataclass_fields__
        return Tally(*(np.array([np.ravel(getattr(t, name)) for t in trials]) for name in names))

    @staticmethod
    def by_shape(trials: Sequence[Beside]) -> list[Tally]:
        """One tally for every shape of table, the most common first: detection varies."""
        groups: dict[tuple[int, ...], list[Beside]] = {}
        for trial in trials:
            groups.setdefault(trial.truth.shape, []).append(trial)
        return [Tally.of(group) for group in sorted(groups.values(), key=len, reverse=True)]

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


def coverage(trials: Sequence[Beside], least: float = 3.0) -> tuple[float, int]:
    """Share of intervals that hold the truth, over true cells of `least` standard errors or more,
    and the number of such cells."""
    hits = [tally.hits(least) for tally in Tally.by_shape(trials)]
    inside, count = (sum(column) for column in zip(*hits, strict=True)) if hits else (0, 0)
    return (inside / count if count else float("nan"), count)
