"""What asymmetric permanent noise and local hashing gain in repeated collection.

    python -m experiments.repeated_gains [--crowds 100] [--jobs 2] [--seed 1]

Every crowd has 10,000 clients with one of 20 values, which keep their value and report on each of
seven days. `paper` has the paper's noise (p = ¼, q = ¾), `defaults 2` the most accurate noise with
the same ε per report, and the other rows more ε per report; ε in total is the same. The table has
the variance of an estimated share of the values that nobody holds, times the number of clients: of
one day, measured and predicted, and of seven days. `gain` is the variance of one day of `paper`,
divided by that of the row.

Takes about a minute on two processors.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from deniable.analysis import decode
from deniable.columns import ReportBatch
from deniable.kernels.array_types import Floats
from deniable.simulation import simulate_days
from deniable.simulation.populations import zipf
from deniable.survey import Survey
from experiments.paper.records import Row
from experiments.parallel import crowd_arguments, in_processes
from experiments.promises import judged
from experiments.text_tables import text_table

CLIENTS, DAYS, EPSILON = 10_000, 7, 4.0
HELD, ABSENT = [f"v{i}" for i in range(10)], [f"v{i}" for i in range(10, 20)]
LARGE_LOSS = 3.0
"""Designs with more ε per report than this should gain the most."""
DESIGNS = {
    "choice, paper": "",
    "choice, defaults 2": "defaults = 2",
    "choice, 2.5 per report": "epsilon_per_report = 2.5",
    "choice, 3.36 per report": "epsilon_per_report = 3.36",
    "string, paper": "",
    "string, defaults 2": "defaults = 2",
    "string, 3.36 per report": "epsilon_per_report = 3.36",
    "string, local hash": 'mechanism = "localhash"',
    "string, local hash, 3.36 per report": 'mechanism = "localhash"\nepsilon_per_report = 3.36',
}


@dataclass(frozen=True)
class Task:
    """One row of the table."""

    name: str
    crowds: int
    seed: int


def survey_of(name: str) -> Survey:
    """Return the survey of a design."""
    settings = DESIGNS[name]
    root, own = (settings, "") if settings.startswith("defaults") else ("", settings)
    kind = name.split(",")[0]
    if kind == "choice":
        own += f"\noptions = {[*HELD, *ABSENT]}"
    return Survey.from_toml(
        'name = "gains"\nversion = 1\nowner = "o"\ndescription = "d"\nexpires = 2999-12-31\n'
        f'collect = "repeatedly"\n{root}\n[questions.x]\nkind = "{kind}"\n'
        f"epsilon = {EPSILON}\n{own}"
    )


def absent_estimates(survey: Survey, reports: ReportBatch, repeats: int) -> Floats:
    """Return the estimated shares of the values that nobody holds."""
    names = [*HELD, *ABSENT] if survey.questions[0].kind == "string" else None
    result = decode(survey, reports, "x", names, reports_per_client=repeats)
    return np.asarray(result.estimate[len(HELD) :])


def measure(task: Task) -> Row:
    """Measure one design."""
    rng = np.random.default_rng([task.seed, list(DESIGNS).index(task.name)])
    survey = survey_of(task.name)
    mechanism = survey.questions[0].protocol.mechanisms[0]
    one, all_days = [], []
    for _ in range(task.crowds):
        values = rng.choice(HELD, CLIENTS, p=zipf(len(HELD)))
        days = list(simulate_days(survey, {"x": values}, DAYS, rng=rng))
        one.append(absent_estimates(survey, days[0], 1))
        all_days.append(absent_estimates(survey, ReportBatch.concat(days), DAYS))
    return {
        "design": task.name,
        "ε per report": mechanism.loss.per_report,
        "ε in total": mechanism.loss.in_total,
        "bytes": mechanism.size,
        "one day": CLIENTS * float(np.mean(np.square(one))),
        "predicted": mechanism.variance(),
        "seven days": CLIENTS * float(np.mean(np.square(all_days))),
        "predicted ": mechanism.variance(reports=DAYS),
    }


def main() -> None:
    """Print the table."""
    given = crowd_arguments(__doc__, 100)
    tasks = [Task(name, given.crowds, given.seed) for name in DESIGNS]
    rows = list(in_processes(measure, tasks, given.jobs))
    paper = {row["design"]: row["one day"] for row in rows if row["design"].endswith("paper")}
    base = [paper[f"{row['design'].split(',')[0]}, paper"] for row in rows]
    gained = [
        {**row, "gain": float(day / row["one day"])} for row, day in zip(rows, base, strict=True)
    ]
    print(f"{text_table(gained)}\n")
    free = np.array([row["gain"] for row in gained if row["ε per report"] > LARGE_LOSS])
    # Each mean square is over this many nearly independent estimates.
    error = free * np.sqrt(4 / (given.crowds * len(ABSENT)))
    sentence = "Gain per day over the paper's noise, ε = 4 in total, 3.36 per report"
    print(judged(sentence, free, error, 4.0, np.inf))


if __name__ == "__main__":
    main()
