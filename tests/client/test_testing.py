"""The client for testing: predictable, never for a real survey; and surveys for testing."""

from __future__ import annotations

import json
import logging
import warnings
from dataclasses import fields
from inspect import signature
from pathlib import Path
from typing import Any

import pytest

from deniable.client import Client, Ledger, Outbox, Spending, encode_report
from deniable.collector.api.problems import Problem
from deniable.collector.ingest.catalogue import Catalogue
from deniable.errors import (
    InputError,
    LossyAnswerWarning,
    NotPrivateWarning,
    SurveyExpired,
    UnknownSurvey,
)
from deniable.store.clock import Today, today
from deniable.survey import Survey, from_bytes
from deniable.survey.survey import FORMAT
from tests.surveys import EDITOR_AND_PAGE, make_survey

REAL = make_survey(EDITOR_AND_PAGE)
TESTING = REAL.for_testing()


def new_client(**options: Any) -> Client:
    with pytest.warns(NotPrivateWarning):
        return Client.for_testing(TESTING, **options)


# --- the mark ---------------------------------------------------------------------------------


def test_the_mark_is_published_and_changes_the_digest_only() -> None:
    again = Survey.from_json(TESTING.canonical)
    assert again.testing and again == TESTING != REAL
    assert again.digest != REAL.digest
    assert again.body_size == REAL.body_size
    changed = {
        key
        for key, value in json.loads(TESTING.canonical).items()
        if value != json.loads(REAL.canonical).get(key)
    }
    assert changed == {"format"}
    assert b"testing" not in REAL.canonical and not Survey.from_json(REAL.canonical).testing


def test_readers_that_do_not_know_the_mark_refuse_it() -> None:
    """Every reader compares the format, also in other languages (docs/reference/wire.md)."""
    assert json.loads(TESTING.canonical)["format"] != FORMAT
    for key in ("testing", "other"):  # a key that the format does not have
        data = json.loads(REAL.canonical) | {key: True}
        with pytest.raises(InputError, match="changed after publication"):
            Survey.from_json(json.dumps(data, sort_keys=True, separators=(",", ":")).encode())


def test_a_collector_of_the_real_survey_refuses_reports_of_tests() -> None:
    sent = bytes(new_client().answer({"editor": "vim"}))
    assert len(sent) == len(bytes(Client(REAL, secret=bytes(32)).answer({"editor": "vim"})))
    with pytest.raises(UnknownSurvey):
        from_bytes(sent, REAL)
    with pytest.raises(Problem, match="no survey with digest"):
        Catalogue([REAL]).upload(sent, bytes(16), Today(today()))
    assert Catalogue([TESTING]).upload(sent, bytes(16), Today(today())).reports == 1
    with pytest.raises(InputError, match="two surveys"):
        Catalogue([REAL, TESTING])


# --- the client -------------------------------------------------------------------------------


def test_reports_depend_on_the_seed_only_and_have_fresh_noise() -> None:
    values = {"editor": "vim", "page": "abc"}
    one, again, other = (new_client(seed=seed) for seed in (7, 7, 8))
    reports = [bytes(one.answer(values)) for _ in range(20)]
    assert reports == [bytes(again.answer(values)) for _ in range(20)]
    assert len(set(reports)) > 10
    assert reports != [bytes(other.answer(values)) for _ in range(20)]
    assert one.cohort == again.cohort


def test_nothing_is_charged_and_no_file_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    client = new_client()
    for _ in range(5):
        client.answer({"editor": "vim"})
    assert client.ledger.spent(TESTING.name) == 0 and client.ledger.path is None
    assert not list(tmp_path.iterdir())


def test_it_is_marked_loudly_and_warns_whatever_is_answered() -> None:
    with pytest.warns(NotPrivateWarning, match="protect nobody") as caught:
        client = Client.for_testing(TESTING, seed=7)
    assert caught[0].filename == __file__ and len(caught) == 1
    assert repr(client) == "<Client FOR TESTING of survey tests v1, seed 7: not private>"
    assert "FOR TESTING" in repr(TESTING) and "TESTING" not in repr(REAL)
    assert "version 1 for testing (" in str(TESTING) and "testing" not in str(REAL)


def test_seeds_and_real_surveys_never_meet(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"deniable check survey.toml --testing -o"):
        Client.for_testing(REAL, seed=7)
    with pytest.raises(InputError, match="published for testing"):
        Client(TESTING, secret=bytes(32))
    with pytest.raises(InputError, match="published for testing"):
        Client.open(TESTING, tmp_path / "device")
    assert not list(tmp_path.iterdir())
    for function in (Client, Client.open):
        assert not {"seed", "rng", "rand", "entropy"} & signature(function).parameters.keys()


@pytest.mark.parametrize("seed", [-1, 2**53, 1.0, True, "7", None])
def test_a_seed_is_an_integer_that_browsers_represent(seed: Any) -> None:
    with pytest.raises(InputError, match="seed must be an integer"):
        Client.for_testing(TESTING, seed=seed)


def test_it_expires_and_queues_like_any_client(tmp_path: Path) -> None:
    client = new_client(outbox=Outbox(tmp_path / "test.db"))
    client.answer_and_queue({"editor": "vim"})
    assert client.outbox is not None and client.outbox.counts().waiting == 1
    with pytest.raises(SurveyExpired, match="no report was made"):
        client.answer({}, today=TESTING.expires.replace(year=3000))
    with pytest.raises(InputError, match="no question"):
        client.answer({"nope": "x"})


LOSSY = [{"editor": "nano"}, {"page": "abcde"}, {"page": "a.b"}]


@pytest.mark.parametrize("values", LOSSY)
def test_answers_that_are_lost_warn_or_are_refused(values: dict[str, Any]) -> None:
    with pytest.warns(LossyAnswerWarning, match="1 answer, such as") as caught:
        tested = new_client().answer(values)
    assert any(each.filename == __file__ for each in caught)
    assert len(bytes(tested)) == len(bytes(new_client().answer({})))
    with pytest.raises(InputError, match="1 answer, such as"):
        new_client(strict=True).answer(values)


# --- the client of a real survey does not depend on the value ----------------------------------


def test_a_real_client_treats_all_answers_alike(
    caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    """Not even a warning, which a log might keep; `filterwarnings = error` would raise it."""
    caplog.set_level(logging.DEBUG)
    fine: list[dict[str, Any]] = [{}, {"editor": "vim", "page": "ab"}, {"page": None}]
    spent: set[tuple[Spending, ...]] = set()
    sizes = set()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for values in [*fine, *LOSSY, {"editor": "", "page": "\ud800" * 300}]:
            ledger = Ledger()
            sizes.add(len(bytes(Client(REAL, secret=bytes(32), ledger=ledger).answer(values))))
            spent.add(ledger.spending())
    assert not caught and not caplog.records and capfd.readouterr() == ("", "")
    assert len(spent) == len(sizes) == 1


def test_the_pure_encoder_takes_either_survey() -> None:
    """Vectors of other languages replay it; it knows neither people nor collectors."""
    with pytest.raises(InputError, match="random bytes"):
        encode_report(TESTING, {}, secret=bytes(32), rand=b"")


def test_every_setting_of_a_survey_is_published_or_the_mark() -> None:
    published = json.loads(REAL.canonical).keys()
    assert {field.name for field in fields(Survey)} - published == {"testing"}
