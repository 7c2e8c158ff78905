"""A folder at an fsspec URL, such as s3://bucket/folder, where files appear complete.

Object storage knows no locks between machines. A process that writes therefore creates the file
`store.lock`, which must not exist, and deletes it at the end. Storage that creates files only if
they do not exist (conditional writes, as S3 and its successors have) makes this safe. Elsewhere two
processes that start within the same moment are noticed at the end, when one of them finds the lock
of the other.
"""

from __future__ import annotations

import io
import json
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import date
from pathlib import Path
from typing import IO, Any

from deniable.errors import DeniableError, InputError, StoreError, StoreUnavailable
from deniable.extras import missing_package, needs_packages
from deniable.store.locations import HIDDEN_SUFFIXES, Folder

READ_AHEAD = 1 << 20
"""Bytes that a read fetches beyond those requested: about a row group."""
READ_BUFFER = 1 << 16
OBJECT_STORAGE = {"s3", "s3a", "gs", "gcs", "abfs", "abfss", "az", "memory"}
"""Protocols without folders: to make one would create a bucket, which a typing error must not."""
LOCK = "store.lock"
LOCK_WAIT_SECONDS, LOCK_POLL_SECONDS = 30.0, 0.2
"""How long a process waits for another one that writes, and how often it looks."""
TAKEOVER_PAUSE_SECONDS = 0.5
"""How long to wait after taking over a lock, in case another process does the same."""


class RemoteFolder(Folder):
    """A folder at an fsspec URL."""

    def __init__(self, url: str) -> None:
        self.url = url
        with needs_packages("this folder"):
            import fsspec
        try:
            self._files, self._root = fsspec.core.url_to_fs(url)
        except ImportError as error:
            missing = error.__cause__ or error
            if isinstance(missing, ModuleNotFoundError):
                raise missing_package(missing, url) or _not_opened(url, error) from None
            raise _not_opened(url, error) from None
        except ValueError as error:
            raise _not_opened(url, error) from None
        self._has_folders = url.partition("://")[0] not in OBJECT_STORAGE
        self._own_locks: set[bytes] = set()
        """Locks that this object made and could not delete, because the storage did not answer."""

    def put(self, name: str, data: bytes, day: date | None = None) -> None:
        """Upload the file in one operation."""
        with self._writing(name) as path:
            self._make_folder_of(path)
            self._files.pipe_file(path, data)

    def _make_folder_of(self, path: str) -> None:
        """Create the folder of a file, where the file system has folders."""
        if self._has_folders:
            self._files.makedirs(path.rpartition("/")[0], exist_ok=True)

    def get(self, name: str) -> bytes:
        """Return the whole file."""
        with self._reading(name) as path:
            return bytes(self._files.cat_file(path))

    def remove(self, *names: str) -> None:
        """Delete the files that exist."""
        for name in names:
            with self._reading(name) as path, suppress(FileNotFoundError):
                self._files.rm_file(path)

    @contextmanager
    def source(self, name: str) -> Iterator[IO[bytes]]:
        """Open the file, reading ahead by about a row group."""
        with self._reading(name) as path:
            opened = self._files.open(path, "rb", block_size=READ_AHEAD)
        with io.BufferedReader(_RemoteFile(self, name, opened), READ_BUFFER) as file:
            yield file

    def names(self, under: str) -> list[str]:
        """Return the names of all files below this folder, sorted."""
        self._files.invalidate_cache()
        with self._writing(under) as path:
            start = len(path) - len(under)
            found = (name[start:] for name in self._files.find(path))
            # Some storage keeps empty folders, and fsspec takes an empty folder for a file.
            inside = (name for name in found if name != under)
            return sorted(name for name in inside if not name.endswith(HIDDEN_SUFFIXES))

    def probe(self) -> None:
        """Write and delete a small file, so that wrong settings are noticed at once."""
        name = f"probe-{os.urandom(8).hex()}.tmp"
        self.put(name, b"")
        self.remove(name)

    # --- the lock --------------------------------------------------------------------------------

    @contextmanager
    def exclusive(self) -> Iterator[None]:
        """Hold the lock file, which other processes respect."""
        mine = json.dumps({"lock": os.urandom(16).hex(), **_this_process()}).encode()
        self._own_locks.add(mine)
        deadline = time.monotonic() + LOCK_WAIT_SECONDS
        while not self._try_lock(mine):
            if time.monotonic() > deadline:
                raise StoreUnavailable(
                    f"another process writes to {self.url}, or was killed while it did: try again "
                    "later; if there is none, run deniable store accept STORE --lock"
                )
            time.sleep(LOCK_POLL_SECONDS)
        try:
            yield
        finally:
            theirs = self._lock()
            if theirs == mine:
                self.remove(LOCK)
            self._own_locks.discard(mine)
        if theirs != mine:
            raise StoreError(
                f"another process wrote to {self.url} at the same time, and reports may count "
                "twice: let only one process write, and run deniable store check"
            )

    def unlock(self) -> bool:
        """Remove the lock of a process that was killed; return whether there was one."""
        there = self._lock() is not None
        self.remove(LOCK)
        return there

    def _lock(self) -> bytes | None:
        """Return the content of the lock file, or None if there is none."""
        with self._reading(LOCK) as path:
            try:
                return bytes(self._files.cat_file(path))
            except FileNotFoundError:
                return None

    def _try_lock(self, mine: bytes) -> bool:
        """Create the lock file unless it exists; return whether it is ours."""
        found = self._lock()
        stale = found is not None and (found in self._own_locks or _is_dead(found))
        if stale:
            self.remove(LOCK)
        elif found is not None:
            return False
        self._own_locks = {mine}  # no other is left
        with self._writing(LOCK) as path:
            self._make_folder_of(path)
            try:
                self._files.pipe_file(path, mine, mode="create")
            except (FileNotFoundError, PermissionError):
                raise
            except OSError:
                pass  # it exists by now, or it was created although the answer got lost
        if stale:
            time.sleep(TAKEOVER_PAUSE_SECONDS)
        return self._lock() == mine

    # --- errors ----------------------------------------------------------------------------------

    @contextmanager
    def _reading(self, name: str) -> Iterator[str]:
        """Give the path of a file within the file system, and translate errors of using it."""
        try:
            yield f"{self._root.rstrip('/')}/{name}"
        except FileNotFoundError as error:
            raise StoreError(
                f"{self.url}/{name} is missing: restore it from a backup; if reports were deleted "
                "just now, read again"
            ) from error
        except DeniableError:
            raise
        except PermissionError as error:
            raise StoreUnavailable(
                f"{self.url} refuses access: {error}; check the credentials and what they permit"
            ) from error
        except Exception as error:  # each file system has errors of its own
            text = str(error) or type(error).__name__
            raise StoreUnavailable(f"cannot read or write {self.url}: {text}") from error

    @contextmanager
    def _writing(self, name: str) -> Iterator[str]:
        """Do the same for writing and listing, which need no file to exist."""
        with self._reading(name) as path:
            try:
                yield path
            except FileNotFoundError as error:
                raise StoreError(
                    f"cannot use {self.url}: {error}; create the bucket or folder first"
                ) from error


