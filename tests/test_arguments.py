"""Arguments in the forms that users have them in: paths, days, seeds, lists that are one string."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

import deniable.store
from deniable import (
    Client,
    ReportBatch,
    Stored,
    Survey,
    associate,
    count,
    decode,
    discover,
    simulate,
    trend,
)
from deniable.analysis import by_period
from deniable.arguments import as_day
from deniable.cli.app import app
from deniable.client import encode_report
from deniable.columns import from_wire, read, to_wire, write
from deniable.errors import InputError
from deniable.render.html import report
from deniable.simulation import Population, random_strings, simulate_days
from deniable.store.bulk import import_file
from deniable.survey import from_bytes

SURVEY = Survey.from_toml("""
name = "forms"
version = 1
owner = "tests"
description = "two questions"
expires = 2099-12-31
collect = "repeatedly"
[questions.pet]
kind = "choice"
options = ["cat", "dog"]
epsilon = 3.0
[questions.dark]
kind = "boolean"
epsilon = 3.0
[questions.word]
kind = "string"
epsilon = 6.0
[questions.word.dictionary]
protocol = "prefixes"
max_length = 2
alphabet = "a-c"
""")
ANSWERS = {"pet": ["cat", "dog"] * 500, "dark": [True, False] * 500, "word": ["ab"] * 1000}
DAY = dt.date(2026, 11, 16)
PETS = Population(("cat", "dog"), np.array([0.5, 0.5]))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The survey in both forms, reports in a file and in a store."""
    folder = tmp_path_factory.mktemp("forms")
    SURVEY.publish(folder / "survey.json")
    write(folder / "reports.parquet", simulate(SURVEY, ANSWERS, rng=1))
    with deniable.store.open(folder / "reports.db", create=True) as store:
        import_file(store, folder / "reports.parquet", "2026-11-16")
    return folder


def results(survey: Survey | str | Path, folder: Path) -> list[object]:
    """Call everything that takes a survey."""
    file, store = str(folder / "reports.parquet"), folder / "reports.db"
    batch = read(file, survey=survey)
    client = Client(survey, secret=bytes(32))
    answer = client.answer({"pet": "cat"}, today="2026-11-16")
    with deniable.store.open(store) as opened:
        opened.add_survey(survey)
        days = opened.days(survey), opened.delete(survey, before="2000-01-01")
        scanned = [len(each) for each in opened.scan(survey, since="2026-11-16")]
    marginal = decode(survey, file, "pet")
    return [
        marginal.to_json(),
        associate(survey, file, ["pet", "dark"]).table.tolist(),
        count(survey, file, ("pet", "dark")).reports,
        discover(survey, file, "word").strings,
        trend(survey, store, "pet", since="2026-11-16", until=DAY).to_json(),
        by_period(survey, store, lambda part: decode(survey, part, "pet"), since=DAY).to_json(),
        to_wire(simulate(survey, ANSWERS, rng=2)),
        [to_wire(each) for each in simulate_days(survey, ANSWERS, 2, rng=2)],
        len(from_wire(to_wire(batch), survey)),
        encode_report(survey, {}, secret=bytes(32), rand=b"r" * client._encoder.rand_size),
        from_bytes(bytes(answer), survey).cohort,
        report(marginal, survey=survey),
        days,
        scanned,
        Client.open(survey, folder / "device").survey,
    ]


def test_a_survey_may_be_a_path_wherever_it_may_be_a_survey(folder: Path) -> None:
    expected = results(SURVEY, folder)
    assert results(str(folder / "survey.json"), folder) == expected
    assert results(folder / "survey.json", folder) == expected


def test_a_generator_a_seed_or_none(folder: Path) -> None:
    def reports(rng: np.random.Generator | int | None) -> bytes:
        return to_wire(simulate(SURVEY, ANSWERS, rng=rng))

    assert reports(7) == reports(np.random.default_rng(7)) == reports(np.int64(7))  # type: ignore[arg-type]
    assert reports(None) != reports(None)
    secrets = np.zeros((1000, 32), np.uint8)
    rng = np.random.default_rng(7)
    by_seed = simulate(SURVEY, ANSWERS, rng=7, secrets=secrets)
    assert to_wire(by_seed) == to_wire(simulate(SURVEY, ANSWERS, rng=rng, secrets=secrets))
    first, second = simulate_days(SURVEY, ANSWERS, 2, rng=7)
    assert to_wire(first) != to_wire(second)  # one generator, not the same noise every day
    assert random_strings(3, 5, 1) == random_strings(3, 5, np.random.default_rng(1))
    assert PETS.draw(9, 1).codes.tolist() == (PETS.draw(9, np.random.default_rng(1)).codes.tolist())


def test_a_seed_that_nobody_chose_is_recorded_and_repeats_the_reports() -> None:
    reports: ReportBatch = simulate(SURVEY, ANSWERS)
    seed = int(reports.origin.removeprefix("simulated, seed "))
    assert to_wire(simulate(SURVEY, ANSWERS, rng=seed)) == to_wire(reports)


