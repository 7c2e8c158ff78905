"""Test that damaged bytes are noticed and named, and stop nothing else."""

from __future__ import annotations

import random
import sqlite3
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

import deniable.store
from deniable import decode
from deniable.errors import StoreError
from deniable.store import Compacted, Outcome, Store
from deniable.store.sqlite import SqliteStore
from deniable.store.staged_rows import ADVICE, UNKNOWN_NUMBER
from tests.postgres import Server
from tests.uploads import DAY, MARKS, kept, reports_of, upload


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "reports.db"


@pytest.fixture
def store(path: Path) -> Iterator[SqliteStore]:
    with SqliteStore(str(path), create=True) as found:
        found.add_survey(MARKS)
        yield found


def change(store: Store, column: str, value: object) -> None:
    """Change a value of the second upload, as a flipped byte would."""
    ids = store._rows("SELECT id FROM staged ORDER BY id")
    store._write(
        lambda db: db.run(f"UPDATE staged SET {column} = ? WHERE id = ?", (value, ids[1][0]))
    )


def intact(store: Store) -> Counter[bytes]:
    """Return the reports that are read, with a warning."""
    with pytest.warns(UserWarning, match="is damaged and left out"):
        return kept(store)


def the_others_go_on(store: Store, uploads: list[deniable.store.Upload]) -> None:
    """Check that the second of three uploads is named, and left out by reading and compaction."""
    others = reports_of([uploads[0], uploads[2]])
    assert intact(store) == others
    (sentence,) = store.damage()
    assert sentence.startswith("staged upload ") and sentence.endswith(ADVICE)
    assert store.check() == [sentence]
    done = store.compact(at_least=50, today=DAY)
    assert (done.segments, done.reports) == (1, 120)
    assert store.compact(at_least=50, today=DAY).segments == 0
    assert intact(store) == others
    assert store.append(uploads) == [Outcome.REPEATED] * 3
    assert store.check() == store.damage() == [sentence], "it stays where it is"
    assert store.delete_damaged() == [sentence]
    assert store.check() == store.damage() == [] and kept(store) == others
    assert store.compact(at_least=50, today=DAY) == Compacted(0, 0, 0)


VALUES = {
    "bodies": b"\x00" * 960,
    "reports": 59,
    "reports, of no meaning": "many",
    "day": "2025-03-08",
    "day, of no meaning": "2025-03-0\x19",
    "survey": b"\x00" * 16,
    "checksum": 12345,
}


@pytest.mark.parametrize("name", VALUES)
def test_a_changed_column_is_noticed(store: SqliteStore, name: str) -> None:
    uploads = [upload(60) for _ in range(3)]
    store.append(uploads)
    store._writer.execute("PRAGMA foreign_keys = OFF")  # as a flipped byte ignores them
    change(store, name.split(",")[0], VALUES[name])
    the_others_go_on(store, uploads)


def test_text_that_is_no_text_is_noticed(store: SqliteStore) -> None:
    uploads = [upload(60) for _ in range(3)]
    store.append(uploads)
    statement = "UPDATE staged SET day = CAST(X'323032352DFF332D3039' AS TEXT) WHERE id = 2"
    store._write(lambda db: db.run(statement))
    the_others_go_on(store, uploads)


@pytest.mark.parametrize("name", ["bodies", "reports", "day"])
def test_a_changed_column_is_noticed_in_postgresql(postgres_server: Server, name: str) -> None:
    postgres_server.wipe()
    with deniable.store.open(postgres_server.url, create=True) as store:
        store.add_survey(MARKS)
        uploads = [upload(60) for _ in range(3)]
        store.append(uploads)
        change(store, name, VALUES[name])
        the_others_go_on(store, uploads)


def test_decode_goes_on_and_says_what_is_left_out(store: SqliteStore) -> None:
    store.append([upload(600) for _ in range(3)])
    change(store, "bodies", bytes(9600))
    with pytest.warns(UserWarning, match="staged upload 2 .600 reports of marks v1.* is damaged"):
        result = decode(MARKS, store, "mark", ["a"])
    assert result.provenance is not None and result.provenance.reports == 1200
    assert "staged upload 2" in result.provenance.origin


