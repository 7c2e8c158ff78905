"""What a Python prompt shows: one short line, without secrets and without arrays."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import numpy as np

import deniable.store
from deniable import Client, Stored, simulate
from deniable.client import Ledger, Outbox, Sender
from deniable.simulation import Coded, Crowd, JointPopulation, Population
from deniable.survey import example_survey

SURVEY = example_survey()
SECRET = bytes(range(200, 232))


def test_a_client_shows_neither_its_secret_nor_what_it_has_spent(tmp_path: Path) -> None:
    for ledger in (None, Ledger(tmp_path / "ledger.json")):
        client = Client(SURVEY, secret=SECRET, ledger=ledger)
        before = repr(client), repr(client.ledger)
        report = client.answer({"dark_mode": True})
        assert (repr(client), repr(client.ledger)) == before, "it must not depend on the ledger"
        shown = repr(client) + repr(client.ledger) + repr(report)
        assert "ledger in" in shown and not any(
            secret in shown for secret in (repr(SECRET), SECRET.hex(), str(SECRET[0]))
        )


def test_addresses_are_shown_without_passwords(tmp_path: Path) -> None:
    stored = Stored("postgresql://ada:hush@db.example/reports?password=hush", date(2026, 11, 16))
    assert repr(stored) == "<Stored postgresql://db.example/reports, since 2026-11-16>"
    sender = Sender(Outbox(tmp_path / "box.db"), "https://collector.example", token="hush")
    assert "collector.example" in repr(sender) and "hush" not in repr(sender)


def test_every_object_of_a_first_hour_is_one_short_line(tmp_path: Path) -> None:
    reports = simulate(SURVEY, {"dark_mode": [True] * 1500}, rng=np.random.default_rng(1))
    population = Population(tuple("abc") * 400, np.ones(1200))
    with deniable.store.open(tmp_path / "reports.db", create=True) as store:
        store.add_survey(SURVEY)
        shown = [store, store.snapshot(SURVEY), Stored(store)]
        shown += [SURVEY, *SURVEY.questions, Crowd(SURVEY, {}), reports, population]
        shown += [JointPopulation({"a": ("b",), "c": ("d", "e")}, np.ones((1, 2)))]
        shown += [Coded.of(["a"] * 2000), Client.open(SURVEY, tmp_path / "home")]
        for each in map(repr, shown):
            assert each[0] == "<" and "\n" not in each and " object at " not in each
            assert len(each.replace(str(tmp_path), "")) < 90, each
    assert repr(population) == "<Population of 1,200 values>"
