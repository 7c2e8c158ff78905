"""Test what is specific to the PostgreSQL store: lost connections, and several collectors."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

import deniable.store
from deniable.errors import StoreError, StoreUnavailable
from deniable.store import Outcome, Store
from deniable.store.postgres import PostgresStore
from tests.postgres import Server
from tests.uploads import DAY, MARKS, kept, reports_of, upload


@pytest.fixture
def server(postgres_server: Server) -> Server:
    postgres_server.wipe()
    return postgres_server


@pytest.fixture
def store(server: Server) -> Iterator[Store]:
    with deniable.store.open(server.url, create=True) as found:
        found.add_survey(MARKS)
        yield found


def test_a_url_without_a_host(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    """The usual form for a database on the same machine."""
    monkeypatch.setenv("PGHOST", str(server.folder))
    monkeypatch.setenv("PGUSER", "postgres")
    with deniable.store.open("postgresql:///postgres", create=True) as found:
        assert found.url == "postgresql:///postgres"
        assert found.surveys() == []


def test_a_lost_connection_is_made_again(store: Store, server: Server) -> None:
    uploads = [upload(3) for _ in range(5)]
    for one in uploads:
        server.kill_connections()
        assert store.append([one]) == [Outcome.STORED]
    assert kept(store) == reports_of(uploads)


def test_a_restarted_server_is_waited_for(store: Store, server: Server) -> None:
    uploads = [upload(3) for _ in range(30)]
    outcomes: list[Outcome] = []
    thread = threading.Thread(target=lambda: [outcomes.extend(store.append([u])) for u in uploads])
    thread.start()
    server.stop("immediate")
    server.start()
    thread.join()
    assert len(outcomes) == 30 and Outcome.CONFLICT not in outcomes
    assert kept(store) == reports_of(uploads)
    assert store.check() == []


def test_a_server_that_stays_away_is_unavailable(
    store: Store, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("deniable.store.postgres.RETRY_SECONDS", 0.2)
    one = upload(3)
    server.stop()
    try:
        with pytest.raises(StoreUnavailable, match="try again"):
            store.append([one])
        with pytest.raises(StoreUnavailable):
            deniable.store.open(server.url)
        with pytest.raises(StoreUnavailable):
            store.compact()
    finally:
        server.start()
    store.append([one])
    assert kept(store) == reports_of([one])


def test_collectors_share_a_store(store: Store, server: Server) -> None:
    """If two collectors receive the same uploads at once, each upload is stored by one of them."""
    uploads = [upload(2) for _ in range(60)]
    outcomes: list[Outcome] = []

    def collect(order: list[deniable.store.Upload]) -> None:
        with deniable.store.open(server.url) as own:
            for i in range(0, len(order), 6):
                outcomes.extend(own.append(order[i : i + 6]))

    threads = [threading.Thread(target=collect, args=(o,)) for o in (uploads, uploads[::-1])]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert outcomes.count(Outcome.STORED) == outcomes.count(Outcome.REPEATED) == 60
    assert kept(store) == reports_of(uploads)


def test_a_compactor_that_lost_its_lock_changes_nothing(
    store: Store, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A compaction loses its connection after writing a segment, which another one deletes."""
    assert isinstance(store, PostgresStore)
    uploads = [upload(60), upload(60)]
    store.append(uploads)
    put = store._location.put

    def cut(*arguments: object) -> None:
        put(*arguments)  # type: ignore[arg-type]
        server.kill_connections()
        with deniable.store.open(server.url) as other:
            other.compact(at_least=1000)  # too few: it only sweeps

    monkeypatch.setattr(store._location, "put", cut)
    with pytest.raises(StoreUnavailable):
        store.compact(at_least=50)
    monkeypatch.setattr(store._location, "put", put)
    assert kept(store) == reports_of(uploads) and store.check() == []
    assert store.compact(at_least=50).reports == 120
    assert kept(store) == reports_of(uploads) and store.check() == []


def test_segments_may_stand_in_a_folder(server: Server, tmp_path: Path) -> None:
    uploads = [upload(60), upload(60)]
    with deniable.store.open(f"{server.url}&segments={tmp_path}/far", create=True) as store:
        store.add_survey(MARKS)
        store.append(uploads)
        store.compact(at_least=50)
    assert len(list(tmp_path.rglob("*.parquet"))) == 1
    with deniable.store.open(server.url) as store:
        assert kept(store) == reports_of(uploads)
        assert store.delete(MARKS) == 120
    assert not list(tmp_path.rglob("*.parquet"))


def test_a_backup_moves_between_databases(store: Store, server: Server, tmp_path: Path) -> None:
    """Back up PostgreSQL to SQLite and back, with staged uploads, segments and keys."""
    uploads = [upload(60), upload(60), upload(5)]
    store.append(uploads[:2])
    store.compact(at_least=50, today=DAY)
    store.append(uploads[2:])
    store.backup(tmp_path / "copy.db")
    server.wipe()
    with deniable.store.open(tmp_path / "copy.db") as copy:
        copy.backup(server.url)
    with deniable.store.open(server.url) as back:
        assert kept(back) == reports_of(uploads) and back.check() == []
        assert back.append(uploads) == [Outcome.REPEATED] * 3


def test_a_newer_store_is_refused(store: Store, server: Server) -> None:
    with psycopg.connect(server.url, autocommit=True) as connection:
        connection.execute("UPDATE deniable.version SET number = 1000")
    with pytest.raises(StoreError, match=r"version 1000.*update deniable"):
        deniable.store.open(server.url)


def test_a_password_is_told_to_nobody(server: Server) -> None:
    secret = server.url.replace("postgres@", "postgres:hunter2@")
    with deniable.store.open(secret, create=True) as store:
        assert "hunter2" not in store.url
    with pytest.raises(StoreError) as caught:
        deniable.store.open("postgresql://me:hunter2@127.0.0.1:1/none")
    assert "hunter2" not in str(caught.value)
