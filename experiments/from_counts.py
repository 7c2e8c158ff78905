"""Compare joint tables made from counts with those made by maximum likelihood.

    python -m experiments.from_counts [--quick] [--seed 11] [-o FOLDER]      12 minutes
    python -m experiments.from_counts --part errors --only "h = 2"           one row

`errors`: mean summed absolute error against the truth, in percentage points, by likelihood and from
counts of the same reports, and their ratio; `root` is the same ratio for root mean squared errors,
`errors` for mean standard errors; coverage of the 95% intervals of both methods. Two questions of
100 strings, correlated (strength .3), 64 cohorts, Other included; choices have 20 options.
`tests`: independent questions: the share of p-values below .05 and .01, their distance from
uniform, and coverage over true cells of at least three standard errors.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.stats import kstest

import deniable
from deniable.simulation import (
    JointPopulation,
    correlated,
    exponential,
    power,
    random_strings,
    simulate,
    zipf,
)
from deniable.survey import Survey
from experiments.options import arguments, finish
from experiments.paper.records import Record
from experiments.paper.trials import (
    TrialTable,
    bloom,
    boolean,
    choice,
    coverage,
    generators,
    survey_of,
)
from experiments.text_tables import show

OPTIONS = tuple(f"o{i:02d}" for i in range(20))
ONE_HASH = bloom(p=1 / 82, q=0.5, hashes=1)
HALF = np.array([0.2, 0.8])


@dataclass(frozen=True, eq=False)
class Setting:
    """Two questions, the weights of their values, and how they are associated.

    unlisted : how many of the most common strings are not among the candidates
    """

    x: dict[str, Any]
    y: dict[str, Any]
    weights: tuple[Any, Any]
    reports: int = 100_000
    top: int = 5
    trials: int = 20
    unlisted: int = 0

    @property
    def survey(self) -> Survey:
        """Return the survey of both questions."""
        return survey_of(x=self.x, y=self.y)


STEEP, FLAT, WIDE = (power(), power()), (zipf(), zipf()), (exponential(100, 8.0),) * 2
TWENTY = (zipf(20), zipf(20))
SETTINGS = {
    "h = 2": Setting(bloom(), bloom(), STEEP),
    "h = 2, zipf": Setting(bloom(), bloom(), FLAT),
    "h = 2, wide": Setting(bloom(), bloom(), WIDE, 10**6, 19, 10),
    "h = 1, wide": Setting(bloom(hashes=1), bloom(hashes=1), WIDE, 10**6, 19, 10),
    "h = 2, f = .5": Setting(bloom(f=0.5), bloom(f=0.5), STEEP),
    "h = 2, unlisted": Setting(bloom(), bloom(), (zipf(60), zipf(60)), 10**6, unlisted=1),
    "h = 1, q = .5": Setting(ONE_HASH, ONE_HASH, STEEP),
    "h = 2 × boolean": Setting(bloom(), boolean(), (power(), HALF)),
    "choice × choice": Setting(choice(OPTIONS), choice(OPTIONS), TWENTY, top=20, trials=10),
    "choice × boolean": Setting(choice(OPTIONS), boolean(), (zipf(20), HALF), top=20),
}
SIZES = {
    "h = 2, 10^4": Setting(bloom(), bloom(), STEEP, 10_000, trials=400),
    "h = 2, zipf": Setting(bloom(), bloom(), FLAT, trials=150),
    "h = 2, unlisted": Setting(bloom(), bloom(), FLAT, trials=300, unlisted=1),
    "h = 1, 10^4": Setting(ONE_HASH, ONE_HASH, STEEP, 10_000, trials=400),
    "choice × boolean, 10^4": Setting(
        choice(OPTIONS), boolean(), (zipf(20), np.array([0.1, 0.9])), 10_000, 20, 500
    ),
}


def population(setting: Setting, strength: float, rng: Any) -> JointPopulation:
    """Return the population of both questions, with new strings."""
    kinds: dict[str, Any] = {"choice": OPTIONS, "boolean": (True, False)}
    values = {
        name: kinds.get(question["kind"]) or random_strings(len(weights), 6, rng)
        for name, question, weights in zip(
            "xy", (setting.x, setting.y), setting.weights, strict=True
        )
    }
    return JointPopulation(values, correlated(*setting.weights, strength=strength))


def trial(setting: Setting, crowd: JointPopulation, rng: Any, ways: tuple[bool, ...]) -> list[Any]:
    """Return the joint tables of one trial; ways : whether each is computed from counts."""
    survey = setting.survey
    batch = simulate(survey, crowd.draw(setting.reports, rng), rng=rng)
    listed = {
        name: values[setting.unlisted :]
        for name, values in crowd.values.items()
        if survey.question(name).kind == "string"
    }
    sources = [deniable.count(survey, batch, ["x", "y"]) if way else batch for way in ways]
    return [
        deniable.associate(survey, source, ["x", "y"], candidates=listed, top=setting.top)
        for source in sources
    ]


def errors(name: str, seed: int, quick: bool) -> dict[str, Any]:
    """Compare the errors from counts with those of the likelihood, in one setting."""
    setting = SETTINGS[name]
    found: list[tuple[TrialTable, TrialTable]] = []
    for rng in generators(seed, 2 if quick else setting.trials):
        crowd = population(setting, 0.3, rng)
        both = trial(setting, crowd, rng, (False, True))
        found.append((TrialTable.of(crowd, both[0]), TrialTable.of(crowd, both[1])))
    off = [[np.abs(one.estimate - one.truth) for one in way] for way in zip(*found, strict=True)]
    summed = [float(np.mean([o.sum() for o in way])) for way in off]
    squared = [float(np.sqrt(np.mean([(o**2).sum() for o in way]))) for way in off]
    ratios = [theirs.sum() / ours.sum() for ours, theirs in zip(*off, strict=True)]
    spread = [float(np.mean([one.error.sum() for one in way])) for way in zip(*found, strict=True)]
    return {
        "setting": name, "N": setting.reports, "trials": len(found),
        "likelihood": 100 * summed[0], "counts": 100 * summed[1], "ratio": summed[1] / summed[0],
        "±": float(np.std(ratios, ddof=1) / np.sqrt(len(ratios))),
        "root": squared[1] / squared[0], "errors": spread[1] / spread[0],
        "covered": coverage([pair[0] for pair in found])[0],
        "by counts": coverage([pair[1] for pair in found])[0],
    }  # fmt: skip


def tests(name: str, seed: int, quick: bool) -> dict[str, Any]:
    """Return p-values and coverage of independent questions, from counts."""
    setting = SIZES[name]
    p_values, tables = [], []
    for rng in generators(seed, 10 if quick else setting.trials):
        crowd = population(setting, 0.0, rng)
        (joint,) = trial(setting, crowd, rng, (True,))
        p_values.append(joint.test().p_value)
        tables.append(TrialTable.of(crowd, joint))
    p = np.array(p_values)
    return {
        "setting": name, "trials": len(p), "below .05": float((p < 0.05).mean()),
        "below .01": float((p < 0.01).mean()), "uniform, p": float(kstest(p, "uniform").pvalue),
        "covered": coverage(tables)[0],
    }  # fmt: skip


def run(part: str, only: str | None, seed: int, quick: bool) -> Record:
    """Run both parts, or one of them, or one of its lines."""
    record = Record("from_counts", seed, {"part": part, "only": only})
    parts: dict[str, tuple[Any, Any]] = {"errors": (errors, SETTINGS), "tests": (tests, SIZES)}
    for name, (measure, settings) in parts.items():
        if part in (name, "all"):
            chosen = [s for s in settings if only in (None, s)]
            show(record, name, [measure(setting, seed, quick) for setting in chosen], name)
    return record


if __name__ == "__main__":
    options = arguments(
        __doc__, seed=11, only={"default": None},
        part={"choices": ["errors", "tests", "all"], "default": "all"},
    )  # fmt: skip
    record = run(options.part, options.only, options.seed, options.quick)
    finish(record, options)
