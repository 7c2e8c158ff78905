"""Test what is specific to the SQLite store: its file, schema versions, and erased data."""

from __future__ import annotations

import os
import sqlite3
import stat
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import pytest

import deniable.store
from deniable.errors import InputError, StoreError, StoreForbidden, StoreFull
from deniable.store import Outcome
from deniable.store.database import MAX_STATEMENT_BYTES, insert_rows
from deniable.store.sqlite import SqliteStore
from tests.uploads import DAY, MARKS, NEXT, kept, reports_of, survey, upload


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "reports.db"


@pytest.fixture
def store(path: Path) -> Iterator[SqliteStore]:
    with SqliteStore(str(path), create=True) as found:
        found.add_survey(MARKS)
        yield found


def test_a_newer_store_is_refused_untouched(path: Path) -> None:
    with closing(sqlite3.connect(path)) as newer, newer:
        newer.execute("CREATE TABLE survey (anything)")
        newer.execute("PRAGMA user_version = 1000")
    with pytest.raises(StoreError, match=r"version 1000.*update deniable"):
        deniable.store.open(path)
    with closing(sqlite3.connect(path)) as newer:
        assert newer.execute("SELECT name FROM sqlite_schema").fetchall() == [("survey",)]


def test_files_of_others_are_refused_untouched(tmp_path: Path) -> None:
    other, text = tmp_path / "other.db", tmp_path / "text.db"
    with closing(sqlite3.connect(other)) as db, db:
        db.execute("CREATE TABLE accounts (name)")
    text.write_text("not a database at all\n" * 100)
    for path in (other, text):
        with pytest.raises(StoreError, match="store"):
            deniable.store.open(path, create=True)
    with closing(sqlite3.connect(other)) as db:
        assert db.execute("SELECT name FROM sqlite_schema").fetchall() == [("accounts",)]


def test_urls_say_what_they_mean(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"expected FILE\.db"):
        deniable.store.open(tmp_path / "reports.sqlite", create=True)
    with pytest.raises(StoreError, match="there is no folder"):
        deniable.store.open(f"sqlite:///{tmp_path}/nowhere/x.db", create=True)
    for wrong in ("sqlite:///", "sqlite:///x.db?segment=y", "sqlite:///x.db?y", "sqlite://x.db"):
        with pytest.raises(InputError, match=r"expected sqlite:///FILE\.db"):
            deniable.store.open(wrong, create=True)


def test_commits_are_synced_and_deleted_bytes_overwritten(store: SqliteStore) -> None:
    wanted = {"journal_mode": "wal", "synchronous": 2, "secure_delete": 1, "auto_vacuum": 2}
    for name, value in wanted.items():
        assert store._writer.execute(f"PRAGMA {name}").fetchone() == (value,)


