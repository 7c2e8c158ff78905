"""make demo: clients answer a small survey; what leaves each device, is collected, and learnt."""

from __future__ import annotations

import http.client
import secrets
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from deniable import store
from deniable.analysis import associate, decode
from deniable.cli.check import describe, in_words
from deniable.client import Client, new_secret
from deniable.columns import ReportBatch, to_wire
from deniable.discovery import discover
from deniable.inference import BitCounts, count_bits
from deniable.simulation import (
    Population,
    contingency,
    exponential,
    simulate,
    top_domains,
    zipf,
)
from deniable.survey import Survey

PEOPLE = [
    ("Ada", {"homepage": "example.com", "browser": "Firefox", "ad_blocker": True}),
    ("Bob", {"homepage": "example.org", "browser": "Safari", "ad_blocker": False}),
    ("Cyd", {}),
]
SURVEY = Path(__file__).with_name("survey.toml")
CROWD = 1_000_000
UPLOAD = 10_000
UNKNOWN_CROWD = 300_000
BROWSERS = ("Firefox", "Chromium", "Safari")
TABLE = [[0.30, 0.20], [0.05, 0.25], [0.05, 0.15]]  # browser × ad blocker


def main() -> None:
    survey = Survey.load(SURVEY)
    print(f"{survey!r}: {survey.description}\n")

    print("What leaves each device (Cyd did not answer; nobody can tell):")
    for name, answers in PEOPLE:
        report = Client(survey, secret=new_secret()).answer(answers)
        print(f"  {name}: cohort {report.cohort:2}, {len(bytes(report))} bytes")
        for question, answer in zip(survey.questions, report.answers, strict=True):
            bits = "".join(f"{byte:08b}"[::-1] for byte in answer.slots[0])
            print(f"       {question.name:10} {bits[: question.protocol.mechanisms[0].width]}")

    rng = np.random.default_rng(2016)
    people = contingency(TABLE, browser=BROWSERS, ad_blocker=(True, False)).draw(CROWD, rng)
    pages = Population(tuple(f"page{i}.example" for i in range(100)), zipf())
    start = time.perf_counter()
    batch = simulate(survey, {**people, "homepage": pages.draw(CROWD, rng)}, rng=rng)
    print(
        f"\nA crowd of {CROWD:,} answers: 50% use Firefox, 30% Chromium, 20% Safari, 40% block ads."
        f"\nSimulated in {time.perf_counter() - start:.1f} s."
    )
    with tempfile.TemporaryDirectory() as folder, collector(Path(folder)) as (port, kept):
        collect(batch, port, kept)
        learn(survey, kept, pages)

    learn_unknown()
    found = describe(survey)
    print(f"\n{in_words(found['once'], 'Each report')}.")


