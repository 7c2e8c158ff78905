"""Measure the browser client: python -m benchmarks.browser

Measures the first answer of a client, from the bytes of the survey to those of the report, in new
browser profiles (which create the database, the secret and a synced ledger) and in new node
processes (which keep everything in memory); then each of 50 further answers. Loading the module
from this machine is reported separately. Times are wall-clock times: the median of 9 and the
minimum, since other programs may run on the machine.
"""

from __future__ import annotations

import json
import os
import shutil
import statistics
import subprocess
import sys
import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from deniable.survey import Survey

ROOT = Path(__file__).parents[1]
TIMES = 9
HEAD = 'name = "bench"\nversion = 1\nowner = "b"\ndescription = "b"\nexpires = 2999-12-31\n'
CASES = {
    "128 bits, h=2, p=.25, q=.75, f=0": 'collect = "once"\nbudget = 1e6\n[questions.page]\n'
    'kind = "string"\nhashes = 2\np = 0.25\nq = 0.75\n',
    "128 bits, any f (epsilon=4.39 in total)": 'collect = "repeatedly"\n[questions.page]\n'
    'kind = "string"\nepsilon = 4.39\n',
    "n-grams: three slots of 128 bits": 'collect = "once"\nbudget = 1e6\n[questions.page]\n'
    'kind = "string"\nhashes = 2\np = 0.25\nq = 0.75\n[questions.page.dictionary]\n'
    'protocol = "ngrams"\nmax_length = 20\nalphabet = "a-z0-9._-"\n',
}
# Milliseconds of loading the module, of the first answer, and of each of 50 more.
MEASURE = """async ([root, published, digest, memory]) => {
  const start = performance.now();
  const { openClient, readSurvey } = await import(root + "/deniable.js");
  const loaded = performance.now();
  const { memoryStore } = await import(root + "/outside.js");
  const began = performance.now();
  const survey = await readSurvey(new TextEncoder().encode(published), digest);
  const store = memory ? memoryStore() : undefined, limits = { epsilon: Infinity };
  const client = await openClient(survey, { store, limits });
  await client.answer({ page: "example.com" });
  const first = performance.now();
  for (let i = 0; i < 50; i++) await client.answer({ page: "example.com" });
  return [loaded - start, first - began, (performance.now() - first) / 50];
}"""


class Quiet(SimpleHTTPRequestHandler):
    """Serves files without a log."""

    def log_message(self, *args: Any) -> None:
        """Print nothing."""


def in_node(survey: Survey) -> list[float]:
    """Return the times of `MEASURE` in a new node process."""
    root = (ROOT / "clients" / "js").as_uri()
    arguments = json.dumps([root, survey.canonical.decode(), survey.digest.hex(), True])
    script = f"""globalThis.crypto ??= (await import("node:crypto")).webcrypto;
        const run = {MEASURE};
        console.log(JSON.stringify(await run({arguments})));"""
    command = ["node", "--input-type=module", "--eval", script]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    times: list[float] = json.loads(done.stdout)
    return times


def in_chromium(browser: Any, address: str, survey: Survey, memory: bool) -> list[float]:
    """Return the times of `MEASURE` in a new profile of Chromium."""
    context = browser.new_context()
    page = context.new_page()
    page.goto(f"{address}/examples/site/survey.json")
    arguments = [f"{address}/clients/js", survey.canonical.decode(), survey.digest.hex(), memory]
    times: list[float] = page.evaluate(MEASURE, arguments)
    context.close()
    return times


def show(what: str, runs: list[list[float]]) -> None:
    """Print the median and the minimum of each time."""
    columns = [f"{statistics.median(c):7.1f} ({min(c):.1f})" for c in zip(*runs, strict=True)]
    print(f"  {what:28}" + "".join(f"{column:>18}" for column in columns))


def main() -> None:
    """Print one table per survey."""
    chromium = shutil.which("chromium")
    if shutil.which("node") is None or chromium is None:
        sys.exit("node or chromium is missing: bash .ci/setup installs them")
    from playwright.sync_api import sync_playwright

    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(ROOT)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    address = f"http://127.0.0.1:{server.server_port}"
    print(f"milliseconds, median (least); load average {os.getloadavg()[0]:.1f}")
    print(f"{'load the module':>48}{'first answer':>18}{'each further':>18}")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        for name, toml in CASES.items():
            survey = Survey.from_toml(HEAD + toml)
            print(name)
            show("node, in memory", [in_node(survey) for _ in range(TIMES)])
            for what in ("Chromium, in memory", "Chromium, IndexedDB synced"):
                memory = "memory" in what
                show(what, [in_chromium(browser, address, survey, memory) for _ in range(TIMES)])
        browser.close()
    server.shutdown()


if __name__ == "__main__":
    main()
