"""From people's answers to an estimate: real clients, a real collector, a real store."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from deniable import decode
from deniable import store as stores
from deniable.client import Client, Outbox, Sender, fetch_survey
from deniable.survey import Survey
from tests.faults.server import Server
from tests.gateway import TOKEN
from tests.surveys import make_survey

SURVEY = make_survey(
    """
[questions.colour]
kind = "choice"
options = ["red", "green", "blue"]
p = 0.01
q = 0.99
[questions.dark]
kind = "boolean"
p = 0.01
q = 0.99
""",
    name="colours",
)
DEVICES, FLEET = 12, 612


def answer_of(person: int) -> dict[str, str | bool]:
    """Half say red, a third green, a sixth blue; a quarter say yes."""
    colour = ("red", "red", "red", "green", "green", "blue")[person % 6]
    return {"colour": colour, "dark": person % 4 == 0}


def test_python_clients_to_a_collector_to_an_estimate(tmp_path: Path) -> None:
    server = Server(tmp_path)
    SURVEY.publish(server.survey)
    with server:
        url = f"http://127.0.0.1:{server.port}"
        survey = fetch_survey(f"{url}/v1/surveys/colours", digest=SURVEY.digest)
        homes = [tmp_path / f"device{n}" for n in range(DEVICES)]
        for person, home in enumerate(homes):
            Client.open(survey, home).answer_and_queue(answer_of(person))
        for home in homes[: DEVICES // 2]:
            shutil.copy(home / "outbox-colours.db", home / "before.db")
            assert Client.open(survey, home).send(url).accepted == 1
        server.kill()
        for home in homes[DEVICES // 2 :]:
            assert Client.open(survey, home).send(url).waiting == 1, "nobody is there"
        server.start()
        for home in homes[: DEVICES // 2]:  # the collector had it, the device does not know
            assert Sender(Outbox(home / "before.db"), url).send(now=True).accepted == 1
        for home in homes[DEVICES // 2 :]:
            outbox = Outbox(home / "outbox-colours.db")
            assert Sender(outbox, url).send(now=True).accepted == 1
        gateway = Outbox(tmp_path / "gateway.db")
        fleet = range(DEVICES, DEVICES + FLEET)
        gateway.put(
            *(Client(survey, secret=n.to_bytes(32, "big")).answer(answer_of(n)) for n in fleet)
        )
        assert Sender(gateway, url, token=TOKEN, batch=100).send().accepted == FLEET
        unpublished = Survey.from_json(SURVEY.canonical.replace(b'"version":1', b'"version":2'))
        stranger = Client.open(unpublished, tmp_path / "stranger")
        stranger.answer_and_queue({})
        sent = stranger.send(url)
        assert (sent.refused, sent.waiting) == (1, 0)
        assert sent.problem is not None
        assert sent.problem.startswith("refused permanently: 404 Not Found: ")
        server.stop()
    reports = list(stores.open(server.url).scan(survey))
    assert sum(map(len, reports)) == DEVICES + FLEET, "each once"
    # Standard error of a share: sqrt(.01 · .99 / 624) / .98 = 0.0041. Four of them beyond five
    # standard errors by chance: once in 400,000.
    for question, shares in (("colour", [1 / 2, 1 / 3, 1 / 6]), ("dark", [1 / 4])):
        found = decode(survey, reports, question)
        assert found.estimate == pytest.approx(shares, abs=0.0205), found
