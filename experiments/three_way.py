"""Size and power of the tests of mutual and conditional independence of three questions.

    python -m experiments.three_way [--quick] [--seed 7] [-o FOLDER]

`size` is the share of crowds in which a true hypothesis is rejected at .05, `lrt` that of the
likelihood ratio. Under `mutual`, all questions are independent. Under `conditional`, x and y depend
on z, and are independent given z. Options have Zipf weights: even (exponent 1) or rare (exponent 3,
where the last of four has .013); with little noise, p = .05 and q = .95. With `Other`, x and y are
strings of 64 cohorts with 30 values, of which 20 are candidates and three are shown; z is a
boolean.

`power` is measured at a weak association, `two-way` is what the two-way score test has on a
comparable table. Mutual: z depends on x and y; the two-way test compares z with x and y taken as
one question. Conditional: x and y are associated in every category of z, which is reported without
noise; the two-way tests of all categories of z are added up.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

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
from deniable.reproduction.records import Record
from deniable.reproduction.trials import bloom, boolean, generators, survey_of
from deniable.results.association import AssociationTest
from deniable.simulation import JointPopulation, random_strings
from experiments.direct_rows import basic_rows, bloom_rows, dependent_table, draw_cells, zipf
from experiments.options import arguments, finish
from experiments.text_tables import show

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


def rejected(p_values: list[float]) -> float:
    """Return the share of p-values that reject."""
    return float(np.mean(np.array(p_values) <= ALPHA))


def sizes(name: str, trials: int, seed: int) -> list[dict[str, object]]:
    """Return the sizes of both tests on one population of options."""
    encoding, reports, exponent = SIZES[name]
    tables = {"mutual": mutual_table(exponent), "conditional": conditional_table(SHAPE, exponent)}
    tests: dict[str, Callable[..., AssociationTest]] = {
        "mutual": mutual_independence, "conditional": conditional_independence,
    }  # fmt: skip
    rows: list[dict[str, object]] = []
    for test, table in tables.items():
        score, ratio = [], []
        for rng in generators(seed, trials):
            evidence = held(likelihoods(table, reports, rng, encoding))
            fit = maximise(evidence)
            score.append(tests[test](evidence, fit=fit).p_value)
            ratio.append(tests[test](evidence, fit=fit, method="lrt").p_value)
        rows.append({"test": test, "population": name, "reports": reports,
                     "size": rejected(score), "lrt": rejected(ratio)})  # fmt: skip
    return rows


def sizes_with_other(reports: int, trials: int, seed: int) -> list[dict[str, object]]:
    """Return the sizes of both tests on strings with Other."""
    survey = survey_of(x=bloom(), y=bloom(), z=boolean())
    rows: list[dict[str, object]] = []
    for test, lean in (("mutual", False), ("conditional", True)):
        table = conditional_table((30, 30, 2), 1.0)
        if not lean:
            table = np.multiply.outer(np.outer(zipf(30), zipf(30)), np.array([0.7, 0.3]))
        found = []
        for rng in generators(seed, trials):
            values = {"x": random_strings(30, 6, rng), "y": random_strings(30, 6, rng)}
            crowd = JointPopulation({**values, "z": (True, False)}, table / table.sum())
            batch = simulate(survey, crowd.draw(reports, rng), rng=rng)
            known = {name: strings[:20] for name, strings in values.items()}
            joint = associate(survey, batch, ["x", "y", "z"], candidates=known, top=3)
            given_z = partial(joint.conditional_independence, "x", "y")
            found.append((given_z if lean else joint.mutual_independence)().p_value)
        rows.append({"test": test, "population": "strings, Other", "reports": reports,
                     "size": rejected(found), "lrt": float("nan")})  # fmt: skip
    return rows


def mutual_power(exponent: float, reports: int, strength: float, trials: int, seed: int) -> Floats:
    """Return the power of the test of mutual independence, and of the two-way test."""
    found = []
    for rng in generators(seed, trials):
        x, y, z = likelihoods(mutual_table(exponent, strength), reports, rng, "basic")
        merged = (x[:, :, None] * y[:, None, :]).reshape(reports, -1)
        tests = score_test(held([x, y, z])), score_test(held([merged, z]))
        found.append([test.p_value <= ALPHA for test in tests])
    return np.asarray(np.mean(found, axis=0, dtype=float))


def conditional_power(
    exponent: float, reports: int, strength: float, trials: int, seed: int
) -> Floats:
    """Return the power of the test of conditional independence, and of two-way tests."""
    found = []
    table = conditional_table((3, 3, 2), exponent, strength)
    for rng in generators(seed, trials):
        x, y, z = likelihoods(table, reports, rng, "basic", clear=True)
        within = [score_test(held([x[z[:, c] > 0], y[z[:, c] > 0]])) for c in range(z.shape[1])]
        statistic = sum(test.statistic for test in within)
        freedom = sum(test.degrees_of_freedom for test in within)
        three_way = conditional_independence(held([x, y, z])).p_value
        found.append([three_way <= ALPHA, chdtrc(freedom, statistic) <= ALPHA])
    return np.asarray(np.mean(found, axis=0, dtype=float))


def run(trials: int, seed: int) -> Record:
    """Measure everything."""
    record = Record("three_way", seed, {"trials": trials})
    rows = [row for name in SIZES for row in sizes(name, trials, seed)]
    for reports in (20_000, 100_000):
        rows += sizes_with_other(reports, trials // 2, seed)
    show(record, "size", rows, "Share of true hypotheses rejected at .05")
    powers = [
        {"test": test, "population": population, "power": float(three), "two-way": float(two)}
        for test, measure, population, exponent, strength in (
            ("mutual", mutual_power, "even", 1.0, 0.1),
            ("mutual", mutual_power, "rare", 3.0, 0.3),
            ("conditional", conditional_power, "even", 1.0, 0.1),
            ("conditional", conditional_power, "rare", 3.0, 0.15),
        )
        for three, two in [measure(exponent, 10_000, strength, trials, seed)]
    ]
    show(record, "power", powers, "Power at .05")
    return record


if __name__ == "__main__":
    options = arguments(__doc__, seed=7)
    finish(run(20 if options.quick else 400, options.seed), options)
