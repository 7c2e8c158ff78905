"""make demo: a crowd answers a survey over HTTP; what leaves each device, and what is learnt."""

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

from deniable import Client, ReportBatch, Survey, associate, decode, discover, simulate, store
from deniable.cli.check_command import epsilon_meaning
from deniable.client import new_secret
from deniable.columns import to_wire
from deniable.render.html import report
from deniable.results import Discovery, Joint, Marginal
from deniable.simulation import Population, contingency, exponential, top_domains

PEOPLE = [
    ("Ada", {"homepage": "example.com", "browser": "Firefox", "ad_blocker": True}),
    ("Bob", {"homepage": "example.org", "browser": "Safari", "ad_blocker": False}),
    ("Cyd", {}),
]
SURVEY = Path(__file__).with_name("survey.toml")
OUT = Path("demo")
CROWD = 300_000
UPLOAD = 5_000
BROWSERS = ("Firefox", "Chromium", "Safari")
TABLE = [[0.30, 0.20], [0.05, 0.25], [0.05, 0.15]]  # browser × ad blocker
LOYAL = 0.3  # of those with Safari start at apple.com
DOMAINS = Population(top_domains(), exponential(100, 25.0))


def main() -> None:
    survey = Survey.load(SURVEY)
    print(f"{survey!r}: {survey.description}\n")
    show_devices(survey)
    crowd, truth = people(np.random.default_rng(2016))
    batch = simulate(survey, crowd, rng=np.random.default_rng(2017))
    print(
        f"\nA crowd of {CROWD:,} answers: 50% use Firefox, 30% Chromium, 20% Safari; 40% block "
        "ads,\nmost of them with Firefox; 100 home pages, which nobody tells the server."
    )
    with tempfile.TemporaryDirectory() as folder, collector(Path(folder)) as (port, kept):
        collect(batch, port, kept)
        results = learn(survey, kept, truth)
    write(survey, results, truth)
    print(f"\n{epsilon_meaning(survey.loss.per_report, 'Each report')}")
    print(
        f"\nLook at {OUT / 'report.html'} in a browser; {OUT / 'homepage.png'} and its neighbours "
        "are pictures of the same.\nNext: docs/tutorial.md, or `deniable init` for a survey of "
        "your own."
    )


def show_devices(survey: Survey) -> None:
    """What three real clients send."""
    print("What leaves each device (Cyd did not answer; nobody can tell):")
    for name, answers in PEOPLE:
        sent = Client(survey, secret=new_secret()).answer(answers)
        print(f"  {name}: {bytes(sent)[20:].hex(' ')}")


def people(rng: np.random.Generator) -> tuple[dict[str, list[object]], dict[str, dict[str, float]]]:
    """Everybody's answers, and the true share of each value."""
    table = contingency(TABLE, browser=BROWSERS, ad_blocker=(True, False)).draw(CROWD, rng)
    crowd = {name: [c.levels[i] for i in c.codes] for name, c in table.items()}
    pages = DOMAINS.draw(CROWD, rng)
    homes = [pages.levels[i] for i in pages.codes]
    loyal = rng.random(CROWD) < LOYAL
    crowd["homepage"] = [
        "apple.com" if browser == "Safari" and stays else home
        for browser, stays, home in zip(crowd["browser"], loyal, homes, strict=True)
    ]
    truth = {}
    for name, answers in crowd.items():
        values, counts = np.unique(np.array(answers, object).astype(str), return_counts=True)
        truth[name] = dict(zip(values.tolist(), (counts / CROWD).tolist(), strict=True))
    truth["ad_blocker"] = {"yes": truth["ad_blocker"]["True"]}
    return crowd, truth


@contextmanager
def collector(folder: Path) -> Iterator[tuple[int, str]]:
    """`deniable serve` in a process of its own; yields its port and the URL of its store."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    kept = f"sqlite:///{folder / 'reports.db'}"
    command = [
        sys.executable, "-m", "deniable", "serve",
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


def learn(
    survey: Survey, kept: str, truth: dict[str, dict[str, float]]
) -> dict[str, Marginal | Joint | Discovery]:
    """What the store tells an analyst."""
    browser, blocker = decode(survey, kept, "browser"), decode(survey, kept, "ad_blocker")
    print("\nThe analyst removes the known noise:")
    for found in (browser, blocker):
        for i, label in enumerate(found.labels or ()):
            line(label, found.estimate[i], found.low[i], found.high[i], truth[found.question])

    joint = associate(survey, kept, ["browser", "ad_blocker"])
    print(f"\n{joint}\n\n{independence(joint)}")

    start = time.perf_counter()
    pages = discover(survey, kept, "homepage")
    false = sum(s not in truth["homepage"] for s in pages.strings)
    print(
        f"\nNobody listed any home page: {len(pages.strings)} of {len(truth['homepage'])} found in "
        f"{time.perf_counter() - start:.0f} s, {false} false:"
    )
    for i, text in enumerate(pages.strings[:12]):
        line(text, pages.estimate[i], pages.low[i], pages.high[i], truth["homepage"])
    print(f"  … and {max(len(pages.strings) - 12, 0)} more")

    both = associate(survey, kept, ["homepage", "browser"], candidates={"homepage": pages}, top=6)
    cell = both.cell("apple.com", "Safari")
    print(
        f"\n{independence(both)}\nSafari and apple.com: {100 * cell['table']:.1f}% of all "
        f"[{100 * cell['low']:.1f}, {100 * cell['high']:.1f}]."
    )
    return {
        "browser": browser, "ad_blocker": blocker, "browser-ad_blocker": joint, "homepage": pages,
        "homepage-browser": both,
    }  # fmt: skip


def line(label: str, estimate: float, low: float, high: float, truth: dict[str, float]) -> None:
    shares = [100 * x for x in (estimate, low, high, truth.get(label, 0.0))]
    print("  {:22} {:6.2f}%  [{:.2f}, {:.2f}]  true {:.2f}%".format(label, *shares))


def independence(joint: Joint) -> str:
    """The test of two questions, in a sentence."""
    test, effect = joint.test(), joint.cramers_v()
    return (
        f"Are {' and '.join(joint.questions)} independent? Score statistic {test.statistic:,.0f} "
        f"on {test.degrees_of_freedom} degrees of freedom,\n"
        f"p {'< 1e-300' if test.p_value == 0 else f'= {test.p_value:.2g}'}; Cramér's V "
        f"{effect.estimate:.2f} [{effect.low:.2f}, {effect.high:.2f}]."
    )


def write(
    survey: Survey,
    results: dict[str, Marginal | Joint | Discovery],
    truth: dict[str, dict[str, float]],
) -> None:
    """The page, the pictures and the data."""
    OUT.mkdir(exist_ok=True)
    page = report(list(results.values()), survey=survey, truth=truth)
    (OUT / "report.html").write_text(page, encoding="utf-8")
    for name, result in results.items():
        result.save(OUT / f"{name}.json")
        axes = result.plot() if isinstance(result, Joint) else result.plot(truth=truth[name])
        axes.figure.savefig(OUT / f"{name}.png", dpi=120)  # type: ignore[union-attr]


if __name__ == "__main__":
    main()
