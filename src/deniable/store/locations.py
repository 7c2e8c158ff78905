"""Locations that hold whole files: their interface, and local folders.

A file appears complete or not at all, and is durable when `put` returns. `remote_folder` has the
folders that fsspec reaches, such as object storage.
"""

from __future__ import annotations

import errno
import os
import shutil
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from datetime import UTC, date, datetime, time
from functools import lru_cache
from io import BytesIO
from pathlib import Path
from typing import IO

from deniable.client.files import locked, replace_private, sync_folder
from deniable.errors import StoreError, StoreForbidden, StoreFull, StoreUnavailable

PRIVATE_FOLDER = 0o700
HIDDEN_SUFFIXES = (".tmp", ".lock")
"""Endings of files that are not part of what a folder holds."""

OpenSource = Callable[[str], AbstractContextManager[Path | IO[bytes]]]
"""Opens a file by name, in a form that pyarrow reads: a path or an open file."""


class Location(ABC):
    """Files by name, where a name may contain slashes."""

    url: str
    shared = True
    """Whether other machines can read the same files by this URL."""

    @abstractmethod
    def put(self, name: str, data: bytes, day: date | None = None) -> None:
        """Write the file durably. Its modification time becomes the start of `day`, if given."""

    @abstractmethod
    def get(self, name: str) -> bytes:
        """Return the whole file."""

    @abstractmethod
    def remove(self, *names: str) -> None:
        """Delete the files that exist, durably: a power loss does not bring them back."""

    @contextmanager
    def source(self, name: str) -> Iterator[Path | IO[bytes]]:
        """Open the file in a form that pyarrow reads: a path or an open file."""
        yield BytesIO(self.get(name))


class Folder(Location):
    """A location whose files can be listed."""

    @abstractmethod
    def names(self, under: str) -> list[str]:
        """Return the names of all complete files below this folder, sorted."""

    def is_empty(self) -> bool:
        """Return whether there are no files yet, except what a killed `put` left behind."""
        return not self.names("")

    def room(self) -> int | None:
        """Return the free bytes, or None if they cannot be determined."""
        return None

    @abstractmethod
    def exclusive(self) -> AbstractContextManager[None]:
        """Lock out other processes."""

    def unlock(self) -> bool:
        """Remove the lock of a process that was killed; return whether there was one."""
        return False

    def probe(self) -> None:
        """Raise StoreError if files cannot be written here."""


def folder(url: str) -> Folder:
    """Return the folder at a path or URL."""
    if "://" not in url or url.startswith("file://"):
        return LocalFolder(Path(url.removeprefix("file://")))
    from deniable.store.remote_folder import RemoteFolder

    return RemoteFolder(url)


def cached_source(location: Location) -> OpenSource:
    """Return the location's `source`, with a cache of the last files, which are read in parts."""
    get = lru_cache(maxsize=4)(location.get)
    return lambda name: nullcontext(BytesIO(get(name)))


class LocalFolder(Folder):
    """A local folder that only its owner may read, created by the first `put`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder.absolute()
        self.url = str(self.folder)

    def put(self, name: str, data: bytes, day: date | None = None) -> None:
        """Write under a temporary name, sync, rename, and sync the folder."""
        with self.source(name) as path:
            _make_folder(path.parent)
            replace_private(path, data)
            if day is not None:
                stamp = datetime.combine(day, time(), UTC).timestamp()
                os.utime(path, (stamp, stamp))

    def get(self, name: str) -> bytes:
        """Return the whole file."""
        with self.source(name) as path:
            return path.read_bytes()

    def remove(self, *names: str) -> None:
        """Delete the files, and any temporary files that a killed `put` left behind."""
        for name in names:
            with self.source(name) as path:
                path.unlink(missing_ok=True)
                path.with_name(path.name + ".tmp").unlink(missing_ok=True)
        for folder in sorted({(self.folder / name).parent for name in names}):
            if folder.is_dir():
                sync_folder(folder)

    def names(self, under: str) -> list[str]:
        """Return the names of all complete files below this folder, sorted."""
        return sorted(
            path.relative_to(self.folder).as_posix()
            for path in (self.folder / under).rglob("*")
            if path.suffix not in HIDDEN_SUFFIXES and path.is_file()
        )

    def is_empty(self) -> bool:
        """Return whether there are no files yet, except what a killed `put` left behind."""
        with _translate_errors(self.folder):
            there = self.folder.iterdir() if self.folder.exists() else iter(())
            return all(path.suffix == ".tmp" for path in there)

    def room(self) -> int:
        """Return the free bytes of the folder's disk."""
        existing = next(f for f in (self.folder, *self.folder.parents) if f.exists())
        return shutil.disk_usage(existing).free

    def exclusive(self) -> AbstractContextManager[None]:
        """Hold the lock file next to the folder, which other processes respect."""
        return lock_of(self.folder)

    @contextmanager
    def source(self, name: str) -> Iterator[Path]:
        """Give the path of a file, and translate errors of using it."""
        path = self.folder / name
        with _translate_errors(path):
            yield path


@contextmanager
def lock_of(store: Path) -> Iterator[None]:
    """Hold the lock file of a store, which other processes respect."""
    with ExitStack() as held:
        with _translate_errors(store.with_name(store.name + ".lock")):
            held.enter_context(locked(store))
        yield


def _make_folder(folder: Path) -> None:
    """Create the folder and its missing parents, each durably."""
    if folder.is_dir():
        return
    _make_folder(folder.parent)
    folder.mkdir(mode=PRIVATE_FOLDER, exist_ok=True)
    sync_folder(folder.parent)


@contextmanager
def _translate_errors(file: str | Path) -> Iterator[None]:
    """Raise errors of the file system as StoreError and its subclasses."""
    try:
        yield
    except FileNotFoundError as error:
        raise StoreError(
            f"{file} is missing: restore it from a backup; if reports were deleted just now, read "
            "again"
        ) from error
    except PermissionError as error:
        raise StoreForbidden(
            f"this user may not use {file}: run all commands on the store as the user that runs "
            "the collector, who must own its files"
        ) from error
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise StoreFull(f"no space left to write {file}: free some disk space") from error
        raise StoreUnavailable(f"cannot read or write {file}: {error.strerror or error}") from error
