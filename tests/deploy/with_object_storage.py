"""Stores on object storage that is killed, answers with errors, or cuts connections.

`make test-deploy` calls this where SeaweedFS is installed. The name keeps it out of `make test`,
which must not need it; tests/store/test_remote_folder.py runs there.
"""

from __future__ import annotations

import os
import random
import secrets
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

import deniable.store
from deniable.errors import StoreError, StoreUnavailable
from deniable.store import Outcome, Store, Upload
from deniable.store.remote_folder import RemoteFolder
from tests import object_storage
from tests.faults.test_compactor_kill import OTHER, fill, killed_at, verify
from tests.object_storage import CUT_AFTER, CUT_BEFORE, FAIL_AFTER, PASS, Proxy, Storage
from tests.uploads import DAY, MARKS, kept, reports_of, upload

BUCKET = "s3://reports"


@pytest.fixture(scope="module")
def storage() -> Iterator[Storage]:
    """A server of our own; without its program, a skip or in CI a failure."""
    if object_storage.program() is None:
        (pytest.fail if os.environ.get("CI") else pytest.skip)(object_storage.MISSING)
    server = Storage()
    yield server
    server.remove()


@pytest.fixture(autouse=True)
def connected(storage: Storage, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let this process and its children use the storage."""
    connect(storage.environment, monkeypatch)


def connect(environment: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    import s3fs

    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    s3fs.S3FileSystem.clear_instance_cache()  # an instance keeps the address it was made with


@pytest.fixture
def proxy(storage: Storage, monkeypatch: pytest.MonkeyPatch) -> Iterator[Proxy]:
    with Proxy(storage) as found:
        connect(found.environment, monkeypatch)
        yield found


KINDS = ("folder", "segments")


def url_of(kind: str, folder: Path) -> str:
    """A new store: a folder in the storage, or a SQLite file with its segments there."""
    remote = f"{BUCKET}/{secrets.token_hex(8)}"
    return remote if kind == "folder" else f"{folder}/reports.db?segments={remote}"


@pytest.mark.parametrize("kind", KINDS)
def test_a_store_keeps_everything_once(kind: str, tmp_path: Path, storage: Storage) -> None:
    url = url_of(kind, tmp_path)
    uploads = [upload(60) for _ in range(4)]
    with deniable.store.open(url, create=True) as store:
        store.add_survey(MARKS)
        assert store.append(uploads[:2]) == [Outcome.STORED] * 2
        assert store.compact(at_least=50, today=DAY).reports == 120
        assert store.append([*uploads[1:]]) == [Outcome.REPEATED, Outcome.STORED, Outcome.STORED]
    storage.kill()
    storage.start()
    with deniable.store.open(url.partition("?")[0]) as store:
        assert kept(store) == reports_of(uploads) and store.check() == []
        assert store.compact(at_least=50, today=DAY).reports == 120
        assert kept(store) == reports_of(uploads) and store.check() == []
        assert store.delete(MARKS) == 240 and kept(store) == {}


def test_a_backup_goes_to_the_storage_and_back(tmp_path: Path) -> None:
    there, back = url_of("folder", tmp_path), tmp_path / "back"
    with deniable.store.open(tmp_path / "reports", create=True) as store:
        store.add_survey(MARKS)
        store.append(uploads := [upload(60), upload(60)])
        store.compact(at_least=50, today=DAY)
        store.backup(there)
    with deniable.store.open(there) as copy:
        assert kept(copy) == reports_of(uploads) and copy.check() == []
        copy.backup(back)
    with deniable.store.open(back) as copy:
        assert kept(copy) == reports_of(uploads)


def test_the_command_line_uses_it(tmp_path: Path, storage: Storage) -> None:
    url = url_of("folder", tmp_path)
    with deniable.store.open(tmp_path / "reports.db", create=True) as store:
        store.add_survey(MARKS)
        store.append([upload(60), upload(60)])
    shown = [
        said("import", url, str(tmp_path / "reports.db")),
        said("compact", url, "--at-least", "50"),
        said("store", "status", url),
        said("store", "check", url),
    ]
    assert "120 new" in shown[0] and "120 reports" in shown[2] and "No problems" in shown[3]


def said(*arguments: str, code: int = 0, **variables: str) -> str:
    """Run a command in a process of its own; return what it printed."""
    done = subprocess.run(
        [sys.executable, "-m", "deniable", *arguments],
        env={**os.environ, **variables}, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == code, done.stdout + done.stderr
    assert "Traceback" not in done.stderr, done.stderr
    return done.stdout + done.stderr


# --- what operators get wrong --------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_a_missing_bucket_is_told_and_not_created(
    kind: str, tmp_path: Path, storage: Storage
) -> None:
    url = url_of(kind, tmp_path).replace(BUCKET, "s3://repotrs")
    with pytest.raises(StoreError, match="bucket does not exist; create the bucket"):
        deniable.store.open(url, create=True)
    assert storage.buckets() == ["reports"]


@pytest.mark.parametrize(
    ("variables", "text"),
    [
        ({"AWS_SECRET_ACCESS_KEY": "wrong"}, "refuses access"),
        ({"AWS_ACCESS_KEY_ID": "wrong"}, "refuses access"),
        ({"AWS_ACCESS_KEY_ID": "", "AWS_SECRET_ACCESS_KEY": ""}, "Unable to locate credentials"),
        ({"AWS_ENDPOINT_URL": "http://127.0.0.1:1"}, "Could not connect to the endpoint"),
    ],
    ids=["secret", "key", "none", "address"],
)
def test_wrong_settings_are_told_in_one_line(
    tmp_path: Path, variables: dict[str, str], text: str
) -> None:
    variables |= {"HOME": str(tmp_path)}  # no credentials in files
    url = url_of("folder", tmp_path)
    with deniable.store.open(tmp_path / "some.db", create=True) as store:
        store.add_survey(MARKS)
    shown = said("import", url, str(tmp_path / "some.db"), code=4, **variables)
    assert text in shown and url in shown and len(shown.splitlines()) == 1, shown


# --- interruptions -------------------------------------------------------------------------------


def check_folder_killed(folder: Path, every: int) -> int:
    """Kill the compaction of a folder in the storage before its requests; return how often.

    The killed process leaves its lock behind; the next one sees that it is dead.
    """
    base = url_of("folder", folder)
    uploads = fill(base)
    steps = killed_at(base, f"{base}-copies", "compact", every)
    for number in steps:
        verify(f"{base}-copies/{number}", uploads, [reports_of(uploads)])
    return len(steps)


def check_segments_killed(folder: Path, action: str, every: int) -> int:
    """Kill a change of a SQLite store whose segments are in the storage; return how often."""
    base, copies = folder / "base", folder / "copies"
    base.mkdir()
    copies.mkdir()
    uploads = fill(url_of("segments", base))
    steps = killed_at(str(base), copies, action, every)
    whole = [reports_of(uploads)]
    if action == "delete":
        whole.append(reports_of([u for u in uploads if u.digest == OTHER.digest]))
    for number in steps:
        verify(str(copies / str(number)), uploads, whole)
    return len(steps)


def test_a_folder_killed_at_any_step(tmp_path: Path) -> None:
    assert check_folder_killed(tmp_path, every=1) > 8


@pytest.mark.parametrize("action", ["compact", "delete"])
def test_segments_killed_at_any_step(tmp_path: Path, action: str) -> None:
    assert check_segments_killed(tmp_path, action, every=4) > 3


class Retrying:
    """Appends and compacts until it succeeds, as clients and the collector do."""

    def __init__(self, store: Store) -> None:
        self.store, self.failures = store, 0

    def append(self, uploads: list[Upload]) -> set[Outcome]:
        while True:
            try:
                return set(self.store.append(uploads))
            except StoreUnavailable:
                self.failures += 1

    def compact(self) -> None:
        while True:
            try:
                self.store.compact(at_least=50, today=DAY)
                return
            except StoreUnavailable:
                self.failures += 1


@pytest.mark.parametrize("kind", KINDS)
def test_answers_with_errors_and_cut_connections_lose_and_double_nothing(
    kind: str, tmp_path: Path, proxy: Proxy
) -> None:
    """Every fifth request that writes fails, before or after the storage has done it.

    The driver repeats these. All repetitions of one request fail, so that the store has to.
    """
    rng, paths = random.Random(7), list[str]()
    uploads = [upload(30) for _ in range(12)]
    with deniable.store.open(url_of(kind, tmp_path), create=True) as store:
        store.add_survey(MARKS)

        retrying = Retrying(store)

        def choose(method: str, path: str) -> int:
            if method in ("GET", "HEAD"):
                return PASS
            paths.append(path)
            if retrying.failures == 0 and path == paths[min(4, len(paths) - 1)]:
                return rng.choice((500, 503, FAIL_AFTER))
            acts = (500, 503, CUT_BEFORE, CUT_AFTER, FAIL_AFTER)
            return rng.choice(acts) if rng.random() < 0.2 else PASS

        proxy.choose = choose
        for start in range(0, len(uploads), 3):
            done = retrying.append(uploads[start : start + 3])
            assert done <= {Outcome.STORED, Outcome.REPEATED}
            retrying.compact()
        proxy.choose = lambda *_: PASS
        assert retrying.failures > 0
        assert kept(store) == reports_of(uploads) and store.check() == []


@pytest.mark.parametrize("status", [500, 503, FAIL_AFTER])
def test_storage_that_fails_for_longer_is_unavailable(
    tmp_path: Path, proxy: Proxy, status: int
) -> None:
    with deniable.store.open(url_of("segments", tmp_path), create=True) as store:
        store.add_survey(MARKS)
        uploads = [upload(60), upload(60)]
        proxy.choose = lambda *_: status
        store.append(uploads)  # uploads do not wait for the storage
        with pytest.raises(StoreUnavailable, match="cannot read or write s3://reports/"):
            store.compact(at_least=50, today=DAY)
        proxy.choose = lambda *_: PASS
        assert kept(store) == reports_of(uploads)
        assert store.compact(at_least=50, today=DAY).reports == 120
        assert kept(store) == reports_of(uploads) and store.check() == []
        assert len(store._location.names("")) == 1  # type: ignore[attr-defined]


# --- two writers ---------------------------------------------------------------------------------


def test_writers_take_turns(tmp_path: Path) -> None:
    """Two processes would compact the same uploads; here two stores do, in threads."""
    url = url_of("folder", tmp_path)
    uploads = [upload(10) for _ in range(24)]
    with deniable.store.open(url, create=True) as store:
        store.add_survey(MARKS)

    def write(order: list[Upload]) -> None:
        with deniable.store.open(url) as own:
            retrying = Retrying(own)
            for start in range(0, len(order), 6):
                retrying.append(order[start : start + 6])
                retrying.compact()

    threads = [threading.Thread(target=write, args=(o,)) for o in (uploads, uploads[::-1])]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    with deniable.store.open(url) as store:
        assert kept(store) == reports_of(uploads) and store.check() == []
        assert not store.unlock(), "no lock is left"


def test_only_one_of_many_gets_the_lock(tmp_path: Path) -> None:
    """The storage decides, in one conditional write."""
    url = url_of("folder", tmp_path)
    won: list[bool] = []

    def attempt(number: int) -> None:
        won.append(RemoteFolder(url)._try_lock(b"%d" % number))

    threads = [threading.Thread(target=attempt, args=(i,)) for i in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert won.count(True) == 1 and len(won) == 12
