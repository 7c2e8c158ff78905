"""The served pages in Chromium: what clients sent never runs, and everybody can use them.

With PICTURES=folder the pages are drawn there, at two widths, light and dark.
"""

from __future__ import annotations

import json
import os
import secrets
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from deniable import associate, decode, simulate
from deniable.collector import keys
from deniable.collector.api.routes import CONTENT_SECURITY_POLICY
from deniable.columns.batch import to_wire
from deniable.render.html import report
from deniable.results import Trend
from tests import gateway
from tests.browser.tools import MODULE
from tests.faults.server import Server
from tests.results.samples import discovery
from tests.surveys import make_survey

HERE = Path(__file__).parent
HOSTILE = ("<script>hit()</script>", '"><img src=x onerror=hit()>', "</svg><svg onload=hit()>")
OPTIONS = ("firefox", "<img src=x onerror=hit()>", "lynx")
SURVEY = make_survey(
    """
[questions.page]
kind = "string"
epsilon = 4.0
[questions.browser]
kind = "choice"
options = ["firefox", "<img src=x onerror=hit()>", "lynx"]
epsilon = 3.0
[questions.word]
kind = "string"
mechanism = "localhash"
epsilon = 4.0
[questions.word.dictionary]
protocol = "prefixes"
max_length = 6
alphabet = "a-z<>/"
""",
    name="pages",
    description="<script>hit()</script> what people use",
)


BATCHES = ("--compact", "1", "--at-least", "1")
"""Settings with which analysts see reports within a second."""


