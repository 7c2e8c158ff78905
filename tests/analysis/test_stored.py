"""Analysis reads a store by its URL, whole or by day, as it reads files."""

from __future__ import annotations

import os
from collections.abc import Iterator
from datetime import date, timedelta
from pathlib import Path

import numpy as np
import pytest

import deniable.store
from deniable import ReportBatch, Stored, associate, decode, discover, simulate, trend
from deniable.analysis.source import Source
from deniable.columns.batch import to_bodies
from deniable.errors import InputError, UnknownSurvey
from deniable.results import Result, Trend
from deniable.store import Store, Upload
from tests.surveys import make_survey
from tests.uploads import survey as marks

SURVEY = make_survey(
    """
[questions.page]
kind = "string"
epsilon = 4.0
[questions.dark]
kind = "boolean"
epsilon = 2.0
[questions.word]
kind = "string"
epsilon = 6.0
[questions.word.dictionary]
protocol = "prefixes"
max_length = 4
alphabet = "a-z"
""",
    name="habits",
)
MONDAY = date(2025, 3, 3)
SHARES = (0.2, 0.8)
"""Share of dark mode in the first and in the second week."""
CLIENTS = 3000


def day_batch(day: int, rng: np.random.Generator) -> ReportBatch:
    share = SHARES[day // 7]
    values = {
        "page": rng.choice(["a.org", "b.org"], CLIENTS, p=[0.75, 0.25]).tolist(),
        "dark": (rng.random(CLIENTS) < share).tolist(),
        "word": ["tree"] * CLIENTS,
    }
    return simulate(SURVEY, values, rng=rng)


@pytest.fixture(scope="module")
def batches() -> list[ReportBatch]:
    rng = np.random.default_rng(20250303)
    return [day_batch(day, rng) for day in range(14)]


@pytest.fixture(scope="module")
def path(batches: list[ReportBatch], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Fourteen days, the first ten compacted."""
    path = tmp_path_factory.mktemp("stores") / "habits.db"
    with deniable.store.open(path, create=True) as store:
        store.add_survey(SURVEY)
        for i, batch in enumerate(batches):
            add(store, batch, MONDAY + timedelta(days=i))
            if i == 9:
                store.compact(at_least=1000)
    return path


def add(store: Store, batch: ReportBatch, day: date) -> None:
    for start in range(0, len(batch), 1000):
        some = to_bodies(batch.select(slice(start, start + 1000)))
        key = os.urandom(16)
        store.append([Upload(key, SURVEY.digest, len(some), some.tobytes(), day, key)])


@pytest.fixture(params=["path", "url", "store", "stored"])
def source(request: pytest.FixtureRequest, path: Path) -> Iterator[object]:
    with deniable.store.open(path) as store:
        yield {
            "path": path, "url": f"sqlite:///{path}", "store": store,
            "stored": Stored(path, MONDAY, MONDAY + timedelta(days=13)),
        }[request.param]  # fmt: skip


def test_a_store_decodes_as_its_reports_do(source: object, batches: list[ReportBatch]) -> None:
    names = ["a.org", "b.org", "c.org"]
    from_store = decode(SURVEY, source, "page", names)
    direct = decode(SURVEY, batches, "page", names)
    np.testing.assert_allclose(from_store.estimate, direct.estimate, atol=1e-12)
    assert from_store.reports == 14 * CLIENTS
    assert from_store.provenance is not None
    assert from_store.provenance.origin.endswith("habits.db, 2025-03-03 to 2025-03-16")


def test_days_are_chosen(path: Path, batches: list[ReportBatch]) -> None:
    chosen = Stored(path, since=MONDAY + timedelta(days=8), until=MONDAY + timedelta(days=11))
    found = decode(SURVEY, chosen, "dark")
    direct = decode(SURVEY, batches[8:12], "dark")
    assert found.estimate.tolist() == direct.estimate.tolist()
    assert found.reports == 4 * CLIENTS


@pytest.mark.slow
def test_associate_and_discover_read_stores(path: Path, batches: list[ReportBatch]) -> None:
    some = Stored(path, until=MONDAY + timedelta(days=1))
    joint = associate(SURVEY, some, ["page", "dark"], candidates={"page": ["a.org", "b.org"]})
    assert joint.reports == 2 * CLIENTS
    found = discover(SURVEY, some, "word")
    assert found.strings == ("tree",) and found.reports == 2 * CLIENTS


def test_a_source_stays_the_same_while_its_store_grows(
    batches: list[ReportBatch], tmp_path: Path
) -> None:
    """Several passes of one analysis see the same reports."""
    with deniable.store.open(tmp_path / "x.db", create=True) as store:
        store.add_survey(SURVEY)
        add(store, batches[0], MONDAY)
        source = Source(tmp_path / "x.db", SURVEY)
        first = ReportBatch.concat(source.batches())
        add(store, batches[1], MONDAY)
        store.compact(at_least=1000)
        assert ReportBatch.concat(source.batches()) == first
        assert len(first) == CLIENTS


def test_groups_of_partitions_have_all_reports(batches: list[ReportBatch]) -> None:
    """Five partitions of 2,000 reports make two groups of at least 2,500, and one is left."""
    source = Source(ReportBatch.concat(batches[:4]).select(slice(10_000)), SURVEY)
    sizes = [[part.count for part in group] for group in source.groups(1 << 19)]
    assert sizes == [[2000, 2000], [2000, 2000], [2000]]


def test_what_cannot_be_read_is_said(path: Path) -> None:
    with pytest.raises(InputError, match="no reports of survey habits"):
        decode(SURVEY, Stored(path, since=date(2030, 1, 1)), "dark")
    with pytest.raises(InputError, match="must not be after until"):
        Stored(path, date(2030, 1, 2), date(2030, 1, 1))
    with pytest.raises(UnknownSurvey, match="habits v1"):
        decode(marks(), path, "mark", ["x"])


def test_a_trend_follows_the_days(path: Path) -> None:
    """28 estimates, each within 5 standard errors: false alarm below 1e-4."""
    found = trend(SURVEY, path, "dark")
    truth = np.repeat(SHARES, 7)[:, None]
    assert (np.abs(found.estimate - truth) < 5 * found.standard_error).all()
    assert (found.low < found.estimate).all() and (found.estimate < found.high).all()
    assert found.reports.tolist() == [CLIENTS] * 14
    # The broken twin: the weeks exchanged.
    assert not (np.abs(found.estimate - truth[::-1]) < 5 * found.standard_error).any()


def test_a_trend_by_week_decodes_each_week(path: Path, batches: list[ReportBatch]) -> None:
    since, until = MONDAY + timedelta(days=2), MONDAY + timedelta(days=8)
    names = ["a.org", "b.org"]
    found = trend(SURVEY, f"sqlite:///{path}", "page", iter(names), by="week", since=since,
                  until=until)  # fmt: skip
    assert found.periods == ("2025-03-03", "2025-03-10")
    for i, days in enumerate((batches[2:7], batches[7:9])):
        direct = decode(SURVEY, days, "page", names)
        np.testing.assert_allclose(found.estimate[i], direct.estimate, atol=1e-12)
        np.testing.assert_allclose(found.high[i], direct.high, atol=1e-12)
    assert found.provenance is not None and found.provenance.reports == 7 * CLIENTS


def test_a_trend_travels_and_draws_itself(path: Path) -> None:
    found = trend(SURVEY, path, "page", ["b.org", "a.org"], by="week")
    again = Result.from_json(found.to_json())
    assert isinstance(again, Trend) and again.columns() == found.columns()
    assert found.columns()["value"] == ["a.org", "a.org", "b.org", "b.org"]
    assert found.columns()["week"] == ["2025-03-03", "2025-03-10"] * 2
    axes = found.plot(most=1)
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["a.org"]
    assert "2 periods" in str(found)


def test_a_trend_of_nothing_is_refused(path: Path) -> None:
    with pytest.raises(InputError, match="'day' or 'week'"):
        trend(SURVEY, path, "dark", by="month")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="no reports"):
        trend(SURVEY, path, "dark", since=date(2030, 1, 1))
