"""Coverage of joint tables of two questions whose strings are first discovered.

    python -m experiments.two_unknowns [--quick] [--seed 9] [-o FOLDER]   8 minutes

Two correlated variables of 16 strings each, two to five letters of a–f, Zipf weights, N = 50,000;
each trial draws new strings. `whole` strings (the default in so small a domain) and `prefixes` of
five lengths by local hashing with ε = 2.2 per question, `ngrams` by Bloom filters with ε = 5 per
question, divided among three slots. The result of `discover` is passed to `associate` unchanged. Up
to ten strings of each question are shown, all others form Other. Trials in which a false string was
found are counted and left out.

Strings near the detection threshold are found only if their estimates are high, so cells are
divided: `sure` where both strings' ranks are found in at least 19 of 20 trials, `lucky` where one
of them is not, `Other` where one of them is Other. `covered` counts every cell; most are small, and
an interval that ends at 0 contains a small true value easily, so `large covered` counts cells of at
least three standard errors. `z` is the mean error in standard errors. `rates` are P(y | x) for each
string x that is shown. The second table has the margins, as `discover` gives them, by rank.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from deniable import Survey, associate, discover, simulate
from deniable.errors import InputError
from deniable.results import Discovery, Joint
from deniable.simulation import contingency, correlated, zipf
from experiments.options import arguments, finish
from experiments.paper.records import Record
from experiments.paper.trials import generators, truth_of
from experiments.text_tables import show

REPORTS, STRINGS, STRENGTH, SURE, LARGE = 50_000, 16, 0.4, 0.95, 3.0
HEAD = """
name = "two-unknowns"
version = 1
owner = "experiments"
description = "two unlisted strings"
expires = 2999-12-31
collect = "once"
"""
SETTINGS = {
    "whole": (
        'mechanism = "localhash"\nepsilon = 2.2',
        'protocol = "prefixes"\nmax_length = 5\nalphabet = "a-f"',
    ),
    "prefixes": (
        'mechanism = "localhash"\nepsilon = 2.2',
        'protocol = "prefixes"\nmax_length = 5\nalphabet = "a-f"\nlevels = [2, 3, 4, 5, 5]',
    ),
    "ngrams": (
        "epsilon = 5.0\ncohorts = 32",
        'protocol = "ngrams"\nmax_length = 6\nalphabet = "a-f"\ngram = 2',
    ),
}


def survey_of(protocol: str) -> Survey:
    """Return the survey of questions x and y with this protocol."""
    mechanism, dictionary = SETTINGS[protocol]
    return Survey.from_toml(
        HEAD + "".join(
            f'[questions.{q}]\nkind = "string"\n{mechanism}\n'
            f"[questions.{q}.dictionary]\n{dictionary}\n"
            for q in "xy"
        )
    )  # fmt: skip


def strings(rng: np.random.Generator) -> tuple[str, ...]:
    """Draw the strings of one question, all different."""
    drawn: dict[str, None] = {}
    while len(drawn) < STRINGS:
        drawn["".join(rng.choice(list("abcdef"), rng.integers(2, 6)))] = None
    return tuple(drawn)


@dataclass(frozen=True)
class Comparison:
    """An estimate with its interval, and the truth; ranks : of its strings, None for Other."""

    ranks: tuple[int | None, ...]
    truth: float
    estimate: float
    error: float
    low: float
    high: float

    @property
    def inside(self) -> bool:
        """Whether the interval contains the truth."""
        return self.low <= self.truth <= self.high

    @property
    def z(self) -> float:
        """Error in standard errors."""
        return (self.estimate - self.truth) / self.error if self.error > 0 else 0.0


def cells(joint: Joint, crowd: Any) -> tuple[list[Comparison], list[Comparison]]:
    """Return every cell of a table, and the rates of y for every x."""
    truth = truth_of(crowd, joint.labels)
    ranks = [
        [list(values).index(name) if name in values else None for name in names]
        for values, names in zip(crowd.values.values(), joint.labels, strict=True)
    ]
    rates = joint.conditional("x")
    whole = (truth, joint.table, joint.standard_error, joint.low, joint.high)
    given_x = (truth / truth.sum(axis=1, keepdims=True), rates.estimate, rates.standard_error,
               rates.low, rates.high)  # fmt: skip
    both = [
        [Comparison((ranks[0][i], ranks[1][j]), *(float(part[i, j]) for part in parts))
         for i, j in np.ndindex(*truth.shape)]
        for parts in (whole, given_x)
    ]  # fmt: skip
    return both[0], [rate for rate in both[1] if rate.ranks[0] is not None]


def margins(found: Discovery, values: tuple[str, ...]) -> list[Comparison]:
    """Return the comparison of every discovered string."""
    weights = zipf(STRINGS)
    each = zip(found.strings, found.estimate, found.standard_error, found.low, found.high,
               strict=True)  # fmt: skip
    return [
        Comparison((rank := values.index(s),), float(weights[rank]), *map(float, numbers))
        for s, *numbers in each
    ]


def measured(comparisons: list[Comparison]) -> dict[str, Any]:
    """Return the columns that summarise comparisons."""
    errors: dict[Any, list[float]] = {}
    for one in comparisons:
        errors.setdefault(one.ranks, []).append(one.error)
    # The mean, because the standard error of each one grows with its estimate.
    large = [c for c in comparisons if c.truth >= LARGE * np.mean(errors[c.ranks])]

    def mean(values: list[Any]) -> float:
        return float(np.mean(values)) if values else float("nan")

    return {
        "count": len(comparisons), "covered": mean([c.inside for c in comparisons]),
        "large": len(large), "large covered": mean([c.inside for c in large]),
        "z": mean([c.z for c in comparisons]),
    }  # fmt: skip


def run(protocol: str, trials: int, seed: int) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Return the coverage of cells by kind, and of margins by rank."""
    survey, table = survey_of(protocol), correlated(zipf(STRINGS), zipf(STRINGS), strength=STRENGTH)
    seen: list[Comparison] = []
    rates: list[Comparison] = []
    alone: list[Comparison] = []
    false, empty = 0, 0
    for rng in generators(seed, trials):
        crowd = contingency(table, x=strings(rng), y=strings(rng))
        reports = simulate(survey, crowd.draw(REPORTS, rng), rng=rng)
        found = {q: discover(survey, reports, q) for q in "xy"}
        if any(set(found[q].strings) - set(crowd.values[q]) for q in "xy"):
            false += 1
            continue
        try:
            joint = associate(survey, reports, ["x", "y"], candidates=found)
        except InputError:
            empty += 1
            continue
        of_table, of_x = cells(joint, crowd)
        seen, rates = seen + of_table, rates + of_x
        alone += [m for q in "xy" for m in margins(found[q], crowd.values[q])]
    used = trials - false - empty
    times = np.bincount(
        [m.ranks[0] for m in alone if m.ranks[0] is not None], minlength=STRINGS
    ) / max(2 * used, 1)

    def kind(cell: Comparison) -> str:
        if None in cell.ranks:
            return "Other"
        return "sure" if all(times[r] >= SURE for r in cell.ranks) else "lucky"

    kinds = {k: [c for c in seen if kind(c) == k] for k in ("sure", "lucky", "Other")}
    kinds |= {"all": seen, "rates": rates}
    common = {"protocol": protocol, "trials": used, "false": false, "empty": empty}
    lines = [{**common, "cells": k, **measured(each)} for k, each in kinds.items()]
    ranks = [
        {"protocol": protocol, "rank": r + 1, "share": float(zipf(STRINGS)[r]),
         "found": float(times[r]), **measured([m for m in alone if m.ranks == (r,)])}
        for r in range(STRINGS)
    ]  # fmt: skip
    return lines, ranks


def main() -> None:
    """Run one protocol, or all."""
    options = arguments(__doc__, seed=9, trials={"type": int, "default": 120},
                        protocol={"choices": list(SETTINGS)})  # fmt: skip
    trials = 4 if options.quick else options.trials
    record = Record("two_unknowns", options.seed, {"reports": REPORTS, "trials": trials})
    for protocol in [options.protocol] if options.protocol else SETTINGS:
        lines, ranks = run(protocol, trials, options.seed)
        show(record, f"{protocol} cells", lines, f"{protocol}: 95% intervals of joint cells")
        show(
            record, f"{protocol} margins", ranks, f"{protocol}: 95% intervals of discovered strings"
        )
    finish(record, options)


if __name__ == "__main__":
    main()
