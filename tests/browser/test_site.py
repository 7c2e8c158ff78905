"""The example site in Chromium: what it shows is what the collector gets, once for each person."""

from __future__ import annotations

from typing import Any

from tools.run_docs import blocks_of

from deniable.survey import Survey, from_bytes
from tests.browser.servers import collecting
from tests.browser.tools import ROOT

PUBLISHED = ROOT / "examples" / "site" / "survey.json"


def test_the_published_survey_is_that_of_the_example() -> None:
    """`deniable check examples/survey.toml -o examples/site/survey.json` writes it."""
    assert Survey.load(PUBLISHED) == Survey.load(ROOT / "examples" / "survey.toml")


def answer(page: Any, site: str, collector: str) -> None:
    page.goto(f"{site}/examples/site/")
    page.fill("[name=homepage]", "example.com")
    page.select_option("[name=browser]", "Firefox")
    page.fill("#collector", collector)
    page.click("#show")


def test_a_person_answers_once(context: Any, site: str) -> None:
    survey = Survey.load(PUBLISHED)
    page, complaints = context.new_page(), []
    page.on("console", lambda message: complaints.append(message.text))
    page.on("pageerror", lambda error: complaints.append(str(error)))
    with collecting(survey) as collector:
        answer(page, site, collector.address)
        page.wait_for_selector("#send:enabled")
        assert collector.kept == {}  # nothing leaves before it is sent
        shown = bytes.fromhex(page.text_content("#report"))
        page.click("#send")
        page.wait_for_selector("#status:text('Thank you')")
        assert list(collector.kept.values()) == [shown]
        assert bytes(from_bytes(shown, survey)) == shown
        answer(page, site, collector.address)
        page.wait_for_selector("#status:text('already')")
        assert len(collector.seen) == 1
    assert [text for text in complaints if "favicon" not in text and "404" not in text] == []


def test_the_documented_example_runs(context: Any, site: str) -> None:
    survey = Survey.load(PUBLISHED)
    page_text = (ROOT / "docs" / "how-to" / "browser.md").read_text()
    example = next(b.code for b in blocks_of(page_text) if b.language == "js")
    page = context.new_page()
    page.goto(f"{site}/examples/site/survey.json")
    with collecting(survey) as collector:
        replaced = example.replace("./deniable.js", f"{site}/clients/js/deniable.js")
        replaced = replaced.replace("https://collector.example", collector.address)
        page.add_script_tag(
            type="module", content=f"{replaced}\nwindow.tally = {{ sent, waiting }};"
        )
        assert page.wait_for_function("window.tally").json_value() == {"sent": 1, "waiting": 0}
