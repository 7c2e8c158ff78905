"""Test folders on storage that fails, and the lock between processes that write to them.

The storage is in the memory of this process, and fails on demand. tests/deploy/with_object_storage
does the same with a server.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from typing import Any, ClassVar

import fsspec
import pytest
from fsspec.implementations.memory import MemoryFileSystem

import deniable.store
from deniable.errors import MissingPackage, StoreError, StoreUnavailable
from deniable.store import Outcome, Store, remote_folder
from deniable.store.parquet.folder_store import FolderStore
from deniable.store.remote_folder import LOCK, RemoteFolder
from tests.uploads import DAY, MARKS, kept, reports_of, upload

URL = "faulty://bucket/reports"


class FaultyFiles(MemoryFileSystem):
    """Files in memory; `fault` is called before and after each operation, and may raise."""

    protocol = "faulty"
    store: ClassVar[dict[str, Any]] = {}
    pseudo_dirs: ClassVar[list[str]] = [""]
    fault: ClassVar[Callable[[str, str], None]]

    def cat_file(self, path: str, *args: Any, **options: Any) -> bytes:
        FaultyFiles.fault("before get", path)
        return bytes(super().cat_file(path, *args, **options))

    def pipe_file(self, path: str, value: bytes, mode: str = "overwrite", **options: Any) -> None:
        FaultyFiles.fault("before put", path)
        super().pipe_file(path, value, mode, **options)
        FaultyFiles.fault("after put", path)

    def rm_file(self, path: str) -> None:
        FaultyFiles.fault("before remove", path)
        super().rm_file(path)
        FaultyFiles.fault("after remove", path)

    def open(self, path: str, mode: str = "rb", **options: Any) -> Any:
        FaultyFiles.fault("before open", path)
        return super().open(path, mode, **options)


fsspec.register_implementation("faulty", FaultyFiles, clobber=True)


@pytest.fixture(autouse=True)
def _working_storage(monkeypatch: pytest.MonkeyPatch) -> None:
    FaultyFiles.store.clear()
    FaultyFiles.fault = staticmethod(lambda *_: None)  # type: ignore[assignment]
    monkeypatch.setattr(remote_folder, "LOCK_WAIT_SECONDS", 0.05)
    monkeypatch.setattr(remote_folder, "LOCK_POLL_SECONDS", 0.01)
    monkeypatch.setattr(remote_folder, "TAKEOVER_PAUSE_SECONDS", 0.0)


def failing(error: Exception, when: str = "", path: str = "") -> None:
    """Let every operation fail that is named like this."""

    def fault(operation: str, where: str) -> None:
        if when in operation and path in where:
            raise error

    FaultyFiles.fault = staticmethod(fault)  # type: ignore[assignment]


# --- errors --------------------------------------------------------------------------------------


class CredentialsError(Exception):
    """An error of a file system that is no OSError, such as those of botocore."""


@pytest.mark.parametrize(
    ("error", "kind", "text"),
    [
        (CredentialsError("Unable to locate credentials"), StoreUnavailable, "locate credentials"),
        (PermissionError("Access Denied"), StoreUnavailable, "check the credentials"),
        (FileNotFoundError("no such bucket"), StoreError, "no such bucket; create the bucket"),
        (OSError(16, "Please reduce your request rate"), StoreUnavailable, "request rate"),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Exception) else "",
)
def test_errors_of_the_storage_are_told(error: Exception, kind: type, text: str) -> None:
    failing(error)
    for call in (
        lambda: FolderStore(URL, create=True),
        lambda: RemoteFolder(URL).put("x", b""),
        lambda: RemoteFolder(URL).probe(),
    ):
        with pytest.raises(kind, match=text) as caught:
            call()
        assert URL in str(caught.value)


def test_segments_are_tried_when_they_are_chosen(tmp_path: Path) -> None:
    failing(PermissionError("Access Denied"))
    with pytest.raises(StoreUnavailable, match="Access Denied"):
        deniable.store.open(f"{tmp_path}/reports.db?segments={URL}", create=True)
    failing(PermissionError("Access Denied"), "nothing")
    deniable.store.open(f"{tmp_path}/reports.db?segments={URL}", create=True).close()
    failing(PermissionError("Access Denied"))
    with deniable.store.open(f"{tmp_path}/reports.db") as store:  # uploads need no segments
        store.add_survey(MARKS)
        assert store.append([upload()]) == [Outcome.STORED]


def test_a_missing_driver_names_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "s3fs", None)
    with pytest.raises(MissingPackage, match=r"needs s3fs: pip install 'deniable\[s3\]'"):
        deniable.store.open("s3://bucket/reports")


def test_a_read_that_fails_is_not_taken_for_damage() -> None:
    with FolderStore(URL, create=True) as store:
        store.add_survey(MARKS)
        store.append([upload(60), upload(60)])
        store.compact(at_least=50, today=DAY)
        snapshot = store.snapshot(MARKS)
        for error in (OSError("503"), PermissionError("403"), CredentialsError("expired")):
            failing(error, "open", "segments")
            with pytest.raises(StoreUnavailable):
                list(snapshot.batches())


def test_errors_while_a_file_is_read_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    from fsspec.implementations.memory import MemoryFile

    folder = RemoteFolder(URL)
    folder.put("x", b"abc")

    def fails(*_: object) -> bytes:
        raise OSError("the connection was cut")

    monkeypatch.setattr(MemoryFile, "read", fails)
    with folder.source("x") as file, pytest.raises(StoreUnavailable, match="connection was cut"):
        file.read()


# --- interrupted changes -------------------------------------------------------------------------


def stores(tmp_path: Path, name: str) -> Store:
    url = URL if name == "folder" else f"{tmp_path}/reports.db?segments={URL}"
    return deniable.store.open(url, create=True)


@pytest.mark.parametrize("name", [pytest.param("folder", marks=pytest.mark.slow), "segments"])
def test_a_change_that_fails_anywhere_loses_and_doubles_nothing(tmp_path: Path, name: str) -> None:
    """Each operation of the storage fails once, before or after it took effect."""
    with stores(tmp_path, name) as store:
        store.add_survey(MARKS)
        for number in count():
            new, steps = [upload(30), upload(30), upload(30)], count()

            def fault(operation: str, path: str, steps: Any = steps, number: int = number) -> None:
                if next(steps) == number:
                    raise OSError("answered with 500")

            outcomes, compacted = [], False
            FaultyFiles.fault = staticmethod(fault)  # type: ignore[assignment]
            for _ in range(3):  # as a client and the collector's maintenance retry
                try:
                    if not outcomes:
                        outcomes = store.append(new)
                    compacted = compacted or bool(store.compact(at_least=50, today=DAY))
                except StoreUnavailable:
                    continue
            FaultyFiles.fault = staticmethod(lambda *_: None)  # type: ignore[assignment]
            assert compacted and set(outcomes) <= {Outcome.STORED, Outcome.REPEATED}
            assert kept(store) == reports_of(new) and store.check() == []
            assert store.delete(MARKS) == 90
            if next(steps) <= number:
                break
        assert number >= (20 if name == "folder" else 2)
        assert not [n for n in FaultyFiles.store if n.endswith((".lock", ".tmp"))]


# --- the lock ------------------------------------------------------------------------------------


@pytest.fixture
def store() -> Iterator[FolderStore]:
    with FolderStore(URL, create=True) as found:
        found.add_survey(MARKS)
        yield found


def test_a_second_writer_is_refused_until_the_first_is_done(store: FolderStore) -> None:
    with FolderStore(URL) as other:
        with store._folder.exclusive():
            assert kept(other) == {}, "reading needs no lock"
            for write in (
                lambda: other.append([upload()]),
                lambda: other.compact(),
                lambda: other.delete(MARKS),
            ):
                with pytest.raises(StoreUnavailable, match="another process writes to"):
                    write()
        assert other.append([upload()]) == [Outcome.STORED]


FOREIGN = b'{"lock": "00", "machine": "another", "process": "1 1"}'


def test_a_lock_of_another_machine_needs_the_operator(store: FolderStore) -> None:
    store._folder.put(LOCK, FOREIGN)
    with pytest.raises(StoreUnavailable, match="deniable store accept STORE --lock"):
        store.append([upload()])
    assert store.unlock() and not store.unlock()
    assert store.append([upload()]) == [Outcome.STORED]


def test_the_lock_of_a_killed_process_is_taken_over(store: FolderStore) -> None:
    code = (
        "import json\n"
        "from deniable.store.remote_folder import _this_process\n"
        "print(json.dumps(_this_process()))"
    )
    done = subprocess.run([sys.executable, "-c", code], check=True, stdout=subprocess.PIPE)
    store._folder.put(LOCK, done.stdout)
    assert store.append([upload()]) == [Outcome.STORED]


@pytest.mark.parametrize("lock", [b"", b"[]", b'{"machine": 7}', b'{"process": "1 1"}', b"\xff"])
def test_a_lock_that_says_nothing_is_respected(store: FolderStore, lock: bytes) -> None:
    store._folder.put(LOCK, lock)
    with pytest.raises(StoreUnavailable, match="another process"):
        store.append([upload()])


@pytest.mark.parametrize("when", ["after put", "before remove", "after remove", "before get"])
def test_our_own_lock_does_not_keep_us_out(store: FolderStore, when: str) -> None:
    """The storage did not answer when the lock was made or deleted."""
    failing(CredentialsError("no answer"), when, LOCK)
    with pytest.raises(StoreUnavailable, match="no answer"):
        store.append([upload(2)])
    failing(CredentialsError("no answer"), "nothing")
    store.append([upload(3)])
    assert sum(kept(store).values()) in (3, 5)


def test_a_lost_answer_to_the_lock_is_no_refusal(store: FolderStore) -> None:
    failing(OSError(22, "the file exists"), "after put", LOCK)
    assert store.append([upload()]) == [Outcome.STORED]


def test_storage_without_conditional_writes_notices_two_writers_at_the_end(
    store: FolderStore,
) -> None:
    with pytest.raises(StoreError, match="at the same time"), store._folder.exclusive():
        store._folder.put(LOCK, FOREIGN)  # as storage does that overwrites
