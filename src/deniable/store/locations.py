"""Locations that hold whole files: a local folder, or any file system that fsspec supports.

A file appears complete or not at all, and is durable when `put` returns.
"""

from __future__ import annotations

import errno
import os
import shutil
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
from deniable.extras import needs_packages

PRIVATE_FOLDER = 0o700
_READ_AHEAD = 1 << 20
"""Bytes that a remote read fetches beyond those requested: about a row group."""

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

    def room(self) -> int | None:
        """Return the free bytes, or None if they cannot be determined."""
        return None

    def exclusive(self) -> AbstractContextManager[None]:
        """Lock out other processes, where the location supports it."""
        return nullcontext()


def folder(url: str) -> Folder:
    """Return the folder at a path or URL."""
    if "://" not in url or url.startswith("file://"):
        return LocalFolder(Path(url.removeprefix("file://")))
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
            if path.suffix not in (".tmp", ".lock") and path.is_file()
        )

    def room(self) -> int:
        """Return the free bytes of the folder's disk."""
        existing = next(f for f in (self.folder, *self.folder.parents) if f.exists())
        return shutil.disk_usage(existing).free

    def exclusive(self) -> AbstractContextManager[None]:
        """Hold the lock file next to the folder, which other processes respect."""
        return locked(self.folder)

    @contextmanager
    def source(self, name: str) -> Iterator[Path]:
        """Give the path of a file, and translate errors of using it."""
        path = self.folder / name
        with _translate_errors(path):
            yield path


class RemoteFolder(Folder):
    """A folder at an fsspec URL, such as s3://bucket/folder, where files appear complete.

    There is no lock: only one process may write at a time.
    """

    def __init__(self, url: str) -> None:
        try:
            with needs_packages("this folder"):
                import fsspec

            self._files, self._root = fsspec.core.url_to_fs(url)
        except (ImportError, ValueError) as error:
            raise InputError(f"cannot open {url}: {error}") from None
        self.url = url

    def put(self, name: str, data: bytes, day: date | None = None) -> None:
        """Upload the file in one operation."""
        with self._path(name) as path:
            self._files.makedirs(path.rsplit("/", 1)[0], exist_ok=True)
            self._files.pipe_file(path, data)

    def get(self, name: str) -> bytes:
        """Return the whole file."""
        with self._path(name) as path:
            return bytes(self._files.cat_file(path))

    def remove(self, *names: str) -> None:
        """Delete the files that exist."""
        for name in names:
            with self._path(name) as path, suppress(FileNotFoundError):
                self._files.rm_file(path)

    @contextmanager
    def source(self, name: str) -> Iterator[IO[bytes]]:
        """Open the file, reading ahead by about a row group."""
        with self._path(name) as path, self._files.open(path, "rb", block_size=_READ_AHEAD) as file:
            yield file

    def names(self, under: str) -> list[str]:
        """Return the names of all files below this folder, sorted."""
        self._files.invalidate_cache()
        with self._path(under) as path:
            start = len(path) - len(under)
            return sorted(name[start:] for name in self._files.find(path))

    @contextmanager
    def _path(self, name: str) -> Iterator[str]:
        """Give the path of a file within the file system, and translate errors of using it."""
        with _translate_errors(name):
            yield f"{self._root.rstrip('/')}/{name}"


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
            f"{file} does not exist: it may have been deleted while it was read; read again"
        ) from error
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise StoreFull(f"no space left to write {file}: free some disk space") from error
        raise StoreUnavailable(f"cannot read or write {file}: {error.strerror or error}") from error
