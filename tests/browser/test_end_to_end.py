"""Pages and Python clients answer the same survey; the collector's store decodes to both."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from deniable import decode
from deniable import store as stores
from deniable.client import Client
from deniable.columns.batch import to_wire
from deniable.survey import Survey
from tests.browser.conftest import run_in_page
from tests.browser.test_site import PUBLISHED, answer
from tests.faults.server import Server
from tests.surveys import make_survey

SURVEY = make_survey(
    """
[questions.colour]
kind = "choice"
options = ["red", "green", "blue"]
p = 0.01
q = 0.99
""",
    name="colours",
)
PEOPLE = 40


def test_pages_and_python_clients_to_one_estimate(
    new_page: Any, context: Any, site: str, tmp_path: Path
) -> None:
    server = Server(tmp_path, str(PUBLISHED))
    SURVEY.publish(server.survey)
    with server:
        url = f"http://127.0.0.1:{server.port}"
        survey_url = f"{url}/v1/surveys/colours"
        arguments = {
            "address": {"collector": url, "survey": survey_url}, "digest": SURVEY.digest.hex(),
            "values": {"colour": "green"}, "people": PEOPLE,
        }  # fmt: skip
        assert run_in_page(new_page(), "people.js", arguments) == PEOPLE
        for person in range(PEOPLE):
            client = Client.open(SURVEY, tmp_path / f"person{person}")
            client.answer_and_queue({"colour": "red"})
            assert client.send(url).accepted == 1
        page = context.new_page()
        answer(page, site, url)
        page.click("#send")
        page.wait_for_selector("#status:text('Thank you')")
        shown = bytes.fromhex(page.text_content("#report"))
        server.stop()
    store = stores.open(server.url)
    reports = list(store.scan(SURVEY))
    assert sum(map(len, reports)) == 2 * PEOPLE
    # Standard error of a share: sqrt(.01 · .99 / 80) / .98 = 0.0113; three shares beyond five of
    # them by chance: once in 600,000.
    found = decode(SURVEY, reports, "colour")
    assert found.estimate == pytest.approx([0.5, 0.5, 0.0], abs=0.057), found
    (kept,) = store.scan(Survey.load(PUBLISHED))
    assert to_wire(kept)[24:] == shown[20:]