@contextmanager
def collector(folder: Path) -> Iterator[tuple[int, str]]:
    """`deniable serve` in a process of its own; yields its port and the URL of its store."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    kept = f"sqlite:///{folder / 'reports.db'}"
    command = [
        sys.executable, "-c", "from deniable.cli import main; main()", "serve",
        str(SURVEY), "--store", kept, "--port", str(port), "--log", "0",
    ]  # fmt: skip
    process = subprocess.Popen(command, stderr=subprocess.DEVNULL)
    try:
        while process.poll() is None:
            try:
                socket.create_connection(("127.0.0.1", port)).close()
                break
            except OSError:
                time.sleep(0.05)
        yield port, kept
    finally:
        process.terminate()
        process.wait()


def collect(batch: ReportBatch, port: int, kept: str) -> None:
    """Upload in batches, one of them twice; then split and shuffle them."""
    start = time.perf_counter()
    connection = http.client.HTTPConnection("127.0.0.1", port)
    for first in range(0, len(batch), UPLOAD):
        body = to_wire(batch.select(slice(first, first + UPLOAD)))
        headers = {
            "Content-Type": "application/octet-stream", "Idempotency-Key": secrets.token_hex(16),
        }  # fmt: skip
        for _ in range(2 if first == 0 else 1):
            connection.request("POST", "/v1/reports", body, headers)
            answer = connection.getresponse()
            assert (answer.status, answer.read()) == (202, b'{"accepted": %d}' % UPLOAD)
    connection.close()
    uploaded = time.perf_counter()
    with store.open(kept) as opened:
        compacted = opened.compact()
    seconds = uploaded - start, time.perf_counter() - uploaded
    print(
        f"Uploaded to a collector on SQLite in {len(batch) // UPLOAD} batches, one of them twice, "
        f"in {seconds[0]:.1f} s:\neach synced to disk before it is acknowledged, and counted once. "
        f"Compacted in {seconds[1]:.1f} s:\n{compacted.reports:,} reports shuffled, so that "
        "nothing says which came together."
    )


def learn(survey: Survey, kept: str, pages: Population) -> None:
    """What the store tells an analyst."""
    with store.open(kept) as opened:
        counts: dict[str, BitCounts] = {}
        for batch in opened.scan(survey):
            for name in ("browser", "ad_blocker"):
                found = count_bits(batch.column(name))
                counts[name] = counts[name] + found if name in counts else found
    print("The analyst counts bits and removes the known noise:")
    for name in ("browser", "ad_blocker"):
        show(survey, name, counts[name])

    page = decode(survey, kept, "homepage", pages.values)
    print(f"\n{page.heading()}")
    for i in page.top(5):
        shares = [100 * x for x in (page.estimate[i], page.low[i], page.high[i], pages.weights[i])]
        print("  {:20} {:5.2f}%  [{:.2f}, {:.2f}]  true {:.2f}%".format(pages.values[i], *shares))

    joint = associate(survey, kept, ["browser", "ad_blocker"])
    print(f"\n{joint}")
    test, effect = joint.test(), joint.cramers_v()
    print(
        f"\nIndependent? Score statistic {test.statistic:,.0f} on {test.degrees_of_freedom} "
        f"degrees of freedom, p {'< 1e-300' if test.p_value == 0 else f'= {test.p_value:.2g}'}; "
        f"Cramér's V {effect.estimate:.2f} [{effect.low:.2f}, {effect.high:.2f}]."
    )


def learn_unknown() -> None:
    """Strings that nobody listed: each client sends one number of a byte about a prefix."""
    survey = Survey.load(Path(__file__).with_name("unknown.toml"))
    rng = np.random.default_rng(2017)
    domains = Population(top_domains(), exponential(100, 25.0))
    reports = simulate(survey, domains.draw(UNKNOWN_CROWD, rng), rng=rng)
    start = time.perf_counter()
    found = discover(survey, reports, "homepage")
    print(
        f"\nUnknown strings: {UNKNOWN_CROWD:,} clients send {survey.body_size} bytes each at "
        f"ε = {survey.loss.once:.2f}; nobody lists any candidate.\n"
        f"{len(found.strings)} of {len(domains)} home pages found in "
        f"{time.perf_counter() - start:.0f} s, "
        f"{sum(s not in domains.values for s in found.strings)} false:"
    )
    for string, estimate, low, high in zip(
        found.strings[:12], found.estimate, found.low, found.high, strict=False
    ):
        print(
            f"  {string:22} {100 * estimate:5.2f}%  [{100 * low:.2f}, {100 * high:.2f}]"
            f"  true {100 * domains.share(string):.2f}%"
        )
    print(f"  … and {max(len(found.strings) - 12, 0)} more")


def show(survey: Survey, name: str, counts: BitCounts) -> None:
    """Counts of each bit, and the unbiased estimate (count/N − p*)/(q* − p*)."""
    mechanism = survey.question(name).protocol.mechanisms[0]
    p, q = float(mechanism.noise.p_star), float(mechanism.noise.q_star)
    options = getattr(mechanism, "options", ("yes",))
    for option, count in zip(options, counts.ones.sum(axis=0), strict=True):
        rate = count / counts.reports
        estimate = (rate - p) / (q - p)
        sd = (rate * (1 - rate) / counts.reports) ** 0.5 / abs(q - p)
        label = f"{name} {option}"
        print(f"  {label:20} {count:9,} ones  ->  {100 * estimate:5.2f}% ± {196 * sd:.2f}")


if __name__ == "__main__":
    main()
