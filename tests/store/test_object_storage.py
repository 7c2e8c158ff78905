"""Test segments in object storage that fails, and analyses of files there."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import numpy as np
import pytest

import deniable.store
from deniable import ReportBatch
from deniable.analysis.source import Source
from deniable.columns.arrow import to_parquet
from deniable.columns.batch import from_bodies, to_bodies
from deniable.errors import InputError, StoreError, StoreUnavailable
from deniable.store import Outcome
from deniable.store.object_storage import ObjectFolder
from tests.object_storage import Objects, objects_in
from tests.uploads import DAY, MARKS, kept, reports_of, survey, upload

URL = "s3://bucket/reports"


@pytest.fixture
def objects(tmp_path: Path) -> Iterator[Objects]:
    with objects_in(tmp_path / "objects") as found:
        yield found


def failing(objects: Objects, error: Exception, when: str = "") -> None:
    """Let every operation fail whose name contains `when`."""

    def fault(operation: str, path: str) -> None:
        if when in operation:
            raise error

    objects.fault = fault


# --- errors --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "url, says",
    [
        ("abfs://bucket/reports", "expected a folder, or the URL s3://BUCKET/FOLDER"),
        ("memory://reports", "got memory://reports"),
        ("s3:///reports", "expected a folder"),
        ("s3://key:secret@bucket/reports", "the URL of bucket contains credentials"),
        ("s3://bucket?nonsense=1&region=x", "cannot use s3://bucket.*nonsense"),
    ],
)
def test_other_urls_are_refused(url: str, says: str, tmp_path: Path) -> None:
    segments = url.replace("&", "%26")
    with pytest.raises(InputError, match=says) as caught:
        deniable.store.open(f"{tmp_path}/reports.db?segments={segments}", create=True)
    assert "secret" not in str(caught.value)


@pytest.mark.slow
def test_storage_that_nobody_reaches_is_unavailable(monkeypatch: pytest.MonkeyPatch) -> None:
    """Against pyarrow's own client, which tries for some seconds."""
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "x")
    url = f"{URL}?region=x&scheme=http&endpoint_override=127.0.0.1:9"
    with pytest.raises(StoreUnavailable, match=r"cannot read or write s3://.*NETWORK_C"):
        ObjectFolder(url).get("x")


def test_segments_are_tried_when_they_are_chosen(objects: Objects, tmp_path: Path) -> None:
    failing(objects, PermissionError("Access Denied"))
    with pytest.raises(StoreUnavailable, match="Access Denied; check the address, the credentials"):
        deniable.store.open(f"{tmp_path}/reports.db?segments={URL}", create=True)
    failing(objects, PermissionError("Access Denied"), "nothing")
    deniable.store.open(f"{tmp_path}/reports.db?segments={URL}", create=True).close()
    failing(objects, PermissionError("Access Denied"))
    with deniable.store.open(f"{tmp_path}/reports.db") as store:  # uploads need no segments
        store.add_survey(MARKS)
        assert store.append([upload()]) == [Outcome.STORED]


def test_a_read_that_fails_is_not_taken_for_damage(objects: Objects, tmp_path: Path) -> None:
    with deniable.store.open(f"{tmp_path}/reports.db?segments={URL}", create=True) as store:
        store.add_survey(MARKS)
        store.append([upload(60), upload(60)])
        store.compact(at_least=50, today=DAY)
        snapshot = store.snapshot(MARKS)
        for when in ("before get", "during get"):
            failing(objects, OSError("AWS Error SLOW_DOWN"), when)
            with pytest.raises(StoreUnavailable, match="SLOW_DOWN"):
                list(snapshot.batches())


def test_a_change_that_fails_anywhere_loses_and_doubles_nothing(
    objects: Objects, tmp_path: Path
) -> None:
    """Each operation of the storage fails once, before or after it took effect."""
    with deniable.store.open(f"{tmp_path}/reports.db?segments={URL}", create=True) as store:
        store.add_survey(MARKS)
        for number in count():
            new, steps = [upload(30), upload(30), upload(30)], count()

            def fault(*_: str, steps: Iterator[int] = steps, number: int = number) -> None:
                if next(steps) == number:
                    raise OSError("answered with 500")

            outcomes, compacted = [], False
            objects.fault = fault
            for _ in range(3):  # as a client and the collector's maintenance retry
                try:
                    if not outcomes:
                        outcomes = store.append(new)
                    compacted = compacted or bool(store.compact(at_least=50, today=DAY))
                except StoreUnavailable:
                    continue
            failing(objects, OSError(), "nothing")
            assert compacted and set(outcomes) <= {Outcome.STORED, Outcome.REPEATED}
            assert kept(store) == reports_of(new) and store.check() == []
            assert store.delete(MARKS) == 90
            if next(steps) <= number:
                break
        assert number >= 2
    assert not [file for file in tmp_path.rglob("objects/**/*") if file.is_file()]


# --- analyses ------------------------------------------------------------------------------------


@pytest.fixture
def batch() -> ReportBatch:
    return from_bodies(np.random.default_rng(3).bytes(5000 * MARKS.body_size), MARKS)


def rows(source: object) -> list[bytes]:
    """Return the reports of a source, whose partitions are loaded as another process would."""
    parts = Source(source, MARKS).partitions
    loaded = [pickle.loads(pickle.dumps(part)).load() for part in parts]
    return [row.tobytes() for each in loaded for row in to_bodies(each)]


def test_files_at_urls_are_read(objects: Objects, batch: ReportBatch) -> None:
    expected, folder = [row.tobytes() for row in to_bodies(batch)], ObjectFolder(URL)
    for name, some in (("b c.parquet", slice(2000, None)), ("a.parquet", slice(2000))):
        folder.put(name, to_parquet(batch.select(some)))
    folder.put("notes.txt", b"no reports")
    folder.put("inner/x.parquet", b"not in this folder")
    assert rows(URL) == rows(f"{URL}/?region=x") == expected
    assert rows([f"{URL}/a.parquet", f"{URL}/b%20c.parquet?region=x"]) == expected
    with pytest.raises(InputError, match="is given twice"):
        rows([f"{URL}/a.parquet", URL])


def test_files_at_urls_that_cannot_be_read(objects: Objects, batch: ReportBatch) -> None:
    folder = ObjectFolder(URL)
    folder.put("x.parquet", to_parquet(batch)[:-20])
    folder.put("inner/other.parquet", to_parquet(from_bodies(bytes(16), survey(2))))
    for url, error, says in (
        (f"{URL}/x.parquet", InputError, f"cannot read {URL}/x.parquet as a Parquet file"),
        (f"{URL}/none.parquet", StoreError, f"{URL}/none.parquet is missing"),
        ("s3://bucket/none", StoreError, "s3://bucket/none.* is missing"),
        (f"{URL}/inner", InputError, "the reports must answer"),
        ("s3://bucket", InputError, "has no files that end in .parquet"),
    ):
        with pytest.raises(error, match=says):
            rows(url)
    failing(objects, OSError("AWS Error SLOW_DOWN"), "list")
    with pytest.raises(StoreUnavailable, match="SLOW_DOWN"):
        rows(URL)
