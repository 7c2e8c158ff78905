"""Do intervals of discovered strings, and of their total, contain the truth near the threshold?

    python -m experiments.selected_intervals [--crowds 40] [--jobs 16] [--seed 1]

Small domains. Strings are sorted by their true share over the reported detection threshold.
Columns: discovered strings; coverage of their 95% intervals, and that of the former rule (estimate
± 1.96 standard errors, as if the string had not been selected); mean width over that of the former
rule; mean error of the estimates now and formerly, in standard errors. Bands with fewer than 120
strings, whose coverage has an error above .02, are pooled over the populations of a protocol. Then,
by population, the coverage of `mass_found`, formerly, that of `mass_unexplained` (each is 1 less
the other), and the width over the former one. Takes about three minutes on 16 processors.

| population | strings |
| --- | --- |
| flat | equally common, at .65, .8, .9 or 1.12 of the threshold |
| power law | 100 strings, weights 1/rank |
| heavy and tail | three strings of 20% each; the others from .5 to 1.3 of the threshold |
| slow power law | 200 strings, weights 1/√rank |
| two groups | half of the clients hold strings of .6, half of 1.3 times the threshold |

The method was developed with 20,000 clients and the populations flat (.65, .9, 1.12), power law,
and heavy and tail. Rows that state another ε and number of clients were added afterwards.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise, product

import numpy as np

from deniable import Survey, discover, simulate
from deniable.discovery.shared import run as discovery_run
from deniable.discovery.shared.selection import SelectedStrings, corrected
from deniable.kernels.array_types import Floats
from deniable.results import Discovery, Measured
from deniable.simulation import Population, zipf
from experiments.paper.dictionaries import ngram_survey
from experiments.paper.trials import survey_of
from experiments.parallel import crowd_arguments, in_processes
from experiments.promises import judged, share_error
from experiments.text_tables import text_table

BANDS = (0.0, 0.75, 1.0, 1.25, 1.5, np.inf)
FAR = 1.5
"""Share over threshold above which the correction should not show."""
POPULATIONS = ("flat, 0.65", "flat, 0.9", "flat, 1.12", "power law", "heavy and tail")
NEW_POPULATIONS = ("flat, 0.8", "slow power law", "two groups")
MIN_STRINGS = 120
Z95 = 1.959964

Results = dict[tuple[str, str], list[tuple[Floats, Floats]]]
"""What the crowds of each protocol and population said: see `trial`."""


@dataclass(frozen=True)
class Setting:
    """A survey with strings of so many of the letters a–j, and about its detection threshold."""

    survey: Survey
    letters: int
    length: int
    threshold: float
    clients: int = 20_000


def _prefixes(epsilon: float, **dictionary: object) -> Survey:
    question = {"kind": "string", "mechanism": "localhash", "epsilon": epsilon}
    return survey_of(value={**question, "dictionary": {"protocol": "prefixes", **dictionary}})


SETTINGS = {
    "whole strings": Setting(_prefixes(2.0, max_length=3, alphabet="a-j"), 10, 3, 0.0225),
    "prefixes": Setting(
        _prefixes(4.0, max_length=4, alphabet="a-h", levels=[2, 3, 4, 4]), 8, 4, 0.0135
    ),
    "n-grams": Setting(ngram_survey(q=0.75, alphabet="a-h", length=4, gram=2), 8, 4, 0.0125),
}
NEW_SETTINGS = {
    "whole strings, ε = 3, 60,000": Setting(
        _prefixes(3.0, max_length=4, alphabet="a-j"), 10, 4, 0.0086, 60_000
    ),
    "prefixes, ε = 2.5, 50,000": Setting(
        _prefixes(2.5, max_length=4, alphabet="a-h", levels=[2, 4, 4]), 8, 4, 0.017, 50_000
    ),
    "n-grams, q = .65, 50,000": Setting(
        ngram_survey(q=0.65, alphabet="a-f", length=6, gram=2), 6, 6, 0.0125, 50_000
    ),
}
ROWS = [
    *product(SETTINGS, POPULATIONS),
    *product(NEW_SETTINGS, NEW_POPULATIONS),
]


def population_of(name: str, setting: Setting, rng: np.random.Generator) -> Population:
    """Return strings and weights; each crowd has new strings."""
    if name.startswith("flat"):
        count = int(1 / (float(name.split()[1]) * setting.threshold))
        weights = np.full(count, 1 / count)
    elif name == "power law":
        weights = zipf(100, 1.0)
    elif name == "slow power law":
        weights = zipf(200, 0.5)
    elif name == "two groups":
        ratios = np.array([0.6, 1.3])
        counts = (0.5 / (ratios * setting.threshold)).astype(int)
        weights = np.repeat(0.5 / counts, counts)
    else:
        count = int(0.4 / (0.9 * setting.threshold))
        tail = np.linspace(0.5, 1.3, count)
        weights = np.concatenate([np.full(3, 0.2), 0.4 * tail / tail.sum()])
    numbers = rng.choice(setting.letters**setting.length, len(weights), replace=False)
    places = setting.letters ** np.arange(setting.length)
    digits = numbers[:, np.newaxis] // places % setting.letters
    strings = tuple("".join("abcdefghij"[d] for d in row) for row in digits)
    return Population(strings, weights)


@contextmanager
def uncorrected() -> Iterator[list[SelectedStrings]]:
    """Collect the estimates of every discovery before they are corrected."""
    seen: list[SelectedStrings] = []

    def collect(strings: SelectedStrings) -> object:
        seen.append(strings)
        return corrected(strings)

    vars(discovery_run)["corrected"] = collect
    try:
        yield seen
    finally:
        vars(discovery_run)["corrected"] = corrected


def trial(task: tuple[str, str, int]) -> tuple[Floats, Floats]:
    """Return one row per string: share over threshold, covered, formerly, widths, errors."""
    protocol, population, seed = task
    rng = np.random.default_rng([seed, *f"{protocol}; {population}".encode()])
    setting = {**SETTINGS, **NEW_SETTINGS}[protocol]
    crowd = population_of(population, setting, rng)
    reports = simulate(setting.survey, crowd.draw(setting.clients, rng), rng=rng)
    with uncorrected() as seen:
        result = discover(setting.survey, reports, "value")
    return judged_strings(result, seen[-1], crowd)


def judged_strings(
    result: Discovery, former: SelectedStrings, crowd: Population
) -> tuple[Floats, Floats]:
    """Compare a result with the truth, now and without correction."""
    truth = np.array([crowd.share(string) for string in result.strings])
    order = np.argsort(-(result.estimate + result.shrunk_by), kind="stable")
    raw = np.sort(former.estimate)[::-1]
    error = former.error[np.argsort(-former.estimate, kind="stable")]
    share = truth[order]
    low, high, now = (x[order] for x in (result.low, result.high, result.estimate))
    strings = np.stack(
        [
            share / result.detection_threshold,
            (low <= share) & (share <= high),
            np.abs(raw - share) <= Z95 * error,
            high - low,
            np.minimum(raw + Z95 * error, 1) - np.maximum(raw - Z95 * error, 0),
            (now - share) / error,
            (raw - share) / error,
        ],
        axis=1,
    )
    total, before = truth.sum(), Measured.normal(float(raw.sum()), former.total_error)
    mass = [
        *(m.low <= total <= m.high for m in (result.mass_found, before)),
        *(m.high - m.low for m in (result.mass_found, before)),
        result.mass_unexplained.low <= 1 - total <= result.mass_unexplained.high,
        len(truth),
    ]
    return strings, np.array(mass, float)


def banded(strings: Floats) -> dict[tuple[float, float], Floats]:
    """Return the strings of each band of share over threshold."""
    return {
        (low, high): strings[(strings[:, 0] >= low) & (strings[:, 0] < high)]
        for low, high in pairwise(BANDS)
    }


def string_row(name: str, band: tuple[float, float], strings: Floats) -> dict[str, object]:
    """Return the row of one band."""
    now, former, width, former_width, error, former_error = strings[:, 1:].mean(axis=0)
    return {
        "crowds": name,
        "share / threshold": f"{band[0]:g} to {band[1]:g}",
        "strings": len(strings),
        "coverage": now,
        "formerly": former,
        "width ratio": width / former_width,
        "bias": error,
        "bias formerly": former_error,
    }


def string_rows(results: Results) -> list[dict[str, object]]:
    """Return one row per population and band, or per protocol and band where strings are few."""
    rows: list[dict[str, object]] = []
    few: dict[tuple[str, tuple[float, float]], list[Floats]] = defaultdict(list)
    for (protocol, population), trials in results.items():
        for band, strings in banded(np.concatenate([strings for strings, _ in trials])).items():
            if len(strings) < MIN_STRINGS:
                few[protocol, band].append(strings)
            else:
                rows.append(string_row(f"{protocol}; {population}", band, strings))
    for (protocol, band), parts in few.items():
        strings = np.concatenate(parts)
        if len(strings) >= MIN_STRINGS / 4:
            rows.append(string_row(f"{protocol}; other populations", band, strings))
    return rows


def total_row(name: str, trials: list[tuple[Floats, Floats]]) -> dict[str, object]:
    """Return the row of one population: what is said of all discovered strings together."""
    mass = np.array([row for strings, row in trials if len(strings)])
    now, former, width, former_width, unexplained, found = mass.mean(axis=0)
    return {
        "crowds": name,
        "found": found,
        "mass_found": now,
        "formerly": former,
        "mass_unexplained": unexplained,
        "width ratio": width / former_width,
    }


def main() -> None:
    """Print both tables and the promises."""
    given = crowd_arguments(__doc__, 40)
    tasks = [(*row, seed) for row in ROWS for seed in range(given.seed, given.seed + given.crowds)]
    trials = list(in_processes(trial, tasks, given.jobs))
    results = {row: trials[i * given.crowds : (i + 1) * given.crowds] for i, row in enumerate(ROWS)}
    rows = string_rows(results)
    totals = [total_row("; ".join(row), trials) for row, trials in results.items()]
    print(f"{given.crowds} crowds per population\n{text_table(rows)}\n\n{text_table(totals)}\n")

    covered, count, width = (
        np.array([row[name] for row in rows], float)
        for name in ("coverage", "strings", "width ratio")
    )
    error = share_error(covered, count)
    print(judged("Intervals of discovered strings contain the truth", covered, error, 0.93, 0.97))
    for name in ("mass_found", "mass_unexplained"):
        shares = np.array([row[name] for row in totals], float)
        error = share_error(shares, given.crowds)
        print(judged(f"The interval of `{name}` contains the truth", shares, error, 0.93, 0.97))
    far = np.array([str(row["share / threshold"]).startswith(f"{FAR:g} ") for row in rows])
    for where, chosen, limit in (("below", ~far, 1.7), ("above", far, 1.02)):
        sentence = f"Width over that without correction, {where} {FAR:g} thresholds"
        print(judged(sentence, width[chosen], np.full(chosen.sum(), 0.002), 0, limit))


if __name__ == "__main__":
    main()
