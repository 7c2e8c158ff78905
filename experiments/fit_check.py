"""How often honest crowds are called suspicious, and faulty ones.

    python -m experiments.fit_check [--crowds 200] [--jobs 16] [--seed 1]

The first table counts honest crowds that `decode` calls suspicious; at most 1% of those in a cell
may be, and at most 0.1% of all. Rows are mechanisms and protocols, with the number of reports per
client; columns are populations, of which some are extreme: one value, one value at 60%, Zipf, only
unlisted strings, nobody answers. Every crowd has words of its own, which are hashed differently.

The second table counts crowds of 100,000 reports with one fault each that are called suspicious. It
has a twentieth as many crowds per row, of Zipf populations.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import numpy as np

from deniable import Survey, decode, simulate
from deniable.columns import ReportBatch
from deniable.columns.batch import from_arrays
from deniable.results import FitCheck
from deniable.simulation import simulate_days
from deniable.survey.detection import MIN_REPORTS
from experiments.parallel import crowd_arguments, in_processes
from experiments.promises import judged, share_error

HEAD = """
name = "fit"
version = 1
owner = "Ada"
description = "Which word?"
expires = 2999-12-31
collect = "{collect}"
[questions.word]
"""
STRING = 'kind = "string"\n'
PREFIXES = """mechanism = "localhash"
dictionary = {protocol = "prefixes", max_length = 8, alphabet = "a-z"}
"""
PAPER = STRING + "bits = 128\nhashes = 2\n"
SURVEYS = {
    "Bloom, ε = 4": STRING + "epsilon = 4.0",
    "Bloom, ε = 1": STRING + "epsilon = 1.0",
    "Bloom, h = 2": PAPER + "p = 0.25\nq = 0.75",
    "Bloom, p > q": STRING + "bits = 128\np = 0.5\nq = 0.1",
    "n-grams": STRING + "epsilon = 6.0\n"
    'dictionary = {protocol = "ngrams", max_length = 6, alphabet = "a-z"}',
    "local hash, ε = 4": STRING + "epsilon = 4.0\n" + PREFIXES,
    "choice": 'kind = "choice"\noptions = ["wa", "wb", "wc", "wd"]\nepsilon = 2.0',
    "boolean": 'kind = "boolean"\nepsilon = 2.0',
}
SIZES = (3, 10, 100, 1_000, 10_000)
REPEATED = ("Bloom, ε = 4", "choice", "boolean")
"""Surveys that are also collected repeatedly."""
OPTIONS = ["wa", "wb", "wc", "wd"]
POPULATIONS = ("one value", "60%", "Zipf", "unlisted", "nobody")
LARGE = 100_000
LISTED = 4
"""Number of words that are candidates."""


@cache
def survey_of(name: str, collect: str = "once") -> Survey:
    """Return one of the surveys above."""
    return Survey.from_toml(HEAD.format(collect=collect) + SURVEYS[name])


def words_of(survey: Survey, crowd: int, count: int) -> list[str]:
    """Return the words of a crowd, most common first: those of other crowds differ."""
    if survey.question("word").protocol.mechanisms[0].kind == "choice":
        return OPTIONS
    prefix = "".join(chr(97 + crowd // 26**i % 26) for i in range(3))
    return [f"{prefix}{chr(97 + i // 26)}{chr(97 + i % 26)}" for i in range(count)]


def answers_of(
    survey: Survey, population: str, clients: int, crowd: int, rng: np.random.Generator
) -> list[str | bool | None]:
    """Return the answers of one of the populations."""
    kind = survey.question("word").protocol.mechanisms[0].kind
    if kind == "boolean":
        share = {"one value": 1.0, "60%": 0.6, "Zipf": 0.3}.get(population, 0.0)
        return [bool(yes) for yes in rng.random(clients) < share]
    if population == "nobody" or (kind == "choice" and population == "unlisted"):
        return [None] * clients
    words = words_of(survey, crowd, 300 if population == "unlisted" else 26)
    weights = 1 / np.arange(1, len(words) + 1)
    match population:
        case "60%":
            weights[0] = 1.5 * weights[1:].sum()
        case "one value":
            weights[1:] = 0
        case "unlisted":
            weights[:LISTED], weights[LISTED:] = 0, 1
    return list(rng.choice(words, clients, p=weights / weights.sum()).tolist())


def check(survey: Survey, batch: ReportBatch, crowd: int = 0) -> FitCheck:
    """Return the check that comes with the result of `decode`."""
    kind = survey.question("word").protocol.mechanisms[0].question_kind
    listed = words_of(survey, crowd, LISTED) if kind == "string" else None
    fit = decode(survey, batch, "word", listed).fit
    assert fit is not None
    return fit


# --- honest crowds --------------------------------------------------------------------------------


@dataclass(frozen=True)
class Honest:
    """Some crowds of honest clients; `repeats` reports per client, 0 for a survey asked once."""

    name: str
    repeats: int
    reports: int
    population: str
    crowds: int
    seed: int


def alarms(task: Honest) -> int:
    """Return how many of the crowds are called suspicious."""
    rng = np.random.default_rng(
        [task.seed, task.reports, task.repeats, POPULATIONS.index(task.population)]
    )
    return sum(honest_check(task, crowd, rng).suspicious for crowd in range(task.crowds))


def honest_check(task: Honest, crowd: int, rng: np.random.Generator) -> FitCheck:
    """Return the check of one crowd."""
    survey = survey_of(task.name, "repeatedly" if task.repeats else "once")
    clients = -(-task.reports // max(task.repeats, 1))
    answers = {"word": answers_of(survey, task.population, clients, crowd, rng)}
    if not task.repeats:
        return check(survey, simulate(survey, answers, rng=rng), crowd)
    days = simulate_days(survey, answers, task.repeats, rng=rng)
    return check(survey, ReportBatch.concat(days), crowd)


# --- faults ---------------------------------------------------------------------------------------

Fault = Callable[[ReportBatch], ReportBatch]


def copies(batch: ReportBatch) -> ReportBatch:
    """Replace one report in a hundred by copies of the first."""
    rows = np.arange(len(batch))
    rows[: len(batch) // 100] = 0
    return batch.select(rows)


def sent_twice(share: float) -> Fault:
    """Return a fault: this share of the reports was sent twice."""
    return lambda batch: ReportBatch.concat([batch, batch.select(slice(int(share * len(batch))))])


def poisoned(batch: ReportBatch) -> ReportBatch:
    """Replace one report in a hundred by one of cohort 0 without any bit."""
    bits = [part.copy() for part in batch.bits[0]]
    cohort = batch.cohort.copy()
    cohort[::100] = 0
    for part in bits:
        part[::100] = 0
    return ReportBatch(batch.survey, cohort, batch.clear, (tuple(bits),))


def stuck(batch: ReportBatch) -> ReportBatch:
    """Let one client in twenty send the same bits, or number, whatever its value is."""
    bits = [part.copy() for part in batch.bits[0]]
    for part in bits:
        part[::20] = 1
    return ReportBatch(batch.survey, batch.cohort, batch.clear, (tuple(bits),))


def few_cohorts(batch: ReportBatch) -> ReportBatch:
    """Let one client in ten draw its cohort among the first half only."""
    cohort = batch.cohort.copy()
    cohort[::10] //= 2
    return ReportBatch(batch.survey, cohort, batch.clear, batch.bits)


FAULTS: dict[str, Fault] = {
    "1% copies of one report": copies,
    "1% empty reports of one cohort": poisoned,
    "all sent twice": sent_twice(1.0),
    "10% sent twice": sent_twice(0.1),
    "5% send fixed bits": stuck,
    "10% use half of the cohorts": few_cohorts,
}
PERMANENT = STRING + "bits = 128\nf = 0.2384\n"
NO_NOISE = "p = 0.000001\nq = 0.999999\n"
WRONG = {
    ("Bloom, ε = 4", "once", "p 10% too large"): (1, STRING + "bits = 256\np = 0.0198\nq = 0.5"),
    ("Bloom, ε = 4", "once", "p 10% too small"): (1, STRING + "bits = 256\np = 0.0162\nq = 0.5"),
    ("Bloom, ε = 4", "once", "5% send no noise"): (20, STRING + "bits = 256\n" + NO_NOISE),
    ("Bloom, h = 2", "once", "p 10% too large"): (1, PAPER + "p = 0.275\nq = 0.75"),
    ("Bloom, h = 2", "once", "p 10% too small"): (1, PAPER + "p = 0.225\nq = 0.75"),
    ("Bloom, h = 2", "once", "5% send no noise"): (20, PAPER + NO_NOISE),
    ("Bloom, ε = 4", "repeatedly", "p 10% too large"): (1, PERMANENT + "p = 0.275\nq = 0.75"),
    ("Bloom, ε = 4", "repeatedly", "p 10% too small"): (1, PERMANENT + "p = 0.225\nq = 0.75"),
    ("local hash, ε = 4", "once", "47 values, not 53"): (
        1,
        STRING + "epsilon = 4.0\nvalues = 47\n" + PREFIXES,
    ),
}
"""Faulty parameters: one client in how many has them, and the question that it answers."""


def wrong_parameters(batch: ReportBatch, name: str, fault: str, seed: int) -> ReportBatch:
    """Let some clients of a crowd answer another survey."""
    collect = batch.survey.collect
    every, question = WRONG[name, collect, fault]
    rng = np.random.default_rng(seed)
    other = Survey.from_toml(HEAD.format(collect=collect) + question)
    answers = answers_of(other, "Zipf", len(batch), 0, rng)
    sent = list(simulate(other, {"word": answers}, rng=rng).arrays())
    if other.cohorts != batch.survey.cohorts:
        sent[0] = batch.cohort
    columns = [array.copy() for array in batch.arrays()]
    for column, wrong in zip(columns, sent, strict=True):
        column[::every] = wrong[::every]
    return from_arrays(batch.survey, columns)


@dataclass(frozen=True)
class Faulty:
    """One large crowd of a survey, with every fault in turn."""

    name: str
    collect: str
    seed: int


def found(task: Faulty) -> dict[str, bool]:
    """Return which faults are called suspicious."""
    rng = np.random.default_rng([task.seed, 100 + list(SURVEYS).index(task.name)])
    survey = survey_of(task.name, task.collect)
    batch = simulate(survey, {"word": answers_of(survey, "Zipf", LARGE, 0, rng)}, rng=rng)
    faulty = {"none": batch} | {fault: make(batch) for fault, make in FAULTS.items()}
    for name, collect, fault in WRONG:
        if (name, collect) == (task.name, task.collect):
            faulty[fault] = wrong_parameters(batch, name, fault, task.seed)
    if survey.cohorts == 1:
        del faulty["10% use half of the cohorts"]
    outcome = {fault: check(survey, reports).suspicious for fault, reports in faulty.items()}
    return outcome


# --- tables ---------------------------------------------------------------------------------------


def honest_rows(crowds: int, seed: int) -> list[list[Honest]]:
    """Return the rows of the first table: one task per population."""
    kinds = [(name, 0, reports) for name in SURVEYS for reports in SIZES]
    kinds += [(n, r, size) for n in REPEATED for r in (1, 7, 30) for size in (100, 3_000)]
    # Reports of fewer than 1,000 strings are not checked.
    kinds = [k for k in kinds if k[0] in ("choice", "boolean") or k[2] >= MIN_REPORTS]
    return [[Honest(*kind, p, crowds, seed) for p in POPULATIONS] for kind in kinds]


def must_be_found(name: str, collect: str, fault: str) -> bool:
    """Return whether a fault can show: string questions with at least 64 cohorts and 8 hashes."""
    if not (name.startswith(("Bloom", "n-grams")) or name == "local hash, ε = 4"):
        return False
    return fault != "none" and (collect == "once" or fault != "10% use half of the cohorts")


def main() -> None:
    """Print both tables, and whether the promises were kept."""
    given = crowd_arguments(__doc__, 200)
    rows = honest_rows(given.crowds, given.seed)
    counts = in_processes(alarms, [task for row in rows for task in row], given.jobs)
    print(f"honest crowds called suspicious, of {given.crowds}")
    print(f"{'':24} {'collect':>10} {'reports':>8} " + " ".join(f"{p:>9}" for p in POPULATIONS))
    rates = []
    for row in rows:
        first, numbers = row[0], [next(counts) for _ in row]
        collect = f"{first.repeats}×" if first.repeats else "once"
        cells = " ".join(f"{number:9}" for number in numbers)
        print(f"{first.name:24} {collect:>10} {first.reports:8,} {cells}", flush=True)
        rates += [number / given.crowds for number in numbers]
    kinds = [(name, "once") for name in SURVEYS] + [(name, "repeatedly") for name in REPEATED]
    crowds = max(1, given.crowds // 20)
    tasks = [Faulty(*kind, given.seed + i) for kind in kinds for i in range(crowds)]
    outcomes = in_processes(found, tasks, given.jobs)
    print(f"\nfaulty crowds of {LARGE:,} reports called suspicious, of {crowds}")
    powers = []
    for name, collect in kinds:
        each = [next(outcomes) for _ in range(crowds)]
        for fault in each[0]:
            count = sum(outcome[fault] for outcome in each)
            print(f"{name:24} {collect:>10}  {fault:32} {count:4}", flush=True)
            if must_be_found(name, collect, fault):
                powers.append(count / crowds)
    print()
    for sentence, shares, size, low, high in (
        ("honest crowds are called suspicious", rates, given.crowds, 0.0, 0.01),
        (
            "honest crowds are called suspicious, all rows together",
            [np.mean(rates)],
            given.crowds * len(rates),
            0.0,
            0.001,
        ),
        (f"faults in {LARGE:,} reports about strings are found", powers, crowds, 0.99, 1.0),
    ):
        print(judged(sentence, np.array(shares), share_error(np.array(shares), size), low, high))


if __name__ == "__main__":
    main()
