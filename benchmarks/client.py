"""Measure the Python client: python -m benchmarks.client

One core, randomness of the operating system, ledger in memory. Rates use processor time, since
other programs may run on the machine. The rate with a ledger on disk, which waits for the disk at
every answer, uses wall-clock time.
"""

from __future__ import annotations

import math
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from deniable.client import Client, Ledger, SurveyLimits, new_secret
from deniable.survey import Survey

HEAD = """name = "bench"
version = 1
owner = "benchmarks"
description = "speed"
expires = 2999-12-31
collect = "{collect}"
budget = 1e9
[questions.page]
kind = "string"
{noise}
"""
PAPER = "hashes = 2\np = 0.25\nq = 0.75"
CASES = {
    "128 bits, h=2, p=.25, q=.75, f=0": HEAD.format(collect="once", noise=PAPER),
    "256 bits, h=1, q=.5, epsilon=4.39": HEAD.format(collect="once", noise="epsilon = 4.39"),
    "128 bits, h=2, p=.5, q=.75, f=.5": HEAD.format(
        collect="repeatedly", noise="hashes = 2\np = 0.5\nq = 0.75\nf = 0.5"
    ),
    "128 bits, any f (epsilon=4.39 in total)": HEAD.format(
        collect="repeatedly", noise="epsilon = 4.39"
    ),
    "n-grams: three slots of 128 bits": HEAD.format(collect="once", noise=PAPER)
    + '[questions.page.dictionary]\nprotocol = "ngrams"\nmax_length = 20\nalphabet = "a-z0-9._-"',
}
UNLIMITED = SurveyLimits(epsilon=math.inf)  # a client answers here again and again
FIRST_ANSWER = """
import time
start = time.process_time()
import deniable
survey = deniable.Survey.load({path!r})
bytes(deniable.Client(survey, secret=bytes(32)).answer({{"page": "example.com"}}))
print(time.process_time() - start)
"""


def rate(answer: Callable[[], object], clock: Callable[[], float] = time.process_time) -> float:
    """Return calls per second of a clock."""
    count, start = 0, clock()
    while (spent := clock() - start) < 1.0:
        for _ in range(50):
            answer()
        count += 50
    return count / spent


def main() -> None:
    """Print reports per second of each survey, and the time of the first answer."""
    for name, toml in CASES.items():
        client = Client(Survey.from_toml(toml), secret=new_secret(), limits=UNLIMITED)
        per_second = rate(lambda c=client: bytes(c.answer({"page": "example.com"})))  # type: ignore[misc]
        print(f"{name:42} {per_second:10,.0f} reports/s")
    with tempfile.TemporaryDirectory() as folder:
        survey = Survey.from_toml(next(iter(CASES.values())))
        ledger = Ledger(Path(folder) / "ledger.json")
        client = Client(survey, secret=new_secret(), ledger=ledger, limits=UNLIMITED)
        per_second = rate(lambda: client.answer({"page": "example.com"}), time.perf_counter)
        print(f"{'the same with its ledger on disk':42} {per_second:10,.0f} reports/s")
        replace(survey, budget=10**10).publish(Path(folder) / "survey.json")
        code = FIRST_ANSWER.format(path=str(Path(folder) / "survey.json"))
        times = [
            float(subprocess.run([sys.executable, "-c", code], capture_output=True).stdout)
            for _ in range(7)
        ]
    print(f"{'import and first answer, median of 7':42} {1e3 * sorted(times)[3]:10.1f} ms")


if __name__ == "__main__":
    main()