def test_a_backup_names_what_is_damaged_and_has_the_rest(
    store: SqliteStore, tmp_path: Path
) -> None:
    uploads = [upload(60) for _ in range(3)]
    store.append(uploads)
    store._writer.execute("PRAGMA foreign_keys = OFF")
    change(store, "survey", bytes(16))
    store.backup(tmp_path / "copy.db")
    with SqliteStore(str(tmp_path / "copy.db")) as copy:
        assert copy.check() == store.check() == store.damage() != []
        with pytest.warns(UserWarning, match="is damaged"):
            assert kept(copy) == reports_of([uploads[0], uploads[2]])
        change(copy, "bodies", b"\x00" * 960)
        assert len(copy.damage()) == 2, "checksums are copied, too"
        assert len(copy.delete_damaged()) == 2 and copy.check() == []


def test_a_damaged_or_missing_segment_stops_reading_and_backups_and_is_named(
    store: SqliteStore, tmp_path: Path
) -> None:
    to = tmp_path / "copy.db"
    store.append([upload(60), upload(60)])
    store.compact(at_least=50, today=DAY)
    (segment,) = tmp_path.rglob("*.parquet")
    intact = segment.read_bytes()
    flipped = intact.index(next(iter(kept(store)))) + 3
    segment.write_bytes(intact[:flipped] + bytes([intact[flipped] ^ 1]) + intact[flipped + 1 :])
    with pytest.raises(StoreError, match=f"{segment.name} is damaged.*restore the backup"):
        kept(store)
    with pytest.raises(StoreError, match=f"{segment.name}.* SHA-256 differs.*restore the backup"):
        store.backup(to)
    assert len(store.check()) == 1
    segment.unlink()
    for reading in (lambda: kept(store), lambda: store.backup(to)):
        with pytest.raises(StoreError, match=f"{segment.name} is missing"):
            reading()
    segment.write_bytes(intact)
    store.backup(to)
    with deniable.store.open(to) as copy:
        assert copy.check() == []
        assert kept(copy) == kept(store)


def test_a_damaged_survey_is_noticed(store: SqliteStore, path: Path) -> None:
    other = MARKS.canonical.replace(b"any 16 bytes", b"any 17 bytes")
    store._write(lambda db: db.run("UPDATE survey SET canonical = ?", (other,)))
    with deniable.store.open(path) as again, pytest.raises(StoreError, match="survey with digest"):
        again.surveys()


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_any_flipped_byte_of_the_staged_reports_is_noticed(
    store: SqliteStore, path: Path, tmp_path: Path, seed: int
) -> None:
    """Flip bytes of the file where it holds staged reports; the file is otherwise intact."""
    uploads = [upload(100) for _ in range(20)]
    store.append(uploads)
    store.close()
    whole, rng = path.read_bytes(), random.Random(seed)
    for one in rng.sample(uploads, 10):
        at = whole.index(one.bodies[:16]) + rng.randrange(16)
        flipped = tmp_path / "flipped.db"
        flipped.write_bytes(
            whole[:at] + bytes([whole[at] ^ 1 << rng.randrange(8)]) + whole[at + 1 :]
        )
        (tmp_path / "flipped.db.last").write_bytes((tmp_path / "reports.db.last").read_bytes())
        with deniable.store.open(flipped) as damaged:
            (sentence,) = damaged.check()
            assert f"staged upload {uploads.index(one) + 1} (100 reports" in sentence
            assert damaged.compact(at_least=50, today=DAY).reports == 1900
            assert intact(damaged) == reports_of([u for u in uploads if u is not one])
        for file in tmp_path.glob("flipped.db*"):
            file.unlink()


# --- uploads that disappear ----------------------------------------------------------------------