@pytest.mark.slow
@pytest.mark.parametrize("size", [1, 30, 1000])
def test_nothing_staged_lingers_in_the_files(store: SqliteStore, path: Path, size: int) -> None:
    """Delete blobs within a page, at its edge and over many pages, while other rows remain."""
    stay = [upload(2, NEXT) for _ in range(20)]
    gone = [upload(size) for _ in range(max(60, 2000 // size))]
    for i in range(0, len(gone), 10):
        store.append(gone[i : i + 10] + stay[i // 10 : i // 10 + 1])
    marks = [u.bodies[i : i + 16] for u in gone for i in range(0, len(u.bodies), 16)]
    assert any(marks[0] in f.read_bytes() for f in path.parent.glob("reports.db*"))
    store.compact(at_least=50, today=DAY)
    left = b"".join(f.read_bytes() for f in path.parent.glob("reports.db*"))
    windows = {left[i : i + 16] for i in range(len(left) - 15)}
    assert not windows & set(marks)
    assert path.with_name("reports.db-wal").stat().st_size == 0


def test_keys_and_fingerprints_are_not_kept(store: SqliteStore, path: Path) -> None:
    one = upload(3)
    store.append([one])
    everything = b"".join(f.read_bytes() for f in path.parent.glob("reports.db*"))
    assert one.bodies in everything
    assert one.key not in everything and one.fingerprint not in everything


def test_no_order_of_arrival_is_left(store: SqliteStore) -> None:
    """The rows of permanent tables are in the order of random names, not of arrival."""
    for table in ("upload", "segment", "loose"):
        with pytest.raises(sqlite3.OperationalError, match="rowid"):
            store._writer.execute(f"SELECT rowid FROM {table}")


def test_files_are_private_and_of_their_day(store: SqliteStore, path: Path) -> None:
    store.append([upload(60), upload(60)])
    store.compact(at_least=50)
    (segment,) = path.with_suffix(".segments").rglob("*.parquet")
    midnight = datetime(DAY.year, DAY.month, DAY.day, tzinfo=UTC).timestamp()
    assert segment.stat().st_mtime == midnight
    for file in (path, path.with_name("reports.db-wal"), segment):
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.with_suffix(".segments").stat().st_mode) == 0o700


def test_a_full_disk_is_told_and_passes(store: SqliteStore) -> None:
    store.append([first := upload(100)])
    (pages,) = store._writer.execute("PRAGMA page_count").fetchone()
    store._writer.execute(f"PRAGMA max_page_count = {pages + 2}")
    with pytest.raises(StoreFull, match="no space left"):
        store.append([upload(3000)])
    assert kept(store) == reports_of([first])
    store._writer.execute("PRAGMA max_page_count = 1000000")
    store.append([second := upload(3000)])
    assert kept(store) == reports_of([first, second])
    assert store.check() == []


def test_compaction_gives_space_back(store: SqliteStore, path: Path) -> None:
    for _ in range(10):
        store.append([upload(5000)])
    store.compact(at_least=1000)
    assert path.stat().st_size < 100_000


def test_segments_stand_where_they_are_told(path: Path, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    with deniable.store.open(f"{path}?segments={elsewhere}", create=True) as store:
        store.add_survey(MARKS)
        store.append(uploads := [upload(60), upload(60)])
        store.compact(at_least=50)
    assert len(list(elsewhere.rglob("*.parquet"))) == 1
    with deniable.store.open(path) as store:  # the store remembers
        assert kept(store) == reports_of(uploads)
        store.backup(tmp_path / "copy.db")
    with deniable.store.open(tmp_path / "copy.db") as copy:  # a copy has its own
        assert copy.check() == []
        assert list((tmp_path / "copy.segments").rglob("*.parquet"))
    with pytest.raises(StoreError, match="leave segments= out"):
        deniable.store.open(f"{path}?segments={tmp_path}/other")


def test_a_closed_store_says_so(path: Path) -> None:
    store = deniable.store.open(path, create=True)
    store.close()
    store.close()
    with pytest.raises(StoreError, match="closed"):
        store.add_survey(survey(3))


def test_appending_needs_no_more_than_the_standard_library_and_numpy() -> None:
    """A collector that never compacts does not import Arrow."""
    import subprocess
    import sys

    code = "import sys, deniable.store.sqlite; assert 'pyarrow' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True, env={**os.environ})


def test_a_compaction_ends_however_busy_the_collector(
    store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Uploads that arrive during a compaction are left to the next one."""
    uploads = [upload(60), upload(60)]
    store.append(uploads)
    put = store._location.put

    def busy(*arguments: object) -> None:
        assert len(uploads) < 10, "it goes on for ever"
        uploads.extend(more := [upload(60), upload(60)])
        store.append(more)
        put(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(store._location, "put", busy)
    assert store.compact(at_least=50, today=DAY).reports == 120
    assert kept(store) == reports_of(uploads)


def test_uploads_that_vanish_under_a_compaction_stop_it(
    store: SqliteStore, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If staged uploads vanish during a compaction, it must not add a segment with them."""
    uploads = [upload(60), upload(60)]
    store.append(uploads)
    put = store._location.put

    def taken_away(*arguments: object) -> None:
        with closing(sqlite3.connect(path)) as other, other:
            other.execute("DELETE FROM staged WHERE id = 1")
        put(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(store._location, "put", taken_away)
    with pytest.raises(StoreError, match="try again"):
        store.compact(at_least=50)
    assert kept(store) == reports_of(uploads[1:])
    assert store.compact(at_least=50).waiting == 60
    assert not list(path.parent.rglob("*.parquet"))


@pytest.mark.parametrize("suffix", ["", "-wal"])
@pytest.mark.parametrize("replaced", [False, True])
def test_nothing_is_acknowledged_that_goes_to_deleted_files(
    suffix: str, replaced: bool, store: SqliteStore, path: Path
) -> None:
    store.append([upload(1)])
    store.check_files()
    file = path.with_name(path.name + suffix)
    copy = file.read_bytes()
    file.unlink()
    if replaced:
        file.write_bytes(copy)
    with pytest.raises(StoreError, match="deleted or replaced while it was in use"):
        store.append([upload(1)])
    with pytest.raises(StoreError, match="restart"):
        store.check_files()


def test_maintenance_and_other_connections_leave_the_files_in_place(
    store: SqliteStore, path: Path
) -> None:
    """The last process that closes a database deletes its log; this one must not lose its locks."""
    read = "import sqlite3, sys; sqlite3.connect(sys.argv[1]).execute('SELECT * FROM survey')"
    store.append([upload(60), upload(60)])
    store.compact(at_least=50, today=NEXT)
    with deniable.store.open(path) as other:
        other.append([upload(1)])
    subprocess.run([sys.executable, "-c", read, str(path)], check=True)
    store.append([upload(1)])
    store.check_files()


def test_a_file_of_another_user_is_named(
    store: SqliteStore, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Commands that root ran leave files that the collector may not use."""
    store.append([upload(60), upload(60)])
    store.compact(at_least=50, today=NEXT)
    opened = os.open

    def guarded(file: str | Path, *arguments: int) -> int:
        if str(file).endswith(".lock"):
            raise PermissionError(13, "Permission denied", str(file))
        return opened(file, *arguments)

    monkeypatch.setattr(os, "open", guarded)
    with pytest.raises(StoreForbidden, match=r"may not use \S*reports.db.lock: run all commands"):
        store.compact(at_least=50, today=NEXT)


@pytest.mark.parametrize("count", [1, 166, 167, 400])
def test_one_transaction_takes_any_number_of_uploads(tmp_path: Path, count: int) -> None:
    with deniable.store.open(tmp_path / "reports.db", create=True) as store:
        store.add_survey(survey())
        uploads = [upload() for _ in range(count)]
        assert store.append(uploads) == [Outcome.STORED] * count
        assert store.append(uploads) == [Outcome.REPEATED] * count
        assert kept(store) == reports_of(uploads)


def test_a_statement_has_a_limited_number_of_bytes() -> None:
    """Uploads may have megabytes each, and a backup copies all of them."""
    sizes: list[int] = []

    class Statements:
        """Notes how many bytes each statement inserts."""

        def run(self, statement: str, values: tuple[bytes, ...]) -> int:
            assert statement.count("(?)") == len(values)
            sizes.append(sum(map(len, values)))
            return len(values)

    rows = [(bytes(1 << 22),)] * 12
    insert_rows(Statements(), "staged", "bodies", rows)  # type: ignore[arg-type]
    assert sum(sizes) == 12 << 22 and max(sizes) <= MAX_STATEMENT_BYTES + (1 << 22)
