"""The two engines that run the browser client, node and Chromium, behind one call."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.browser import tools
from tests.browser.servers import Site, serving

HERE = Path(__file__).parent
START = """([module, scenario, input]) => {
  const run = async () => (await import(scenario)).default(await import(module), JSON.parse(input));
  window.result = run().then(JSON.stringify);
}"""

Run = Callable[..., Any]


def run_in_node(scenario: str, arguments: Any, module: Path = tools.MODULE) -> Any:
    """What a file of scenarios/ returns. JSON goes both ways, so that any text survives."""
    files = module.as_uri(), (HERE / "scenarios" / scenario).as_uri()
    done = subprocess.run(
        [tools.node(), HERE / "node.mjs", *files],
        input=json.dumps(arguments), capture_output=True, text=True, timeout=240,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def run_in_page(page: Any, scenario: str, arguments: Any) -> Any:
    """The same in a page of the site."""
    start_in_page(page, scenario, arguments)
    return result_in_page(page)


def start_in_page(page: Any, scenario: str, arguments: Any) -> None:
    """Without waiting for its result."""
    paths = ["/clients/js/deniable.js", f"/tests/browser/scenarios/{scenario}"]
    page.evaluate(START, [*paths, json.dumps(arguments)])


def result_in_page(page: Any) -> Any:
    return json.loads(page.evaluate("() => window.result"))


# Playwright's loop must not be running while other tests use asyncio, so it ends with this package.
@pytest.fixture(scope="package")
def browser() -> Iterator[Any]:
    path = tools.chromium()
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        made = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield made
        made.close()


@pytest.fixture(scope="package")
def site() -> Iterator[str]:
    with serving(Site) as address:
        yield address


@pytest.fixture
def context(browser: Any) -> Iterator[Any]:
    """A person's browser profile: its pages share storage, and it begins empty."""
    made = browser.new_context()
    made.set_default_timeout(120_000)
    yield made
    made.close()


@pytest.fixture
def new_page(context: Any, site: str) -> Callable[[], Any]:
    def open_page() -> Any:
        page = context.new_page()
        page.goto(f"{site}/blank")
        return page

    return open_page


@pytest.fixture(params=["node", "chromium"])
def run(request: pytest.FixtureRequest) -> Run:
    """`run(scenario, arguments)` in each engine."""
    if request.param == "node":
        return run_in_node
    page = request.getfixturevalue("new_page")()
    return lambda scenario, arguments: run_in_page(page, scenario, arguments)
