"""Where whole files are kept: a local folder, or whatever else fsspec can reach.

A file appears complete or not at all, and is durable when `put` returns.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from datetime import UTC, date, datetime, time
from functools import lru_cache
from io import BytesIO
from pathlib import Path
from typing import Any, Protocol

from deniable.client.files import locked, replace_private, sync_folder
from deniable.errors import InputError, StoreError, StoreFull, StoreUnavailable

PRIVATE_FOLDER = 0o700
_READ_AHEAD = 1 << 20
"""Bytes that are fetched beyond those asked for: about a row group."""


class Readable(Protocol):
    """Files that can be read by name."""

    def source(self, name: str) -> AbstractContextManager[Any]:
        """The file as pyarrow reads it: a path or an open file."""


class Place(Readable, Protocol):
    """Files by name; a name has parts between slashes."""

    url: str
    everywhere: bool
    """Whether other machines find the same files here, given what they need to."""

    def put(self, name: str, data: bytes, day: date | None = None) -> None:
        """Write the file, durably; if it carries a time at all, it shall be that of the day."""

    def get(self, name: str) -> bytes:
        """The whole file."""

    def remove(self, name: str) -> None:
        """Delete the file, if it is there."""


class Folder(Place, Protocol):
    """A place that can be looked into."""

    def names(self, under: str) -> list[str]:
        """Every file under this folder."""

    def room(self) -> int | None:
        """Bytes left; None if it cannot be known."""

    def alone(self) -> AbstractContextManager[None]:
        """Keeps other processes out, where there is a way."""


def folder(url: str) -> Folder:
    """The place that a path or a URL names."""
    if "://" not in url or url.startswith("file://"):
        return LocalPlace(Path(url.removeprefix("file://")))
    return RemotePlace(url)


class LocalPlace:
    """A folder, made when first written to. Only its owner may read it."""

    everywhere = True

    def __init__(self, folder: Path) -> None:
        self.folder = folder.absolute()
        self.url = str(self.folder)

    def put(self, name: str, data: bytes, day: date | None = None) -> None:
        """Write under another name, sync, rename, sync the folder."""
        path = self.folder / name
        with _translated(path):
            _make_folder(path.parent)
            replace_private(path, data)
            if day is not None:
                stamp = datetime.combine(day, time(), UTC).timestamp()
                os.utime(path, (stamp, stamp))

    def get(self, name: str) -> bytes:
        """The whole file."""
        with _translated(self.folder / name):
            return (self.folder / name).read_bytes()

    @contextmanager
    def source(self, name: str) -> Iterator[Path]:
        """The path."""
        with _translated(self.folder / name):
            yield self.folder / name

    def remove(self, name: str) -> None:
        """Delete the file, and what a killed `put` may have left of it."""
        path = self.folder / name
        with _translated(path):
            for each in (path, path.with_name(path.name + ".tmp")):
                with suppress(FileNotFoundError):
                    each.unlink()

    def names(self, under: str) -> list[str]:
        """Every complete file under this folder."""
        found = (self.folder / under).rglob("*")
        return sorted(
            path.relative_to(self.folder).as_posix()
            for path in found
            if path.suffix not in (".tmp", ".lock") and path.is_file()
        )

    def room(self) -> int | None:
        """Bytes left to us on this disk."""
        existing = next(f for f in (self.folder, *self.folder.absolute().parents) if f.exists())
        found = os.statvfs(existing) if hasattr(os, "statvfs") else None
        return found.f_bavail * found.f_frsize if found else None

    def alone(self) -> AbstractContextManager[None]:
        """Hold the lock beside the folder, across processes."""
        return locked(self.folder)


class RemotePlace:
    """An fsspec URL, such as s3://bucket/folder; a file there appears when it is whole."""

    everywhere = True

    def __init__(self, url: str) -> None:
        try:
            import fsspec

            self._files, self._root = fsspec.core.url_to_fs(url)
        except (ImportError, ValueError) as error:
            raise InputError(f"{url} cannot be reached: {error}") from None
        self.url = url

    def _path(self, name: str) -> str:
        return f"{self._root.rstrip('/')}/{name}"

    def put(self, name: str, data: bytes, day: date | None = None) -> None:
        """Upload the file at once."""
        with _translated(name):
            self._files.makedirs(self._path(name).rsplit("/", 1)[0], exist_ok=True)
            self._files.pipe_file(self._path(name), data)

    def get(self, name: str) -> bytes:
        """The whole file."""
        with _translated(name):
            return bytes(self._files.cat_file(self._path(name)))

    @contextmanager
    def source(self, name: str) -> Iterator[Any]:
        """The file, opened."""
        with (
            _translated(name),
            self._files.open(self._path(name), "rb", block_size=_READ_AHEAD) as file,
        ):
            yield file

    def remove(self, name: str) -> None:
        """Delete the file, if it is there."""
        with _translated(name), suppress(FileNotFoundError):
            self._files.rm_file(self._path(name))

    def names(self, under: str) -> list[str]:
        """Every file under this folder."""
        self._files.invalidate_cache()
        with _translated(under):
            found = self._files.find(self._path(under))
        start = len(self._path(""))
        return sorted(path[start:] for path in found)

    def room(self) -> int | None:
        """Unknown."""
        return None

    def alone(self) -> AbstractContextManager[None]:
        """No lock: one process at a time may write there."""
        return nullcontext()


class Recent:
    """Another place, to be read: of the files read last, copies, for those that come in parts."""

    def __init__(self, place: Place) -> None:
        self._get = lru_cache(maxsize=4)(place.get)

    @contextmanager
    def source(self, name: str) -> Iterator[Any]:
        """The file, in memory."""
        yield BytesIO(self._get(name))


def _make_folder(folder: Path) -> None:
    """Make the folder and those above it, each durably."""
    if folder.is_dir():
        return
    _make_folder(folder.parent)
    folder.mkdir(mode=PRIVATE_FOLDER, exist_ok=True)
    sync_folder(folder.parent)


@contextmanager
def _translated(what: str | Path) -> Iterator[None]:
    """The system's errors as ours."""
    import errno

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