def test_the_command_records_a_seed_that_nobody_chose(tmp_path: Path) -> None:
    SURVEY.publish(tmp_path / "survey.json")
    (tmp_path / "answers.csv").write_text("pet,dark,word\n" + "cat,true,ab\n" * 100)

    def made(*seed: str) -> ReportBatch:
        files = [tmp_path / name for name in ("survey.json", "answers.csv", "reports.parquet")]
        command = ["simulate", str(files[0]), "--values", str(files[1]), "-o", str(files[2])]
        assert CliRunner().invoke(app, [*command, *seed]).exit_code == 0
        return read(files[2])

    first = made()
    seed = first.origin.removeprefix("simulated, seed ")
    assert to_wire(made("--seed", seed)) == to_wire(first)


def test_days() -> None:
    midnight = dt.datetime(2026, 11, 17, 0, 30, tzinfo=dt.timezone(dt.timedelta(hours=2)))
    for given in (DAY, "2026-11-16", dt.datetime(2026, 11, 16, 23), midnight):
        assert Stored("reports.db", since=given).since == DAY
        assert type(as_day("since", given)) is dt.date


WRONG: dict[str, tuple[Callable[[], object], str]] = {
    "rng": (lambda: simulate(SURVEY, ANSWERS, rng="seven"), "rng must be None, an integer"),  # type: ignore[arg-type]
    "rng < 0": (lambda: simulate(SURVEY, ANSWERS, rng=-1), "rng must be None, an integer"),
    "rng float": (lambda: PETS.draw(9, 1.5), "rng must be None, an integer"),  # type: ignore[arg-type]
    "survey": (lambda: decode(None, "r.parquet", "pet"), "survey must be a Survey or the path"),  # type: ignore[arg-type]
    "survey dict": (lambda: Client({}, secret=bytes(32)), "survey must be a Survey or the path"),  # type: ignore[arg-type]
    "since": (lambda: Stored("reports.db", since="16.11.2026"), "since must be a day"),
    "until": (lambda: Stored("reports.db", until=20261116), "until must be a day"),  # type: ignore[arg-type]
    "order": (lambda: Stored("r.db", "2026-11-17", DAY), "must not be after until"),
    "today": (
        lambda: Client(SURVEY, secret=bytes(32)).answer({}, today="today"),
        "today must be a day",
    ),
    "answer": (
        lambda: Client(SURVEY, secret=bytes(32)).answer("cat"),  # type: ignore[arg-type]
        "answers must be given by question, such as {'pet': …}, not as str",
    ),
    "answers": (
        lambda: Client(SURVEY, secret=bytes(32)).answer(["cat"]),  # type: ignore[arg-type]
        "not as list",
    ),
    "questions": (
        lambda: associate(SURVEY, [], "ab"),
        "questions must be a list of strings, got the single string 'ab'",
    ),
    "pair": (lambda: count(SURVEY, [], "ab"), "questions must be a list of strings"),
    "no question": (lambda: decode(SURVEY, [], None), "no question None"),  # type: ignore[arg-type]
    "candidates": (
        lambda: decode(SURVEY, simulate(SURVEY, ANSWERS, rng=1), "word", "vim"),
        "candidates must be a list of strings, got the single string 'vim'",
    ),
    "candidate": (
        lambda: decode(SURVEY, simulate(SURVEY, ANSWERS, rng=1), "word", 7),  # type: ignore[arg-type]
        "candidates must be a list of strings, not int",
    ),
    "trend": (lambda: trend(SURVEY, "r.db", "word", "vim"), "candidates must be a list of strings"),
    "store": (lambda: trend(SURVEY, None, "pet"), "store must be an open store"),  # type: ignore[arg-type]
    "executor": (
        lambda: decode(SURVEY, simulate(SURVEY, ANSWERS, rng=1), "pet", executor="dask"),
        "unknown executor 'dask': expected threads, threads:N, dask://HOST:PORT or tls://HOST:PORT",
    ),
    "reports": (lambda: decode(SURVEY, 7, "pet"), "reports must be a ReportBatch"),  # type: ignore[arg-type]
}


@pytest.mark.parametrize("case", WRONG)
def test_what_cannot_be_used_is_refused_in_words(case: str) -> None:
    call, text = WRONG[case]
    with pytest.raises(InputError) as caught:
        call()
    assert text in str(caught.value)


def test_a_published_survey_may_be_text() -> None:
    assert Survey.from_json(SURVEY.canonical.decode() + "\n") == SURVEY


def test_an_invalid_file_is_named(tmp_path: Path) -> None:
    (tmp_path / "survey.json").write_text("{}")
    with pytest.raises(InputError, match=r"survey\.json: this is not a published survey"):
        decode(tmp_path / "survey.json", [], "pet")