class _RemoteFile(io.RawIOBase):
    """An open file whose errors are translated: pyarrow would take them for a damaged file."""

    def __init__(self, folder: RemoteFolder, name: str, file: IO[bytes]) -> None:
        self._folder, self._name, self._file = folder, name, file

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        return self._file.seek(offset, whence)

    def tell(self) -> int:
        return self._file.tell()

    def readinto(self, buffer: Any) -> int:
        with self._folder._reading(self._name):
            data = self._file.read(len(buffer))
        buffer[: len(data)] = data
        return len(data)

    def close(self) -> None:
        self._file.close()
        super().close()


def _not_opened(url: str, error: Exception) -> InputError:
    """Return the error for a URL that fsspec cannot open."""
    return InputError(
        f"cannot open {url}: {error}; a store is FILE.db, sqlite:///FILE.db, postgresql://…, or a "
        "folder of Parquet files, as a path or a URL such as s3://…"
    )


# --- whether the process that holds a lock still runs --------------------------------------------


def _this_process() -> dict[str, str]:
    """Return the identity of this process and its machine on Linux; elsewhere, nothing."""
    with suppress(OSError):
        return {"machine": _machine(), "process": f"{os.getpid()} {_started(os.getpid())}"}
    return {}


def _machine() -> str:
    """Return what identifies the processes of this machine, since it was started."""
    boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    return f"{boot} {os.readlink('/proc/self/ns/pid')}"


def _started(pid: int) -> str:
    """Return when a process started, in ticks since the start of the machine."""
    # The name of the program may contain spaces, but it ends with the last parenthesis.
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19]


def _is_dead(lock: bytes) -> bool:
    """Return whether the process that made a lock ran on this machine, and certainly ended."""
    try:
        made = json.loads(lock)
        if made["machine"] != _machine():
            return False
        pid, started = made["process"].split()
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return False
    try:
        return bool(_started(int(pid)) != started)
    except OSError:
        return True
