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
import multiprocessing
import os
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import numpy as np
from experiments.paper.dictionaries import prefix_survey
from experiments.paper.trials import bloom, survey_of

from benchmarks.table import Timing, best_of
from deniable import Survey, associate, decode, discover, simulate
from deniable.columns import ReportBatch
from deniable.results import Joint
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


def associating(reports: ReportBatch, side: int = 6) -> Callable[[], Joint]:
    """Return the fit of a joint table with up to this many rows and columns."""
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
        work = associating(pair, side)
        yield work().table.size, {"associate, 10⁵ reports": work}


def timed_on_cores(cores: int, count: int) -> dict[str, Timing]:
    """Return the times of analyses of `count` reports on some cores, in a process of its own."""
    # Threads that are started later, in this process, use the same cores.
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:cores])
    analyses = {
        "associate, 20 × 20": associating(pair_reports(count), 20),
        "discover, prefixes": discovering(url_reports(count)),
    }
    return {label: measured(work) for label, work in analyses.items()}


def by_cores(count: int) -> Iterator[tuple[float, dict[str, Timing]]]:
    """Yield the times of analyses of `count` reports on more and more cores."""
    cores, spawn = 1, multiprocessing.get_context("spawn")
    while cores <= len(os.sched_getaffinity(0)):
        with ProcessPoolExecutor(1, mp_context=spawn) as process:
            yield cores, process.submit(timed_on_cores, cores, count).result()
        cores *= 2


def timed(
    points: Iterator[tuple[float, dict[str, Work]]],
) -> Iterator[tuple[float, dict[str, Timing]]]:
    """Yield the times of analyses."""
    for x, analyses in points:
        yield x, {label: measured(work) for label, work in analyses.items()}


def panel(
    name: str, kind: str, points: Iterator[tuple[float, dict[str, Timing]]]
) -> dict[str, object]:
    """Return the points of one panel, and print them. kind : "processor" or "clock"."""
    xs: list[float] = []
    series: Series = {}
    for x, timings in points:
        xs.append(x)
        for label, timing in timings.items():
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
        panel("reports", "processor", timed(by_reports(5 if small else 7))),
        panel("candidates", "processor", timed(by_candidates(3 if small else 6))),
        panel("cells", "processor", timed(by_cells((3, 6) if small else (3, 6, 10, 20)))),
        panel("cores", "clock", by_cores(10**5 if small else 10**6)),
    ]
    conditions = {"seed": SEED, "version": __version__, "cores": len(os.sched_getaffinity(0))}
    options.data.write_text(json.dumps({**conditions, "panels": panels}, indent=1) + "\n")


if __name__ == "__main__":
    main()
