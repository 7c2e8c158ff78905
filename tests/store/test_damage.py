"""Test that damaged bytes are noticed and named, and stop nothing else."""

from __future__ import annotations

import random
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

import deniable.store
from deniable.errors import StoreError
from deniable.store import Compacted, Outcome, Store
from deniable.store.sqlite import SqliteStore
from tests.postgres import Server
from tests.uploads import DAY, MARKS, NEXT, kept, reports_of, survey, upload


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


def damage_of_a_row_is_noticed(store: Store) -> None:
    """Check that reading and `check` name the upload, and that compaction goes on without it."""
    with pytest.raises(StoreError, match="damaged: deniable"):
        kept(store)
    assert len([text for text in store.check() if "damaged" in text or "unknown" in text]) == 1
    assert store.compact(at_least=50, today=DAY) == Compacted(1, 120, 0, damaged=1)
    assert store.compact(at_least=50, today=DAY) == Compacted(0, 0, 0)
    (sentence,) = store.check()
    assert "was set aside" in sentence and [sentence] == store.damage()


VALUES = {
    "bodies": b"\x00" * 960,
    "reports": 59,
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
    damage_of_a_row_is_noticed(store)
    assert kept(store) == reports_of([uploads[0], uploads[2]])
    assert store.append(uploads) == [Outcome.REPEATED] * 3
    assert len(store.accept_damage()) == 1
    assert store.check() == [] and store.damage() == []


def test_text_that_is_no_text_is_noticed(store: SqliteStore) -> None:
    uploads = [upload(60) for _ in range(3)]
    store.append(uploads)
    statement = "UPDATE staged SET day = CAST(X'323032352DFF332D3039' AS TEXT) WHERE id = 2"
    store._write(lambda db: db.run(statement))
    damage_of_a_row_is_noticed(store)


@pytest.mark.parametrize("name", ["bodies", "reports", "day"])
def test_a_changed_column_is_noticed_in_postgresql(postgres_server: Server, name: str) -> None:
    postgres_server.wipe()
    with deniable.store.open(postgres_server.url, create=True) as store:
        store.add_survey(MARKS)
        store.append([upload(60) for _ in range(3)])
        change(store, name, VALUES[name])
        damage_of_a_row_is_noticed(store)
        assert len(store.accept_damage()) == 1 and store.check() == []


def test_damage_among_uploads_that_wait_is_set_aside(store: SqliteStore) -> None:
    uploads = [upload(2) for _ in range(3)]
    store.append(uploads)
    change(store, "bodies", b"\x00" * 32)
    assert store.compact(at_least=1000, today=DAY) == Compacted(0, 0, 4, damaged=1)
    assert kept(store) == reports_of([uploads[0], uploads[2]])


def test_rows_of_an_earlier_version_have_no_checksum(store: SqliteStore) -> None:
    store.append([upload(60), upload(60)])
    store._write(lambda db: db.run("UPDATE staged SET checksum = NULL"))
    assert store.check() == [] and sum(kept(store).values()) == 120
    assert store.compact(at_least=50, today=DAY) == Compacted(1, 120, 0)


def test_what_was_set_aside_is_deleted_with_age(store: SqliteStore) -> None:
    store.accept_clock(DAY)
    store.append([upload(60) for _ in range(3)])
    change(store, "reports", 59)
    store.compact(at_least=50, today=DAY)
    # Only age deletes what was set aside, not the deletion of some survey's reports.
    store.add_survey(other := survey(name="other"))
    store.delete(other, before=NEXT)
    assert store.delete_damaged(DAY) == 0 and len(store.damage()) == 1
    assert store.delete_damaged(NEXT) == 1 and store.damage() == []


def test_a_backup_carries_checksums_and_known_damage(store: SqliteStore, tmp_path: Path) -> None:
    store.append([upload(60) for _ in range(3)])
    change(store, "reports", 59)
    store.compact(at_least=100, today=DAY)
    store.append([upload(5), upload(5)])
    store.backup(tmp_path / "copy.db")
    with SqliteStore(str(tmp_path / "copy.db")) as copy:
        assert copy.check() == store.check() == store.damage() != []
        change(copy, "bodies", b"\x00" * 80)
        with pytest.raises(StoreError, match="damaged"):
            kept(copy)


def test_a_backup_of_a_damaged_or_missing_segment_fails_and_names_it(
    store: SqliteStore, tmp_path: Path
) -> None:
    to = tmp_path / "copy.db"
    store.append([upload(60), upload(60)])
    store.compact(at_least=50, today=DAY)
    (segment,) = tmp_path.rglob("*.parquet")
    intact = segment.read_bytes()
    segment.write_bytes(intact[:500] + bytes([intact[500] ^ 1]) + intact[501:])
    with pytest.raises(StoreError, match=f"{segment.name}.* SHA-256 differs.*from a backup"):
        store.backup(to)
    segment.unlink()
    with pytest.raises(StoreError, match=f"{segment.name} is missing: restore it from a"):
        store.backup(to)
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
        with deniable.store.open(flipped) as damaged:
            (sentence,) = damaged.check()
            assert f"staged upload {uploads.index(one) + 1} (100 reports" in sentence
            assert damaged.compact(at_least=50, today=DAY).damaged == 1
            assert kept(damaged) == reports_of([u for u in uploads if u is not one])
        for file in tmp_path.glob("flipped.db*"):
            file.unlink()


# --- uploads that disappear ----------------------------------------------------------------------


def test_acknowledged_uploads_that_disappear_are_counted(path: Path) -> None:
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
        assert len(store.accept_damage()) == 1
        assert store.check() == [] and sum(kept(store).values()) == 18


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


def test_repeats_do_not_unsettle_the_number_of_the_last_upload(path: Path) -> None:
    one = upload()
    with SqliteStore(str(path), create=True) as store:
        store.add_survey(MARKS)
        store.append([upload(), one])
        assert store.append([one]) == [Outcome.REPEATED]
        assert store._acknowledged.read() == 2


def test_a_damaged_record_of_the_last_upload_is_ignored(path: Path) -> None:
    last = path.with_name("reports.db.last")
    with deniable.store.open(path, create=True) as store:
        store.add_survey(MARKS)
        store.append([upload()])
    data = last.read_bytes()
    for damaged in (b"", data[:5], data[:3] + b"\x01" + data[4:]):
        last.write_bytes(damaged)
        with deniable.store.open(path) as store:
            assert store.check() == []
            store.append([upload()])


def test_processes_number_their_uploads_together(path: Path) -> None:
    with SqliteStore(str(path), create=True) as one, SqliteStore(str(path)) as two:
        one.add_survey(MARKS)
        for store in (one, two, one, one, two):
            store.append([upload(), upload()])
    with closing(sqlite3.connect(path)) as db:
        assert [id for (id,) in db.execute("SELECT id FROM staged")] == list(range(1, 11))
    path.unlink()
    path.with_name("reports.db-wal").unlink(missing_ok=True)
