"""How often is an absent value detected in a small crowd?

    python -m experiments.small_crowds [--crowds 500] [--jobs 2] [--seed 1]

Four tables; alpha is .05 everywhere. Half of the clients hold one string, a fifth and a tenth two
others, and a fifth a string that is not a candidate. Strings are drawn anew for every crowd.

* `decode`, of a boolean (nobody says yes), a choice (17 of 20 options are absent) and strings (200
  of 203 candidates are absent): the share of crowds with any false detection, the same by the rule
  used before (a normal approximation with skewness, in one crowd of 25), and the number of the
  three present values that are detected, on average;
* `decode` of the choice among the half of the clients that say yes to another question (a fifth of
  the crowds);
* `trend` over 14 days, of new clients every day: the share of days with a false detection, and, if
  alpha is divided by 14, the share of trends with any (a twentieth of the crowds);
* `discover`: the share of crowds with any false string (3% of the crowds).

The last two are slow, so that promises pool the crowds of all rows of a question. With 500 crowds
everything takes about 28 minutes of CPU time, two minutes on 16 processors.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, timedelta
from unittest.mock import patch

import numpy as np

from deniable import Survey, decode, discover, simulate, store, trend
from deniable.columns import ReportBatch
from deniable.columns.batch import to_bodies
from deniable.inference.marginal.bit_counts import Repetition
from deniable.inference.marginal.tails import log_upper_tail
from deniable.kernels.array_types import Floats, Int64s
from deniable.simulation import random_strings
from deniable.store import Upload
from experiments.paper.records import Row
from experiments.paper.trials import survey_of
from experiments.parallel import crowd_arguments, in_processes
from experiments.promises import judged, share_error
from experiments.text_tables import text_table

SHARES, PRESENT, ABSENT = (0.5, 0.2, 0.1, 0.2), 3, 200
OPTIONS = [f"option {i}" for i in range(20)]
DAYS = 14
STRING: dict[str, object] = {"kind": "string"}
GRAMS = {"protocol": "ngrams", "max_length": 6, "alphabet": "a-h"}
WHOLE = {"protocol": "prefixes", "max_length": 6, "alphabet": "a-h"}
PREFIXES = {**WHOLE, "levels": [2, 4, 6, 6]}
QUESTIONS: dict[str, dict[str, object]] = {
    "boolean": {"kind": "boolean"},
    "choice of 20": {"kind": "choice", "options": OPTIONS},
    "Bloom, h = 1": STRING,
    "Bloom, h = 2": {**STRING, "hashes": 2},
    "Bloom, 1 cohort": {**STRING, "hashes": 2, "cohorts": 1},
    "n-grams": {**STRING, "dictionary": GRAMS},
    "prefixes": {**STRING, "dictionary": PREFIXES},
    "local hashing": {**STRING, "mechanism": "localhash", "dictionary": PREFIXES},
}
SEARCHED: dict[str, dict[str, object]] = {
    "prefixes": QUESTIONS["local hashing"],
    "whole strings": {**STRING, "mechanism": "localhash", "dictionary": WHOLE},
    "n-grams": QUESTIONS["n-grams"],
}
MARGINAL = "deniable.inference.marginal"
REPORTS = (1, 3, 10, 30, 100, 1_000)
FORMER_EVERY = 25
"""The former rule is applied to one crowd of this many."""


@dataclass(frozen=True)
class Task:
    """Some crowds of one row of a table."""

    measure: Callable[[Task], tuple[float, ...]]
    question: str
    epsilon: float
    reports: int
    crowds: int
    seed: int

    def survey(self, questions: dict[str, dict[str, object]]) -> Survey:
        """Return the survey of the row."""
        return survey_of(x={**questions[self.question], "epsilon": self.epsilon})

    def rng(self, crowd: int) -> np.random.Generator:
        """Return a generator for one crowd; other rows and seeds have other ones."""
        name = int.from_bytes(self.question.encode()) % 2**32
        return np.random.default_rng([self.seed, name, int(self.epsilon), self.reports, crowd])


def values_of(survey: Survey, rng: np.random.Generator) -> list[str]:
    """Return the values of a crowd: first those that clients hold."""
    if survey.question("x").kind != "string":
        return OPTIONS
    return list(random_strings(len(SHARES) + ABSENT, 4, rng, "abcdefgh"))


def reports_of(
    survey: Survey, values: list[str], reports: int, rng: np.random.Generator
) -> ReportBatch:
    """Return the reports of a crowd."""
    held, kind = rng.choice(len(SHARES), reports, p=SHARES), survey.question("x").kind
    answers: list[object] = [values[i] for i in held]
    if kind == "boolean":
        answers = [False] * reports
    elif kind == "choice":
        answers = [values[i] if i < PRESENT else None for i in held]
    return simulate(survey, {"x": answers}, rng=rng)


def candidates_of(survey: Survey, values: list[str]) -> list[str] | None:
    """Return the candidates for `decode`: all strings but the last one that clients hold."""
    listed = values[:PRESENT] + values[len(SHARES) :]
    return listed if survey.question("x").kind == "string" else None


def former_tail(ones: Int64s, p: float, q: float, reports: int, noise: Repetition) -> Floats:
    """Return the logarithms of p-values of options, as they were computed before."""
    deviation = np.sqrt(p * (1 - p) * reports)
    skewness = np.full(ones.shape, (1 - 2 * p) / deviation)
    return log_upper_tail((ones - p * reports) / deviation, skewness)


def decoded(task: Task) -> tuple[float, ...]:
    """Count false detections, those of the former rule, and present values detected."""
    survey = task.survey(QUESTIONS)
    present = 0 if task.question == "boolean" else PRESENT
    wrong = formerly = right = 0
    for i in range(task.crowds):
        rng = task.rng(i)
        values = values_of(survey, rng)
        batch = reports_of(survey, values, task.reports, rng)
        listed = candidates_of(survey, values)
        detected = decode(survey, batch, "x", listed).detected
        wrong += bool(detected[present:].any())
        right += int(detected[:present].sum())
        if i % FORMER_EVERY == 0:
            with (
                patch(f"{MARGINAL}.estimate.SMALL_CROWD", 0),
                patch(f"{MARGINAL}.closed_form.log_absent_tail", former_tail),
            ):
                former = decode(survey, batch, "x", listed).detected[present:]
            formerly += min(FORMER_EVERY, task.crowds) * bool(former.any())
    return wrong, formerly, right


def in_subgroup(task: Task) -> tuple[float, ...]:
    """Count false detections, and present values detected, among half of the clients."""
    question = {**QUESTIONS[task.question], "epsilon": task.epsilon}
    survey = survey_of(x=question, y={"kind": "boolean", "epsilon": task.epsilon})
    wrong = right = 0
    for i in range(task.crowds):
        rng = task.rng(i)
        held = rng.choice(len(SHARES), task.reports, p=SHARES)
        answers = [OPTIONS[k] if k < PRESENT else None for k in held]
        inside = (rng.random(task.reports) < 0.5).tolist()
        batch = simulate(survey, {"x": answers, "y": inside}, rng=rng)
        detected = decode(survey, batch, "x", where={"y": True}).detected
        wrong += bool(detected[PRESENT:].any())
        right += int(detected[:PRESENT].sum())
    return wrong, right


def by_day(task: Task) -> tuple[float, ...]:
    """Count days with a false detection, and trends with any at alpha divided by the days."""
    survey = task.survey(QUESTIONS)
    wrong_days = wrong_trends = 0.0
    for i in range(task.crowds):
        rng = task.rng(i)
        values = values_of(survey, rng)
        listed = candidates_of(survey, values)
        with (
            tempfile.TemporaryDirectory() as folder,
            store.open(f"{folder}/reports.db", create=True) as reports,
        ):
            reports.add_survey(survey)
            for day in range(DAYS):
                batch = reports_of(survey, values, task.reports, rng)
                reports.append([upload(survey, batch, day)])
            alone = trend(survey, reports, "x", listed).detected[:, PRESENT:]
            together = trend(survey, reports, "x", listed, alpha=0.05 / DAYS).detected[:, PRESENT:]
        wrong_days += float(alone.any(axis=1).mean())
        wrong_trends += bool(together.any())
    return wrong_days, wrong_trends


def upload(survey: Survey, batch: ReportBatch, day: int) -> Upload:
    """Return the reports of one day as one upload."""
    data, key = to_bodies(batch), bytes([day] * 16)
    when = date(2027, 1, 1) + timedelta(days=day)
    return Upload(key, survey.digest, len(data), data.tobytes(), when, key)


def searched(task: Task) -> tuple[float, ...]:
    """Count crowds with a false string, and true strings."""
    survey = task.survey(SEARCHED)
    wrong = right = 0
    for i in range(task.crowds):
        rng = task.rng(i)
        values = values_of(survey, rng)
        batch = reports_of(survey, values, task.reports, rng)
        held, found = set(values[: len(SHARES)]), set(discover(survey, batch, "x").strings)
        wrong += bool(found - held)
        right += len(found & held)
    return wrong, right


@dataclass(frozen=True)
class Table:
    """What one table measures: settings, share of the crowds, names of the columns.

    rates : columns that must be at most .05, by row, or by question if they are `pooled`
    """

    title: str
    measure: Callable[[Task], tuple[float, ...]]
    questions: tuple[str, ...]
    epsilons: tuple[float, ...]
    reports: tuple[int, ...]
    crowds: float
    columns: tuple[str, ...]
    rates: tuple[str, ...]
    pooled: bool = False


DAILY = ("any false, day", "any false, trend")
TABLES = (
    Table(
        "decode", decoded, tuple(QUESTIONS), (1.0, 4.0), REPORTS, 1.0,
        ("any false", "former rule", "detected of 3"), ("any false",),
    ),
    Table(
        "decode of a subgroup", in_subgroup, ("choice of 20",), (4.0,), (10, 100, 1_000), 0.2,
        ("any false", "detected of 3"), ("any false",),
    ),
    Table(
        f"trend over {DAYS} days", by_day, ("choice of 20", "Bloom, h = 1", "prefixes"), (4.0,),
        (3, 30), 0.05, DAILY, DAILY, True,
    ),
    Table(
        "discover", searched, tuple(SEARCHED), (1.0, 4.0), (1, 10, 100, 1_000), 0.03,
        ("any false", "found of 4"), ("any false",), True,
    ),
)  # fmt: skip
PER_TASK = 25
"""Crowds of one task: short tasks keep all processes busy until the end."""


def measure(task: Task) -> tuple[float, ...]:
    """Measure some crowds."""
    return task.measure(task)


def main() -> None:
    """Print the tables and the promises."""
    given = crowd_arguments(__doc__, 500)
    for table in TABLES:
        settings = [
            (question, epsilon, reports)
            for question in table.questions for epsilon in table.epsilons
            for reports in table.reports
        ]  # fmt: skip
        parts = max(round(given.crowds * table.crowds / PER_TASK), 1)
        each = min(PER_TASK, max(round(given.crowds * table.crowds), 1))
        tasks = [
            Task(table.measure, *setting, each, 1000 * given.seed + part)
            for setting in settings for part in range(parts)
        ]  # fmt: skip
        sums = np.array(list(in_processes(measure, tasks, given.jobs)))
        share = sums.reshape(len(settings), parts, -1).sum(axis=1) / (each * parts)
        rows: list[Row] = [
            dict(zip(("question", "epsilon", "reports", *table.columns), (*s, *r), strict=True))
            for s, r in zip(settings, share.tolist(), strict=True)
        ]
        print(f"{table.title}: {each * parts} crowds per row\n{text_table(rows)}\n", flush=True)
        for name in table.rates:
            rate = share[:, table.columns.index(name)]
            trials = each * parts * (DAYS if name.endswith("day") else 1)
            if table.pooled:
                trials = trials * len(rate) // len(table.questions)
                rate = rate.reshape(len(table.questions), -1).mean(axis=1)
            sentence = f"Small crowds, {table.title}: {name}"
            print(judged(sentence, rate, share_error(rate, trials), 0, 0.05), flush=True)
        print()


if __name__ == "__main__":
    main()
