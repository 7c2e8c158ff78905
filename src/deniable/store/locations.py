"""Locations that hold whole files: their interface, and local folders.

A file appears complete or not at all, and is durable when `put` returns. `object_storage` has the
folders at URLs.
"""

from __future__ import annotations

import errno
import os
import re
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

    def probe(self) -> None:
        """Raise an error if files cannot be written here, so that wrong settings are noticed."""
        return


def is_object_url(text: str | Path) -> bool:
    """Return whether a string is the URL of a file or folder in object storage."""
    return str(text).startswith(("s3://", "gs://"))


def without_password(url: str) -> str:
    """Return a URL or path without user, password and options."""
    return re.sub(r"//[^/]*@", "//", url).partition("?")[0]


def location_of(url: str) -> Location:
    """Return the folder at a path, or at the URL of a folder in object storage."""
    if "://" not in url or url.startswith("file://"):
        return LocalFolder(Path(url.removeprefix("file://")))
    from deniable.store.object_storage import ObjectFolder

    return ObjectFolder(url)


def cached_source(location: Location) -> OpenSource:
    """Return the location's `source`, with a cache of the last files, which are read in parts."""
    get = lru_cache(maxsize=4)(location.get)
    return lambda name: nullcontext(BytesIO(get(name)))


class LocalFolder(Location):
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
            f"{file} is missing: restore the backup; if reports were deleted just now, read again"
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
