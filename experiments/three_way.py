"""Size and power of the tests of mutual and conditional independence of three questions.

    python -m experiments.three_way [--crowds 80] [--jobs 16] [--seed 1]

`size` is the share of crowds in which a true hypothesis is rejected at .05, `lrt` that of the
likelihood ratio. Under `mutual`, all questions are independent. Under `conditional`, x and y depend
on z, and are independent given z. Options have Zipf weights: even (exponent 1) or rare (exponent 3,
where the last of four has .013); with little noise, p = .05 and q = .95. With `Other`, x and y are
strings of 64 cohorts with 30 values, of which 20 are candidates and three are shown; z is a
boolean.

`power` is measured at a weak association, `two-way` is what the two-way score test has on a
comparable table. Mutual: z depends on x and y; the two-way test compares z with x and y taken as
one question. Conditional: x and y are associated in every category of z, which is reported without
noise; the two-way tests of all categories of z are added up. The number of crowds is per row; rows
of 100,000 reports, or of strings with Other, get half of it. Takes about three minutes on 16
processors.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import chdtrc

from deniable import associate, simulate
from deniable.inference.association.independence import (
    conditional_independence,
    mutual_independence,
    score_test,
)
from deniable.inference.joint.evidence import Evidence, gather
from deniable.inference.joint.solver import maximise
from deniable.kernels.array_types import Floats, Singles
from deniable.simulation import JointPopulation, random_strings
from experiments.direct_rows import basic_rows, bloom_rows, dependent_table, draw_cells, zipf
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
TESTS = ("mutual", "conditional")
EXPONENTS = {"even": 1.0, "rare": 3.0}
POWERS = (
    ("mutual", "even", 0.1),
    ("mutual", "even", 0.18),
    ("mutual", "rare", 0.1),
    ("mutual", "rare", 0.18),
    ("conditional", "even", 0.1),
    ("conditional", "rare", 0.15),
)
"""Test, population, and strength of the association."""
CROWDS_PER_TASK = 20


def mutual_table(exponent: float, strength: float = 0.0) -> Floats:
    """Return a table of independent x, y, or, by `strength`, one where x and y decide z."""
    pair = np.outer(zipf(SHAPE[0], exponent), zipf(SHAPE[1], exponent))
    table = (1 - strength) * pair[:, :, None] * zipf(SHAPE[2], exponent)
    x, y = np.indices(pair.shape)
    table[x, y, (x + y) % SHAPE[2]] += strength * pair
    return np.asarray(table)


def conditional_table(shape: tuple[int, ...], exponent: float, strength: float = 0.0) -> Floats:
    """Return a table in which x and y depend on z, and, by `strength`, on each other given z."""
    slabs = []
    for z, share in enumerate(zipf(shape[2], exponent)):
        x, y = (0.5 * zipf(m, exponent) + 0.5 * np.roll(zipf(m, exponent), z) for m in shape[:2])
        linked = dependent_table(*shape[:2], strength=1.0, exponent=exponent)
        slabs.append(share * ((1 - strength) * np.outer(x, y) + strength * linked))
    return np.stack(slabs, axis=2)


def likelihoods(
    table: Floats, reports: int, rng: np.random.Generator, encoding: str, clear: bool = False
) -> list[Singles]:
    """Return likelihood rows of simulated reports; clear : without noise in the last variable."""
    values, cohorts = draw_cells(table, reports, rng), rng.integers(8, size=reports)
    p, q = (0.05, 0.95) if encoding == "clear" else (0.25, 0.75)
    rows = [
        bloom_rows(v, m, rng=rng, cohorts=cohorts, k=32)
        if encoding == "bloom"
        else basic_rows(v, m, rng=rng, p=p, q=q)
        for v, m in zip(values, table.shape, strict=True)
    ]
    if clear:
        rows[-1] = np.eye(table.shape[-1], dtype=np.float32)[values[-1]]
    return rows


def held(rows: list[Singles]) -> Evidence:
    """Return the evidence of likelihood rows."""
    return gather([tuple(rows)], [each.shape[1] for each in rows])


@dataclass(frozen=True)
class Task:
    """Some crowds of one row: what to measure, in which setting."""

    measure: Callable[[Task, np.random.Generator], list[float]]
    test: str
    population: str
    reports: int
    strength: float
    crowds: int
    seed: tuple[int, int, int]


def sizes(task: Task, rng: np.random.Generator) -> list[float]:
    """Return the p-values of the score and of the likelihood ratio on options."""
    encoding, reports, exponent = SIZES[task.population]
    if task.test == "mutual":
        table, test = mutual_table(exponent), mutual_independence
    else:
        table, test = conditional_table(SHAPE, exponent), conditional_independence
    evidence = held(likelihoods(table, reports, rng, encoding))
    fit = maximise(evidence)
    return [test(evidence, fit=fit, method=method).p_value for method in ("score", "lrt")]


def sizes_with_other(task: Task, rng: np.random.Generator) -> list[float]:
    """Return the p-value of the score on strings with Other."""
    table = conditional_table((30, 30, 2), 1.0)
    if task.test == "mutual":
        table = np.multiply.outer(np.outer(zipf(30), zipf(30)), np.array([0.7, 0.3]))
    survey = survey_of(x=bloom(), y=bloom(), z=boolean())
    values = {"x": random_strings(30, 6, rng), "y": random_strings(30, 6, rng)}
    crowd = JointPopulation({**values, "z": (True, False)}, table / table.sum())
    batch = simulate(survey, crowd.draw(task.reports, rng), rng=rng)
    known = {name: strings[:20] for name, strings in values.items()}
    joint = associate(survey, batch, ["x", "y", "z"], candidates=known, top=3)
    if task.test == "mutual":
        return [joint.mutual_independence().p_value, float("nan")]
    return [joint.conditional_independence("x", "y").p_value, float("nan")]


def mutual_power(task: Task, rng: np.random.Generator) -> list[float]:
    """Return the p-values of the test of mutual independence, and of the two-way test."""
    table = mutual_table(EXPONENTS[task.population], task.strength)
    x, y, z = likelihoods(table, task.reports, rng, "basic")
    merged = (x[:, :, None] * y[:, None, :]).reshape(task.reports, -1)
    return [score_test(held(rows)).p_value for rows in ([x, y, z], [merged, z])]


def conditional_power(task: Task, rng: np.random.Generator) -> list[float]:
    """Return the p-values of the test of conditional independence, and of two-way tests."""
    table = conditional_table((3, 3, 2), EXPONENTS[task.population], task.strength)
    x, y, z = likelihoods(table, task.reports, rng, "basic", clear=True)
    within = [score_test(held([x[z[:, c] > 0], y[z[:, c] > 0]])) for c in range(z.shape[1])]
    statistic = sum(test.statistic for test in within)
    freedom = sum(test.degrees_of_freedom for test in within)
    return [conditional_independence(held([x, y, z])).p_value, chdtrc(freedom, statistic)]


def measured(task: Task) -> Floats:
    """Return the p-values of all crowds of a task, float64[crowds, 2]."""
    return np.array([
        task.measure(task, np.random.default_rng([*task.seed, i])) for i in range(task.crowds)
    ])  # fmt: skip


def rows_of(crowds: int, seed: int) -> list[Task]:
    """Return one task per row of the two tables."""
    settings: list[tuple[Callable[..., list[float]], str, str, int, float, int]] = [
        (sizes, test, name, reports, 0.0, crowds if reports < 100_000 else max(crowds // 2, 1))
        for name, (_, reports, _) in SIZES.items()
        for test in TESTS
    ]
    settings += [
        (sizes_with_other, test, "strings, Other", reports, 0.0, max(crowds // 2, 1))
        for reports in (20_000, 100_000)
        for test in TESTS
    ]
    settings += [
        (mutual_power if test == "mutual" else conditional_power, test, name, 10_000, s, crowds)
        for test, name, s in POWERS
    ]
    return [Task(*each, (seed, i, 0)) for i, each in enumerate(settings)]


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
    shared = {"test": task.test, "population": task.population, "reports": task.reports}
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

    def column(part: list[Row], test: str, name: str) -> Floats:
        return np.array([row[name] for row in part if row["test"] == test], float)

    for test in TESTS:
        rejected, crowds = column(size, test, "size"), column(size, test, "crowds")
        sentence = f"The test of {test} independence of three questions rejects a true hypothesis"
        print(judged(sentence, rejected, share_error(rejected, crowds), 0.03, 0.07))
        ratio, error = column(power, test, "ratio"), column(power, test, "error")
        sentence = f"Power of the test of {test} independence, relative to two-way tests"
        print(judged(sentence, ratio, error, 0.9, np.inf))


if __name__ == "__main__":
    main()
