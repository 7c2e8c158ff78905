"""Locations of whole files: a local folder, or whatever else fsspec can reach.

A file appears complete or not at all, and is durable when `put` returns.
"""

from __future__ import annotations

import errno
import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from datetime import UTC, date, datetime, time
from functools import lru_cache
from io import BytesIO
from pathlib import Path
from typing import IO

from deniable.client.files import locked, replace_private, sync_folder
from deniable.errors import InputError, StoreError, StoreFull, StoreUnavailable

PRIVATE_FOLDER = 0o700
_READ_AHEAD = 1 << 20
"""Bytes that are fetched beyond those asked for: about a row group."""


OpenSource = Callable[[str], AbstractContextManager[Path | IO[bytes]]]
"""Opens a file by its name, as pyarrow reads it: a path or an open file."""


class Location(ABC):
    """Files by name; a name has parts between slashes."""

    url: str
    shared = True
    """Whether other machines find the same files here, given what they need to."""

    @abstractmethod
    def put(self, name: str, data: bytes, day: date | None = None) -> None:
        """Write the file, durably; if it carries a time at all, it shall be that of the day."""

    @abstractmethod
    def get(self, name: str) -> bytes:
        """Return the whole file."""

    @abstractmethod
    def remove(self, name: str) -> None:
        """Delete the file, if it is there."""

    @contextmanager
    def source(self, name: str) -> Iterator[Path | IO[bytes]]:
        """Give the file as pyarrow reads it: a path or an open file."""
        yield BytesIO(self.get(name))


class Folder(Location):
    """A location that can be listed."""

    @abstractmethod
    def names(self, under: str) -> list[str]:
        """Return every complete file under this folder."""

    def room(self) -> int | None:
        """Return the bytes left; None if it cannot be known."""
        return None

    def exclusive(self) -> AbstractContextManager[None]:
        """Keep other processes out, where there is a way."""
        return nullcontext()


def folder(url: str) -> Folder:
    """Return the folder that a path or a URL names."""
    if "://" not in url or url.startswith("file://"):
        return LocalFolder(Path(url.removeprefix("file://")))
    return RemoteFolder(url)


def cached_source(location: Location) -> OpenSource:
    """Return the location's `source`, with copies of the files read last, which come in parts."""
    get = lru_cache(maxsize=4)(location.get)
    return lambda name: nullcontext(BytesIO(get(name)))


class LocalFolder(Folder):
    """A folder, made when first written to. Only its owner may read it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder.absolute()
        self.url = str(self.folder)

    def put(self, name: str, data: bytes, day: date | None = None) -> None:
        """Write under another name, sync, rename, sync the folder."""
        with self._path(name) as path:
            _make_folder(path.parent)
            replace_private(path, data)
            if day is not None:
                stamp = datetime.combine(day, time(), UTC).timestamp()
                os.utime(path, (stamp, stamp))

    def get(self, name: str) -> bytes:
        with self._path(name) as path:
            return path.read_bytes()

    def remove(self, name: str) -> None:
        """Delete the file, and what a killed `put` may have left of it."""
        with self._path(name) as path:
            path.unlink(missing_ok=True)
            path.with_name(path.name + ".tmp").unlink(missing_ok=True)

    @contextmanager
    def source(self, name: str) -> Iterator[Path]:
        with self._path(name) as path:
            yield path

    def names(self, under: str) -> list[str]:
        return sorted(
            path.relative_to(self.folder).as_posix()
            for path in (self.folder / under).rglob("*")
            if path.suffix not in (".tmp", ".lock") and path.is_file()
        )

    def room(self) -> int | None:
        existing = next(f for f in (self.folder, *self.folder.parents) if f.exists())
        if not hasattr(os, "statvfs"):  # pragma: no cover - Windows
            return None
        disk = os.statvfs(existing)
        return disk.f_bavail * disk.f_frsize

    def exclusive(self) -> AbstractContextManager[None]:
        """Hold the lock beside the folder, across processes."""
        return locked(self.folder)

    @contextmanager
    def _path(self, name: str) -> Iterator[Path]:
        path = self.folder / name
        with _translated(path):
            yield path


class RemoteFolder(Folder):
    """An fsspec URL, such as s3://bucket/folder; a file there appears when it is whole.

    There is no lock: one process at a time may write.
    """

    def __init__(self, url: str) -> None:
        try:
            import fsspec

            self._files, self._root = fsspec.core.url_to_fs(url)
        except (ImportError, ValueError) as error:
            raise InputError(f"{url} cannot be reached: {error}") from None
        self.url = url

    def put(self, name: str, data: bytes, day: date | None = None) -> None:
        """Upload the file at once."""
        with self._path(name) as path:
            self._files.makedirs(path.rsplit("/", 1)[0], exist_ok=True)
            self._files.pipe_file(path, data)

    def get(self, name: str) -> bytes:
        with self._path(name) as path:
            return bytes(self._files.cat_file(path))

    def remove(self, name: str) -> None:
        with self._path(name) as path, suppress(FileNotFoundError):
            self._files.rm_file(path)

    @contextmanager
    def source(self, name: str) -> Iterator[IO[bytes]]:
        with (
            self._path(name) as path,
            self._files.open(path, "rb", block_size=_READ_AHEAD) as file,
        ):
            yield file

    def names(self, under: str) -> list[str]:
        self._files.invalidate_cache()
        with self._path(under) as path:
            start = len(path) - len(under)
            return sorted(name[start:] for name in self._files.find(path))

    @contextmanager
    def _path(self, name: str) -> Iterator[str]:
        with _translated(name):
            yield f"{self._root.rstrip('/')}/{name}"


def _make_folder(folder: Path) -> None:
    """Make the folder and those above it, each durably."""
    if folder.is_dir():
        return
    _make_folder(folder.parent)
    folder.mkdir(mode=PRIVATE_FOLDER, exist_ok=True)
    sync_folder(folder.parent)


@contextmanager
def _translated(what: str | Path) -> Iterator[None]:
    """Raise the system's errors as ours."""
    try:
        yield
    except FileNotFoundError as error:
        raise StoreError(
            f"{what} is not there: it was deleted, perhaps while it was read; read again"
        ) from error
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise StoreFull(f"no room left for {what}: free some space") from error
        raise StoreUnavailable(f"{what}: {error}") from error
