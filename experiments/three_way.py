"""Size and power of the test of mutual independence of three questions.

    python -m experiments.three_way [--crowds 80] [--jobs 16] [--seed 1]

`size` is the share of crowds of independent questions in which the test rejects at .05, `lrt` that
of the likelihood ratio. Options have Zipf weights: even (exponent 1) or rare (exponent 3, where the
last of four has .013); with little noise, p = .05 and q = .95. With `Other`, x and y are strings of
64 cohorts with 30 values, of which 20 are candidates and three are shown; z is a boolean.

`power` is measured at a weak association: z depends on x and y. `two-way` is the power of the
two-way score test of z with x and y taken as one question. The number of crowds is per row; rows of
100,000 reports, or of strings with Other, get half of it. Takes about two minutes on 16 processors.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from deniable import associate, simulate
from deniable.inference.association.independence import mutual_independence, score_test
from deniable.inference.joint.evidence import Evidence, gather
from deniable.inference.joint.solver import maximise
from deniable.kernels.array_types import Floats, Singles
from deniable.simulation import JointPopulation, random_strings
from experiments.direct_rows import basic_rows, bloom_rows, draw_cells, zipf
from experiments.paper.records import Row
from experiments.paper.trials import bloom, boolean, survey_of
from experiments.parallel import crowd_arguments, in_processes
from experiments.promises import judged, share_error
from experiments.text_tables import text_table

ALPHA = 0.05
SIZES = {
    "even": ("basic", 20_000, 1.0),
    "rare": ("basic", 10_000, 3.0),
    "rare, many reports": ("basic", 100_000, 3.0),
    "rare, strings": ("bloom", 8_000, 3.0),
    "rare, little noise": ("clear", 10_000, 3.0),
    "few reports": ("basic", 1_500, 1.0),
}
SHAPE = (4, 4, 3)
EXPONENTS = {"even": 1.0, "rare": 3.0}
POWERS = (("even", 0.1), ("even", 0.18), ("rare", 0.1), ("rare", 0.18))
"""Population, and strength of the association."""
SEEDS = (*range(0, 16, 2), *range(16, 20))
"""One seed per row: those of the figures that are kept."""
CROWDS_PER_TASK = 20


def mutual_table(exponent: float, strength: float = 0.0) -> Floats:
    """Return a table of independent x, y, or, by `strength`, one where x and y decide z."""
    pair = np.outer(zipf(SHAPE[0], exponent), zipf(SHAPE[1], exponent))
    table = (1 - strength) * pair[:, :, None] * zipf(SHAPE[2], exponent)
    x, y = np.indices(pair.shape)
    table[x, y, (x + y) % SHAPE[2]] += strength * pair
    return np.asarray(table)


def likelihoods(
    table: Floats, reports: int, rng: np.random.Generator, encoding: str
) -> list[Singles]:
    """Return likelihood rows of simulated reports."""
    values, cohorts = draw_cells(table, reports, rng), rng.integers(8, size=reports)
    p, q = (0.05, 0.95) if encoding == "clear" else (0.25, 0.75)
    return [
        bloom_rows(v, m, rng=rng, cohorts=cohorts, k=32)
        if encoding == "bloom"
        else basic_rows(v, m, rng=rng, p=p, q=q)
        for v, m in zip(values, table.shape, strict=True)
    ]


def held(rows: list[Singles]) -> Evidence:
    """Return the evidence of likelihood rows."""
    return gather([tuple(rows)], [each.shape[1] for each in rows])


@dataclass(frozen=True)
class Task:
    """Some crowds of one row: what to measure, in which setting."""

    measure: Callable[[Task, np.random.Generator], list[float]]
    population: str
    reports: int
    strength: float
    crowds: int
    seed: tuple[int, int, int]


def sizes(task: Task, rng: np.random.Generator) -> list[float]:
    """Return the p-values of the score and of the likelihood ratio on options."""
    encoding, reports, exponent = SIZES[task.population]
    evidence = held(likelihoods(mutual_table(exponent), reports, rng, encoding))
    fit = maximise(evidence)
    return [
        mutual_independence(evidence, fit=fit, method=method).p_value for method in ("score", "lrt")
    ]


def sizes_with_other(task: Task, rng: np.random.Generator) -> list[float]:
    """Return the p-value of the score on strings with Other."""
    table = np.multiply.outer(np.outer(zipf(30), zipf(30)), np.array([0.7, 0.3]))
    survey = survey_of(x=bloom(), y=bloom(), z=boolean())
    values = {"x": random_strings(30, 6, rng), "y": random_strings(30, 6, rng)}
    crowd = JointPopulation({**values, "z": (True, False)}, table / table.sum())
    batch = simulate(survey, crowd.draw(task.reports, rng), rng=rng)
    known = {name: strings[:20] for name, strings in values.items()}
    joint = associate(survey, batch, ["x", "y", "z"], candidates=known, top=3)
    return [joint.mutual_independence().p_value, float("nan")]


def powers(task: Task, rng: np.random.Generator) -> list[float]:
    """Return the p-values of the test of mutual independence, and of the two-way test."""
    table = mutual_table(EXPONENTS[task.population], task.strength)
    x, y, z = likelihoods(table, task.reports, rng, "basic")
    merged = (x[:, :, None] * y[:, None, :]).reshape(task.reports, -1)
    return [score_test(held(rows)).p_value for rows in ([x, y, z], [merged, z])]


def measured(task: Task) -> Floats:
    """Return the p-values of all crowds of a task, float64[crowds, 2]."""
    return np.array([
        task.measure(task, np.random.default_rng([*task.seed, i])) for i in range(task.crowds)
    ])  # fmt: skip


def rows_of(crowds: int, seed: int) -> list[Task]:
    """Return one task per row of the two tables."""
    settings: list[tuple[Callable[..., list[float]], str, int, float, int]] = [
        (sizes, name, reports, 0.0, crowds if reports < 100_000 else max(crowds // 2, 1))
        for name, (_, reports, _) in SIZES.items()
    ]
    settings += [
        (sizes_with_other, "strings, Other", reports, 0.0, max(crowds // 2, 1))
        for reports in (20_000, 100_000)
    ]
    settings += [(powers, name, 10_000, strength, crowds) for name, strength in POWERS]
    return [Task(*each, (seed, row, 0)) for each, row in zip(settings, SEEDS, strict=True)]


def cut(task: Task) -> list[Task]:
    """Return the row in parts of a few crowds, for several processes."""
    starts = range(0, task.crowds, CROWDS_PER_TASK)
    return [
        replace(
            task, crowds=min(CROWDS_PER_TASK, task.crowds - start), seed=(*task.seed[:2], start)
        )
        for start in starts
    ]


def row_of(task: Task, p_values: Floats) -> Row:
    """Return one row of a table; p_values : float64[crowds, 2]."""
    shared = {"population": task.population, "reports": task.reports}
    crowds, rejected = len(p_values), p_values <= ALPHA
    unknown = np.isnan(p_values).any(axis=0)
    one, other = np.where(unknown, np.nan, rejected.mean(axis=0)).tolist()
    if not task.strength:
        return {**shared, "size": one, "lrt": other, "crowds": crowds}
    least = max(other, 1 / crowds)
    ratio = one / least
    error = float(np.std(rejected[:, 0] - ratio * rejected[:, 1]) / (least * crowds**0.5))
    return {**shared, "strength": task.strength, "power": one, "two-way": other,
            "ratio": ratio, "error": error, "crowds": crowds}  # fmt: skip


def main() -> None:
    """Print the tables and the promises."""
    given = crowd_arguments(__doc__, 80)
    tasks = rows_of(given.crowds, given.seed)
    parts = [cut(task) for task in tasks]
    found = in_processes(measured, [part for row in parts for part in row], given.jobs)
    rows = [
        row_of(task, np.concatenate([next(found) for _ in row]))
        for task, row in zip(tasks, parts, strict=True)
    ]
    size, power = ([row for row in rows if name in row] for name in ("size", "power"))
    print(f"Share of true hypotheses rejected at .05\n{text_table(size)}\n")
    print(f"Power at .05\n{text_table(power)}\n")

    def column(part: list[Row], name: str) -> Floats:
        return np.array([row[name] for row in part], float)

    rejected, crowds = column(size, "size"), column(size, "crowds")
    sentence = "The test of mutual independence of three questions rejects a true hypothesis"
    print(judged(sentence, rejected, share_error(rejected, crowds), 0.03, 0.07))
    ratio, error = column(power, "ratio"), column(power, "error")
    sentence = "Power of the test of mutual independence, relative to two-way tests"
    print(judged(sentence, ratio, error, 0.9, np.inf))


if __name__ == "__main__":
    main()