class Collector(Server):
    """A collector of these surveys, and an analyst's token."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder, "--keys", str(folder / "keys.json"), "--log", "0", *BATCHES)
        self.token = keys.add(folder / "keys.json", "ann", "analyst")
        SURVEY.publish(self.survey)
        self.address = f"http://127.0.0.1:{self.port}"

    def send(self, people: int, seed: int) -> None:
        """Half say the first hostile string, a quarter each of the others; browsers follow."""
        rng = np.random.default_rng(seed)
        which = rng.choice(3, people, p=[0.5, 0.25, 0.25])
        answers = {
            "page": [HOSTILE[i] for i in which], "browser": [OPTIONS[i] for i in which],
            "word": [("<b>", "otter", "lynx")[i] for i in which],
        }  # fmt: skip
        sent = simulate(SURVEY, answers, rng=rng)
        # Two uploads, because one alone is never shuffled.
        for part in (sent.select(slice(0, people // 2)), sent.select(slice(people // 2, people))):
            headers = {"Content-Type": "application/octet-stream", **gateway.HEADERS}
            headers["Idempotency-Key"] = secrets.token_hex(16)
            address = self.address + "/v1/reports"
            request = urllib.request.Request(address, to_wire(part), headers)
            with urllib.request.urlopen(request, timeout=30) as answer:
                assert answer.status == 202


@pytest.fixture(scope="module")
def collector(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Collector]:
    made = Collector(tmp_path_factory.mktemp("pages"))
    with made:
        made.send(5000, 1)
        yield made


@pytest.fixture
def running() -> Iterator[ExitStack]:
    """Collectors entered here run until the page has ended, since pages ask again and again."""
    with ExitStack() as stack:
        yield stack


@pytest.fixture
def page(context: Any, running: ExitStack) -> Iterator[Any]:
    """A page that must not complain, run what it was not told to, or ask anybody else."""
    page, complaints, asked = context.new_page(), [], []
    page.on("console", lambda message: complaints.append(message.text))
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("request", lambda request: asked.append(request.url))
    page.add_init_script("window.hits = 0; window.hit = () => { window.hits += 1; };")
    page.asked, page.expected = asked, "nothing"
    yield page
    assert page.evaluate("window.hits") == 0
    assert [text for text in complaints if page.expected not in text] == []
    assert all(url.startswith(("http://127.0.0.1:", "blob:", "file:")) for url in asked)


def look_at(page: Any, name: str) -> None:
    """Labels, contrast and width are right at both widths, light and dark; perhaps draw it."""
    folder = os.environ.get("PICTURES")
    for width in (400, 1200):
        for scheme in ("light", "dark"):
            page.set_viewport_size({"width": width, "height": 900})
            page.emulate_media(color_scheme=scheme)
            found = page.evaluate((HERE / "accessible.js").read_text())
            assert found == {"unnamed": [], "faint": [], "wide": [], "small": []}, (width, scheme)
            if folder:
                path = Path(folder) / f"{name}-{width}-{scheme}.png"
                page.screenshot(path=path, full_page=True)


def enter(page: Any, collector: Collector) -> None:
    page.goto(collector.address + "/")
    page.fill("#token", collector.token)
    page.keyboard.press("Enter")
    page.wait_for_selector("#inside:visible")


# --- try it ---------------------------------------------------------------------------------------


def cells(page: Any) -> list[list[bool]]:
    """The three rows of bits as they are drawn."""
    found = page.eval_on_selector_all(
        "#bits .wide rect", "all => all.map((r) => r.classList.contains('set'))"
    )
    return [found[i : i + 32] for i in (0, 32, 64)]


def test_anybody_can_try_it(page: Any, collector: Collector) -> None:
    page.goto(collector.address + "/try")
    page.wait_for_selector("#sharpen svg")
    bloom, permanent, _ = cells(page)
    assert 1 <= sum(bloom) <= 2
    page.click("[data-more='1000']")
    page.wait_for_selector("#seen:text('1,001 reports')")
    assert cells(page)[:2] == [bloom, permanent], "permanent noise is drawn once"
    # 1,001 reports of bits sent as 1 in 3/4 or 1/2 of them: each share strays by 0.1 with
    # probability 2e-11 at the most.
    shares = page.get_attribute("#many svg", "aria-label").split(": ")[1].split(", ")
    for share, kept in zip(shares, permanent, strict=True):
        assert abs(int(share.rstrip("%")) / 100 - (0.75 if kept else 0.5)) < 0.105
    page.fill("#value", HOSTILE[0])
    page.wait_for_selector("#seen:text('After 1 report')")
    assert "20.0%" in page.get_attribute("#sharpen svg", "aria-label")
    estimates = page.eval_on_selector_all(
        "#sharpen .wide title", "all => all.map((t) => t.textContent)"
    )
    assert len(estimates) == 9 and estimates[-1].startswith("1,000,000 clients: ")
    # The noise of a million reports is 0.4% for the paper's parameters: five of that, 6e-7.
    assert abs(float(estimates[-1].split(": ")[1].split("%")[0]) - 20) < 2.5
    page.focus("#share")
    page.keyboard.press("ArrowRight")
    page.wait_for_selector("#shown:text('21%')")
    look_at(page, "try")
    files = {url.rpartition("/")[2] for url in page.asked}
    assert "deniable.js" in files
    assert not any("v1" in url or "?" in url for url in page.asked), "nothing leaves"


# --- the analyst's page ---------------------------------------------------------------------------


def test_nothing_is_shown_without_a_token(page: Any, collector: Collector) -> None:
    page.expected = "401"
    page.goto(collector.address + "/")
    page.fill("#token", "dn_00000000_" + "A" * 43)
    page.click("text=Enter")
    page.wait_for_selector("#trouble:not(:empty)")
    assert page.is_hidden("#inside")
    assert page.evaluate("sessionStorage.length") == 0
    look_at(page, "enter")
    page.fill("#token", collector.token)
    page.keyboard.press("Enter")
    page.wait_for_selector("#inside:visible")
    page.click("#leave")
    assert page.is_visible("#enter")
    assert page.evaluate("[sessionStorage.length, localStorage.length, document.cookie]") == [
        0, 0, "",
    ]  # fmt: skip
    assert collector.token not in "".join(page.asked)


def test_an_analyst_asks_and_hostile_answers_stay_text(page: Any, collector: Collector) -> None:
    enter(page, collector)
    page.wait_for_selector(".count:text('5,000 reports')")
    assert "<script>hit()</script> what people use" in page.inner_text("#surveys")
    assert "ε = 4.00" in page.inner_text("#surveys")
    collector.send(3000, 2)
    page.wait_for_selector(".count:text('8,000 reports')")

    page.select_option("#verb", "discover")
    assert page.locator("#questions input").count() == 1
    page.click("#start")
    page.click("#jobs [data-state=running] button:text('Cancel')")
    page.wait_for_selector("#jobs [data-state=cancelled]")

    page.select_option("#verb", "associate")
    page.uncheck("#questions input[value=word]")
    page.check("#questions input[value=page]")
    page.check("#questions input[value=browser]")
    page.fill("#candidates textarea", "\n".join(HOSTILE))
    page.click("#start")
    page.wait_for_selector("#jobs progress")
    page.wait_for_selector("#result section")
    assert "The questions are associated" in page.inner_text("#result")
    marks = page.eval_on_selector_all("#result .mark title", "all => all.map((t) => t.textContent)")
    for text in (*HOSTILE, OPTIONS[1]):
        assert any(text in mark for mark in marks), text
    page.click("#result summary >> nth=0")
    look_at(page, "analyst")
    for form in ("json", "csv", "html", "svg"):
        with page.expect_download() as started:
            page.click(f"#jobs [data-state=done] button:text-is('Download {form.upper()}')")
        assert started.value.suggested_filename == f"associate-page-browser.{form}"
        text = Path(started.value.path()).read_text()
        assert json.loads(text)["reports"] == 8000 if form == "json" else "firefox" in text


def test_a_survey_for_testing_is_marked(page: Any, running: ExitStack, tmp_path: Path) -> None:
    made = Collector(tmp_path)
    SURVEY.for_testing().publish(made.survey)
    running.enter_context(made)
    enter(page, made)
    page.get_by_text("Test data: this survey was published for testing.").wait_for()
    look_at(page, "testing")
    assert "survey pages v1 is FOR TESTING" in made.log.read_text()


def ended(page: Any, count: int) -> None:
    """Wait until this many analyses have ended."""
    page.wait_for_function(
        "(count) => document.querySelectorAll('#jobs [data-state]').length >= count"
        " && !document.querySelector('#jobs [data-state=running]')",
        arg=count,
    )


def test_trends_subgroups_and_links(page: Any, running: ExitStack, tmp_path: Path) -> None:
    """From a collector without reports to a link that shows the same result in another tab."""
    collector = Collector(tmp_path)
    running.enter_context(collector)
    enter(page, collector)
    page.wait_for_selector("text=Nothing has arrived yet")
    page.wait_for_selector("#jobs >> text=No analyses yet")
    page.wait_for_selector("#result >> text=Results are shown here")
    look_at(page, "empty")
    # Candidates are required, in the form and by the collector.
    page.expected = "400"
    page.click("#start")
    assert page.evaluate("document.querySelector('#candidates textarea').validity.valueMissing")
    page.fill("#candidates textarea", "\n")
    page.click("#start")
    page.wait_for_selector("#refused:text('needs candidates: list at least one')")
    page.check("#questions input[value=browser]")
    page.wait_for_selector("#refused", state="hidden")
    page.click("#start")
    page.wait_for_selector("#jobs [data-state=failed]")
    failure = page.inner_text("#jobs")
    assert "There are no reports of survey pages version 1 yet" in failure
    assert "<Survey" not in failure and str(tmp_path) not in failure
    look_at(page, "failed")

    collector.send(6000, 3)
    page.wait_for_selector(".count:text('6,000 reports')")
    page.select_option("#by", "day")
    page.click("#start")
    page.wait_for_selector("#result polyline", state="attached")
    look_at(page, "trend")
    page.select_option("#by", "")
    page.select_option("#condition", "word")
    page.fill("#answer", "otter")
    page.check("#questions input[value=browser]")
    page.click("#start")
    ended(page, 3)
    page.wait_for_selector("#jobs h3:text('decode browser where word = otter')")
    page.wait_for_selector("#result polyline", state="detached")
    page.wait_for_selector("#result section")
    look_at(page, "subgroup")

    # The address of a result shows it after a reload, after signing in, and after going back.
    link, text = page.url, page.inner_text("#result h2")
    assert "#job-" in link and page.get_attribute("#result > p a", "href") in link
    page.reload()
    page.wait_for_selector(f"#result h2:text({json.dumps(text)})")
    page.click("#leave")
    page.fill("#token", collector.token)
    page.keyboard.press("Enter")
    page.wait_for_selector(f"#result h2:text({json.dumps(text)})")
    page.click("#jobs article:nth-child(2) a:text-is('Show')")
    page.wait_for_selector("#result polyline", state="attached")
    page.go_back()
    page.wait_for_selector(f"#result h2:text({json.dumps(text)})")
    page.click("#jobs article:nth-child(1) button:text-is('Remove')")
    page.wait_for_selector("#result >> text=no longer kept")
    look_at(page, "forgotten")
    page.expected = "Failed to load resource"
    collector.kill()
    page.wait_for_selector("#trouble:text('does not answer')")
    look_at(page, "down")


def test_reports_can_be_read_on_a_phone(page: Any, tmp_path: Path) -> None:
    """Every chart of a saved page has text of at least 11 pixels, and nothing overflows."""
    rng, n = np.random.default_rng(5), 4000
    answers = {"page": ["a"] * n, "browser": [OPTIONS[i] for i in rng.choice(3, n)],
               "word": ["otter"] * n}  # fmt: skip
    reports = simulate(SURVEY, answers, rng=rng)
    results = [
        decode(SURVEY, reports, "browser"),
        decode(SURVEY, reports, "page", ["a", "b" * 200]),
        associate(SURVEY, reports, ["browser", "word"], candidates={"word": ["otter", "lynx"]}),
        discovery("otter"),
        discovery(),
    ]
    trend = Trend("day", ("2026-03-01", "2026-03-02"), (results[0], results[0]))
    file = tmp_path / "report.html"
    file.write_text(report([*results, trend], survey=SURVEY))
    page.goto(file.as_uri())
    look_at(page, "report")
    assert page.locator("svg:visible").count() == 7


def test_only_what_a_section_is_made_of_is_copied(page: Any, collector: Collector) -> None:
    """Should the collector ever fail to escape, the page still has a lock of its own."""
    page.expected = "Content Security Policy"  # and a third, which speaks up
    page.goto(collector.address + "/")
    copied = """async (text) => {
      const { nodes } = await import("/static/sections.js");
      const place = document.createElement("div");
      place.append(...nodes(text));
      document.body.append(place);
      return place.innerHTML;
    }"""
    raw = "<section>%s<p style='color:red' onclick='hit()'>x</p><a href='javascript:hit()'>y</a>"
    assert (
        page.evaluate(copied, raw % "".join(HOSTILE))
        == '<section>"&gt;<svg></svg><p>x</p></section>'
    )
    good = (
        '<section><svg viewBox="0 0 1 1" role="img" aria-label="a"><g class="mark" tabindex="0">'
        "<title>t</title></g></svg></section>"
    )
    assert page.evaluate(copied, good) == good


def test_every_file_has_the_policy_and_the_client_is_the_one(collector: Collector) -> None:
    for path in ("/", "/try", "/static/try.js", "/static/style.css"):
        with urllib.request.urlopen(collector.address + path, timeout=10) as answer:
            assert answer.headers["content-security-policy"] == CONTENT_SECURITY_POLICY
            assert answer.headers["x-content-type-options"] == "nosniff"
    assert "unsafe" not in CONTENT_SECURITY_POLICY
    assert collector.get("/static/deniable.js") == (200, MODULE.read_bytes())
    assert collector.get("/static/..%2Fsections.py")[0] == 404
    assert collector.get("/static/analyst.html")[0] == 404