def test_acknowledged_uploads_that_disappear_are_counted(path: Path, tmp_path: Path) -> None:
    """An older copy of the file takes the place of the store."""
    with deniable.store.open(path, create=True) as store:
        store.add_survey(MARKS)
        store.append([upload(3) for _ in range(4)])
    older = path.read_bytes()
    with deniable.store.open(path) as store:
        store.append([upload(3), upload(3)])
        store.append([upload(3)])
    path.write_bytes(older)
    for _ in range(2):  # the record outlives the next uploads
        with deniable.store.open(path) as store:
            (sentence,) = store.check()
            assert sentence.startswith("3 acknowledged uploads (numbers 5 to 7) disappeared")
            assert store.append([upload(3)]) == [Outcome.STORED]
    with deniable.store.open(path) as store:
        store.backup(tmp_path / "copy.db")
        assert store.delete_damaged() == [sentence]
        assert store.check() == [] and sum(kept(store).values()) == 18
    with deniable.store.open(tmp_path / "copy.db") as copy:
        assert copy.check() == [sentence]


def test_compaction_and_deletion_lose_nothing(path: Path) -> None:
    for _ in range(2):
        with deniable.store.open(path, create=True) as store:
            store.add_survey(MARKS)
            store.append([upload(60), upload(60)])
            store.compact(at_least=50, today=DAY)
            assert store.check() == []
        with deniable.store.open(path) as store:
            store.append([upload(60)])
            store.delete(MARKS)
        with deniable.store.open(path) as store:
            assert store.check() == []


def test_a_new_store_does_not_miss_the_uploads_of_an_old_one(path: Path) -> None:
    for _ in range(2):
        with deniable.store.open(path, create=True) as store:
            store.add_survey(MARKS)
            store.append([upload()])
            assert store.check() == []
        path.unlink()


def test_a_backup_and_its_restoration_write_the_number_of_the_last_upload(
    store: SqliteStore, tmp_path: Path
) -> None:
    store.append([upload() for _ in range(3)])
    store.backup(copied := tmp_path / "copy.db")
    with SqliteStore(str(copied)) as copy:
        assert copy._acknowledged.read() == 3
        copy.backup(tmp_path / "restored.db")
        copy.append([upload()])
        assert copy._acknowledged.read() == 4
    with SqliteStore(str(tmp_path / "restored.db")) as restored:
        assert restored._acknowledged.read() == 3 and restored.check() == []


def test_repeats_do_not_unsettle_the_number_of_the_last_upload(path: Path) -> None:
    one = upload()
    with SqliteStore(str(path), create=True) as store:
        store.add_survey(MARKS)
        store.append([upload(), one])
    with SqliteStore(str(path)) as store:
        assert store.append([one]) == [Outcome.REPEATED]
        assert store._acknowledged.read() == 2


@pytest.mark.parametrize("damaged", [None, b"", b"12345", b"x" * 12])
def test_a_damaged_or_missing_number_of_the_last_upload_is_said(
    path: Path, damaged: bytes | None
) -> None:
    last = path.with_name("reports.db.last")
    with deniable.store.open(path, create=True) as store:
        assert last.exists() and store.check() == []
        store.add_survey(MARKS)
        store.append([upload()])
    last.unlink()
    if damaged is not None:
        last.write_bytes(damaged)
    for _ in range(2):
        with SqliteStore(str(path)) as store:
            assert store.check() == store.damage() == [f"{UNKNOWN_NUMBER}: {ADVICE}"]
            with pytest.warns(UserWarning, match="number of the last upload"):
                assert sum(kept(store).values()) > 0
            store.append([upload()])
            assert store._acknowledged.read() is not None, "it is written anew"
    with deniable.store.open(path) as store:
        assert len(store.delete_damaged()) == 1 and store.check() == []
    with deniable.store.open(path) as store:
        assert store.check() == []


def test_processes_number_their_uploads_together(path: Path) -> None:
    with SqliteStore(str(path), create=True) as one, SqliteStore(str(path)) as two:
        one.add_survey(MARKS)
        for store in (one, two, one, one, two):
            store.append([upload(), upload()])
    with closing(sqlite3.connect(path)) as db:
        assert [id for (id,) in db.execute("SELECT id FROM staged")] == list(range(1, 11))
    path.unlink()
    path.with_name("reports.db-wal").unlink(missing_ok=True)
