"""Measure how times grow: python -m benchmarks.growth [--quick] DATA.json

Three analyses, each after a first call that loads compiled code: `decode` of 100 candidates,
`associate` of two questions (128 bits, h = 2, 64 cohorts), and `discover` of the 100 domains of the
URL experiment by prefixes. They grow with the number of reports, of candidates and of cells; those
times are processor time, summed over threads. The last panel has times by the clock on 1, 2, 4, …
cores of this machine. `python -m benchmarks.growth_plot` draws the data.
"""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from benchmarks.table import Timing, best_of
from deniable import Survey, associate, decode, discover, simulate
from deniable.columns import ReportBatch
from deniable.reproduction.dictionaries import prefix_survey
from deniable.reproduction.trials import bloom, survey_of
from deniable.simulation import Population, exponential, top_domains
from deniable.version import __version__

SEED = 1
WORDS = {name: tuple(f"{name}{i}" for i in range(100)) for name in "xy"}
PAIR = survey_of(x=bloom(), y=bloom())
URLS = prefix_survey(epsilon=4.394449, length=20, alphabet="a-z0-9._-")
DOMAINS = Population(top_domains(), exponential(100))
Work = Callable[[], object]
Series = dict[str, list[float]]


def pair_reports(count: int) -> ReportBatch:
    """Return reports of two string questions."""
    rng = np.random.default_rng([SEED, count])
    drawn = {n: Population(w, exponential(100, 8.0)).draw(count, rng) for n, w in WORDS.items()}
    return simulate(PAIR, drawn, rng=rng)


def url_reports(count: int) -> ReportBatch:
    """Return reports of prefixes of domains."""
    rng = np.random.default_rng([SEED, count])
    return simulate(URLS, DOMAINS.draw(count, rng), rng=rng)


def decoding(reports: ReportBatch, candidates: int = 100) -> Work:
    """Return a decoding of one question."""
    words = [f"x{i}" for i in range(candidates)]
    return lambda: decode(PAIR, reports, "x", words)


def associating(reports: ReportBatch, side: int = 6) -> Work:
    """Return the fit of a joint table with this many rows and columns, and its standard errors."""
    return lambda: associate(PAIR, reports, ["x", "y"], candidates=WORDS, top=side - 1)


def discovering(reports: ReportBatch, survey: Survey = URLS) -> Work:
    """Return a search for the domains."""
    return lambda: discover(survey, reports, "value")


def measured(work: Work) -> Timing:
    """Return the time of the second call of some work; repeat it if it is short."""
    work()
    timing = best_of(work, 1)
    return min([timing, best_of(work, 4)], key=lambda t: t.clock) if timing.clock < 1 else timing


def by_reports(most: int) -> Iterator[tuple[float, dict[str, Work]]]:
    """Yield the analyses of more and more reports."""
    for exponent in range(4, most + 1):
        count = 10**exponent
        pair = pair_reports(count)
        yield (
            count,
            {
                "decode, 100 candidates": decoding(pair),
                "associate, 6 × 6": associating(pair),
                "discover, prefixes": discovering(url_reports(count)),
            },
        )


def by_candidates(most: int) -> Iterator[tuple[float, dict[str, Work]]]:
    """Yield the decoding of 10⁵ reports with more and more candidates."""
    pair = pair_reports(10**5)
    for exponent in range(2, most + 1):
        yield 10**exponent, {"decode, 10⁵ reports": decoding(pair, 10**exponent)}


def by_cells(sides: tuple[int, ...]) -> Iterator[tuple[float, dict[str, Work]]]:
    """Yield joint tables of 10⁵ reports with more and more cells."""
    pair = pair_reports(10**5)
    for side in sides:
        yield side**2, {"associate, 10⁵ reports": associating(pair, side)}


def by_cores(count: int) -> Iterator[tuple[float, dict[str, Work]]]:
    """Yield analyses of as many reports on more and more cores."""
    pair, urls = pair_reports(count), url_reports(count)
    allowed = sorted(os.sched_getaffinity(0))
    cores = 1
    while cores <= len(allowed):
        with only_cores(set(allowed[:cores])):
            yield (
                cores,
                {
                    "associate, 20 × 20": associating(pair, 20),
                    "discover, prefixes": discovering(urls),
                },
            )
        cores *= 2


@contextmanager
def only_cores(chosen: set[int]) -> Iterator[None]:
    """Let this process use only some processor cores, which decide the number of threads."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, chosen)
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


def panel(
    name: str, kind: str, points: Iterator[tuple[float, dict[str, Work]]]
) -> dict[str, object]:
    """Measure the points of one panel. kind : "processor" or "clock"."""
    xs: list[float] = []
    series: Series = {}
    for x, analyses in points:
        xs.append(x)
        for label, work in analyses.items():
            timing = measured(work)
            series.setdefault(label, []).append(getattr(timing, kind))
            print(f"{name} {x:,.0f}: {label}: {timing}", flush=True)
    return {"name": name, "time": kind, "x": xs, "series": series}


def main() -> None:
    """Measure all panels and write them to a file."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", type=Path)
    parser.add_argument("--quick", action="store_true", help="small sizes only")
    options = parser.parse_args()
    small = options.quick
    panels = [
        panel("reports", "processor", by_reports(5 if small else 7)),
        panel("candidates", "processor", by_candidates(3 if small else 6)),
        panel("cells", "processor", by_cells((3, 6) if small else (3, 6, 10, 20, 40))),
        panel("cores", "clock", by_cores(10**5 if small else 10**6)),
    ]
    conditions = {"seed": SEED, "version": __version__, "cores": len(os.sched_getaffinity(0))}
    options.data.write_text(json.dumps({**conditions, "panels": panels}, indent=1) + "\n")


if __name__ == "__main__":
    main()
