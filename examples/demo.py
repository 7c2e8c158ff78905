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
from deniable.client import new_secret
from deniable.collector import keys
from deniable.columns import to_wire
from deniable.planning.in_words import epsilon_meaning
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
LOYAL = 0.3  # share of Safari users whose home page is apple.com
DOMAINS = Population(top_domains(), exponential(100, 25.0))


def main() -> None:
    """Run the whole demonstration."""
    survey = Survey.load(SURVEY)
    print(f"Survey {survey.name}, version {survey.version}: {survey.description}\n")
    show_devices(survey)
    print(f"\nSimulating {CROWD:,} clients; the first run compiles its inner loops …", flush=True)
    crowd, truth = people(np.random.default_rng(2016))
    batch = simulate(survey, crowd, rng=np.random.default_rng(2017))
    print(
        f"A simulated crowd of {CROWD:,} clients answers. 50% use Firefox, 30% Chromium, 20% "
        "Safari; 40% block\nads, most of them with Firefox; they have 100 home pages, which the "
        "server does not know."
    )
    with tempfile.TemporaryDirectory() as folder, collector(Path(folder)) as served:
        port, token, store_url = served
        collect(batch, port, token, store_url)
        results = analyse(survey, store_url, truth)
    write(survey, results, truth)
    print(f"\n{epsilon_meaning(survey.loss.per_report, 'Each report')}")
    print(
        f"\nOpen {OUT / 'report.html'} in a browser to see these results; {OUT}/*.png are plots.\n"
        "Next: read docs/tutorial.md, or run `deniable init` to write your first survey."
    )


def show_devices(survey: Survey) -> None:
    """Print the reports of three real clients."""
    print("What each client sends (Cyd did not answer, which nobody can tell from the report):")
    for name, answers in PEOPLE:
        sent = Client(survey, secret=new_secret()).answer(answers)
        print(f"  {name}: {bytes(sent)[20:].hex(' ')}")


def people(rng: np.random.Generator) -> tuple[dict[str, list[object]], dict[str, dict[str, float]]]:
    """Return the answers of the crowd, and the true share of each value."""
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
def collector(folder: Path) -> Iterator[tuple[int, str, str]]:
    """Run `deniable serve` in a process; yield its port, a gateway key and the URL of its store."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    store_url = f"sqlite:///{folder / 'reports.db'}"
    file = folder / "keys.json"
    token = keys.add(file, "demo", "gateway")  # only a gateway may send many reports in one upload
    command = [
        sys.executable, "-m", "deniable", "serve",
        str(SURVEY), "--store", store_url, "--port", str(port), "--keys", str(file), "--log", "0",
    ]  # fmt: skip
    process = subprocess.Popen(command, stderr=subprocess.DEVNULL)
    try:
        while process.poll() is None:
            try:
                socket.create_connection(("127.0.0.1", port)).close()
                break
            except OSError:
                time.sleep(0.05)
        yield port, token, store_url
    finally:
        process.terminate()
        process.wait()


def collect(batch: ReportBatch, port: int, token: str, store_url: str) -> None:
    """Upload the reports in batches, one of them twice; then shuffle them."""
    start = time.perf_counter()
    connection = http.client.HTTPConnection("127.0.0.1", port)
    for first in range(0, len(batch), UPLOAD):
        body = to_wire(batch.select(slice(first, first + UPLOAD)))
        headers = {
            "Content-Type": "application/octet-stream", "Idempotency-Key": secrets.token_hex(16),
            "Authorization": f"Bearer {token}",
        }  # fmt: skip
        for _ in range(2 if first == 0 else 1):
            connection.request("POST", "/v1/reports", body, headers)
            answer = connection.getresponse()
            assert (answer.status, answer.read()) == (202, b'{"accepted": %d}' % UPLOAD)
    connection.close()
    uploaded = time.perf_counter()
    with store.open(store_url) as opened:
        compacted = opened.compact()
    seconds = uploaded - start, time.perf_counter() - uploaded
    print(
        f"Uploaded to a collector on SQLite in {len(batch) // UPLOAD} batches, one of them twice, "
        f"in {seconds[0]:.1f} s.\nEach batch was written to disk before it was acknowledged, and "
        f"counted once. Compacted in {seconds[1]:.1f} s:\n{compacted.reports:,} reports are "
        "shuffled; nothing shows which of them were uploaded together."
    )


def analyse(
    survey: Survey, store_url: str, truth: dict[str, dict[str, float]]
) -> dict[str, Marginal | Joint | Discovery]:
    """Analyse the reports in the store and print the results."""
    browser, blocker = (decode(survey, store_url, name) for name in ("browser", "ad_blocker"))
    print("\nEstimates, with 95% confidence intervals:")
    for marginal in (browser, blocker):
        for i, label in enumerate(marginal.names):
            numbers = (marginal.estimate[i], marginal.low[i], marginal.high[i])
            print_estimate(label, *numbers, truth[marginal.question])

    joint = associate(survey, store_url, ["browser", "ad_blocker"])
    print(f"\n{joint}\n\n{joint.test()}\n{joint.cramers_v()}")

    start = time.perf_counter()
    pages = discover(survey, store_url, "homepage")
    false = sum(s not in truth["homepage"] for s in pages.strings)
    print(
        f"\nNobody listed home pages. {len(pages.strings)} of {len(truth['homepage'])} were "
        f"discovered in {time.perf_counter() - start:.0f} s, {false} of them false:"
    )
    for i, text in enumerate(pages.strings[:12]):
        print_estimate(text, pages.estimate[i], pages.low[i], pages.high[i], truth["homepage"])
    print(f"  … and {max(len(pages.strings) - 12, 0)} more")

    both = associate(
        survey, store_url, ["homepage", "browser"], candidates={"homepage": pages}, top=6
    )
    cell = {name: 100 * value for name, value in both.cell("apple.com", "Safari").items()}
    print(
        f"\n{both.test()}\n{both.cramers_v()}\n"
        f"Safari and apple.com: {cell['table']:.1f}% of clients "
        f"[{cell['low']:.1f}, {cell['high']:.1f}]."
    )
    return {
        "browser": browser, "ad_blocker": blocker, "browser-ad_blocker": joint, "homepage": pages,
        "homepage-browser": both,
    }  # fmt: skip


def print_estimate(
    label: str, estimate: float, low: float, high: float, truth: dict[str, float]
) -> None:
    """Print an estimate with its interval and the true share."""
    shares = [100 * x for x in (estimate, low, high, truth.get(label, 0.0))]
    print("  {:22} {:6.2f}%  [{:.2f}, {:.2f}]  true {:.2f}%".format(label, *shares))


def write(
    survey: Survey,
    results: dict[str, Marginal | Joint | Discovery],
    truth: dict[str, dict[str, float]],
) -> None:
    """Write the page, the plots and the data."""
    OUT.mkdir(exist_ok=True)
    page = report(list(results.values()), survey=survey, truth=truth)
    (OUT / "report.html").write_text(page, encoding="utf-8")
    for name, result in results.items():
        result.save(OUT / f"{name}.json")
        axes = result.plot() if isinstance(result, Joint) else result.plot(truth=truth[name])
        axes.figure.savefig(OUT / f"{name}.png", dpi=120)  # type: ignore[union-attr]


if __name__ == "__main__":
    main()
