"""Do intervals of discovered strings, and of their total, contain the truth near the threshold?

    python -m experiments.selected_intervals [--crowds 200] [--jobs 2] [--seed 1]

Small domains, 20,000 clients. Strings are sorted by their true share over the reported detection
threshold. Columns: discovered strings; coverage of their 95% intervals, and that of the former rule
(estimate ± 1.96 standard errors, as if the string had not been selected); mean width over that of
the former rule; mean error of the estimates now and formerly, in standard errors. Then, by
population, the coverage of `mass_found` (that of `mass_unexplained` is the same: each is 1 less the
other), formerly, and its width over the former one. Takes about three minutes on 16 processors.

| population | strings |
| --- | --- |
| flat | equally common, at .65, .9 or 1.12 of the threshold |
| power law | 100 strings, weights 1/rank |
| heavy and tail | three strings of 20% each; the others from .5 to 1.3 of the threshold |
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from deniable import Survey, discover, simulate
from deniable.discovery.shared import run as discovery_run
from deniable.discovery.shared.selection import SelectedStrings, corrected
from deniable.kernels.array_types import Floats
from deniable.reproduction.dictionaries import ngram_survey
from deniable.reproduction.trials import survey_of
from deniable.results import Discovery, Measured
from deniable.simulation import Population, zipf
from experiments.parallel import crowd_arguments, in_processes
from experiments.promises import judged, share_error
from experiments.text_tables import text_table

CLIENTS = 20_000
BANDS = (0.0, 0.75, 1.0, 1.25, 1.5, np.inf)
FLAT = (0.65, 0.9, 1.12)
POPULATIONS = (*(f"flat, {ratio:g}" for ratio in FLAT), "power law", "heavy and tail")
Z95 = 1.959964


@dataclass(frozen=True)
class Setting:
    """A survey with strings of so many of the letters a–j, and about its detection threshold."""

    survey: Survey
    letters: int
    length: int
    threshold: float


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


def population_of(name: str, setting: Setting, rng: np.random.Generator) -> Population:
    """Return strings and weights; each crowd has new strings."""
    if name.startswith("flat"):
        count = int(1 / (float(name.split()[1]) * setting.threshold))
        weights = np.full(count, 1 / count)
    elif name == "power law":
        weights = zipf(100, 1.0)
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
    rng = np.random.default_rng([seed, list(SETTINGS).index(protocol), len(population)])
    setting = SETTINGS[protocol]
    crowd = population_of(population, setting, rng)
    with uncorrected() as seen:
        result = discover(
            setting.survey, simulate(setting.survey, crowd.draw(CLIENTS, rng), rng=rng), "value"
        )
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


def string_rows(name: str, strings: Floats) -> list[dict[str, object]]:
    """Return one row per band."""
    rows: list[dict[str, object]] = []
    for low, high in pairwise(BANDS):
        band = strings[(strings[:, 0] >= low) & (strings[:, 0] < high)]
        if len(band) >= 20:
            now, former, width, former_width, error, former_error = band[:, 1:].mean(axis=0)
            rows.append(
                {
                    "crowds": name,
                    "share / threshold": f"{low:g} to {high:g}",
                    "strings": len(band),
                    "coverage": now,
                    "formerly": former,
                    "width ratio": width / former_width,
                    "bias": error,
                    "bias formerly": former_error,
                }
            )
    return rows


def main() -> None:
    """Print both tables and the promises."""
    given = crowd_arguments(__doc__, 200)
    settings = [(protocol, population) for protocol in SETTINGS for population in POPULATIONS]
    seeds = range(given.seed, given.seed + given.crowds)
    tasks = [(*setting, seed) for setting in settings for seed in seeds]
    results = list(in_processes(trial, tasks, given.jobs))
    rows: list[dict[str, object]] = []
    totals: list[dict[str, object]] = []
    for i, setting in enumerate(settings):
        part = results[i * given.crowds : (i + 1) * given.crowds]
        rows += string_rows("; ".join(setting), np.concatenate([strings for strings, _ in part]))
        mass = np.array([row for strings, row in part if len(strings)])
        now, former, width, former_width, unexplained, found = mass.mean(axis=0)
        ratio = width / former_width
        name = {"crowds": "; ".join(setting), "found": found, "mass_found": now, "formerly": former}
        totals.append({**name, "mass_unexplained": unexplained, "width ratio": ratio})
    print(f"{given.crowds} crowds per population\n{text_table(rows)}\n\n{text_table(totals)}\n")
    covered = np.array([row["coverage"] for row in rows], float)
    counts = [int(str(row["strings"])) for row in rows]
    errors = np.array([share_error(c, n) for c, n in zip(covered, counts, strict=True)])
    print(
        judged("Interval of a discovered string, near the threshold", covered, errors, 0.93, 0.97)
    )
    masses = np.array([row["mass_found"] for row in totals], float)
    error = share_error(masses, given.crowds)
    print(judged("Interval of the share that discovered strings hold", masses, error, 0.93, 0.97))
    near = np.array([row["width ratio"] for row in rows], float)
    widths = judged("Width over that without correction", near, np.zeros(len(near)), 0, 1.7)
    print(widths)


if __name__ == "__main__":
    main()
