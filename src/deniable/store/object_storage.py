"""Folders and files in object storage, at s3:// and gs:// URLs, through pyarrow's file systems."""

from __future__ import annotations

import io
import os
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass
from datetime import date
from functools import lru_cache
from typing import IO, Any
from urllib.parse import quote, unquote, urlsplit

import pyarrow as pa
from pyarrow.fs import FileSelector, FileSystem

from deniable.errors import InputError, StoreError, StoreUnavailable
from deniable.store.locations import Location, is_object_url

DEFAULT_OPTIONS = {"s3": "", "gs": "retry_limit_seconds=60"}
"""Options of a URL that has none. Without a limit, the file system of gs:// retries for 15
minutes."""
READ_AHEAD = 1 << 20
"""Bytes that a read fetches beyond those requested: about a row group."""


@dataclass(frozen=True)
class ObjectFolder(Location):
    """A folder in object storage, where files appear complete; folders need not be created.

    url : such as s3://BUCKET/FOLDER, perhaps with options of the file system: ?region=…
    """

    url: str

    def __post_init__(self) -> None:
        parts = urlsplit(self.url)
        if not is_object_url(self.url) or not parts.netloc:
            raise InputError(
                f"expected a folder, or the URL s3://BUCKET/FOLDER or gs://BUCKET/FOLDER of one, "
                f"got {self.url}"
            )
        if "@" in parts.netloc:
            raise InputError(
                f"the URL of {parts.netloc.rpartition('@')[2]} contains credentials: leave them "
                "out, and set them in the environment"
            )

    def put(self, name: str, data: bytes, day: date | None = None) -> None:
        """Upload the file in one operation."""
        # After an error the stream is closed, which may keep a part of the file. Segments are not
        # part of the store before `put` has returned.
        with self._opened(name) as (files, path), files.open_output_stream(path) as stream:
            stream.write(data)

    def get(self, name: str) -> bytes:
        """Return the whole file."""
        with self._opened(name) as (files, path), files.open_input_file(path) as file:
            return bytes(file.read())

    def remove(self, *names: str) -> None:
        """Delete the files that exist."""
        for name in names:
            with self._opened(name) as (files, path), suppress(FileNotFoundError):
                files.delete_file(path)

    @contextmanager
    def source(self, name: str) -> Iterator[IO[bytes]]:
        """Open the file, reading ahead by about a row group."""
        with self._opened(name) as (files, path):
            opened = files.open_input_file(path)
        with io.BufferedReader(_RemoteFile(self, name, opened), READ_AHEAD) as file:
            yield file

    def names(self) -> list[str]:
        """Return the names of the files in this folder, without those of folders in it, sorted."""
        with self._opened("") as (files, path):
            found = files.get_file_info(FileSelector(path.rstrip("/")))
            return sorted(each.base_name for each in found if each.is_file)

    def probe(self) -> None:
        """Write and delete a small file, so that wrong settings are noticed at once."""
        name = f"probe-{os.urandom(8).hex()}.tmp"
        self.put(name, b"")
        self.remove(name)

    @contextmanager
    def _opened(self, name: str) -> Iterator[tuple[FileSystem, str]]:
        """Give the file system and the path of a file, and translate errors of using it."""
        parts = urlsplit(self.url)
        options = parts.query or DEFAULT_OPTIONS[parts.scheme]
        path = f"{parts.netloc}{unquote(parts.path).rstrip('/')}/{name}"
        try:
            yield file_system(f"{parts.scheme}://{parts.netloc}?{options}"), path
        except FileNotFoundError as error:
            raise StoreError(
                f"{parts.scheme}://{path} is missing: restore the backup; if reports were "
                "deleted just now, read again"
            ) from error
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
            raise InputError(f"cannot use {self.url}: {error}") from error
        except OSError as error:
            raise StoreUnavailable(
                f"cannot read or write {self.url}: {error}; check the address, the credentials and "
                "what they permit, or try again"
            ) from error


@lru_cache(maxsize=16)
def file_system(bucket: str) -> FileSystem:
    """Return the file system at the URL of a bucket, with its options."""
    return FileSystem.from_uri(bucket)[0]


def report_files(url: str) -> list[str]:
    """Return the URL of a Parquet file, or those of the Parquet files in a folder."""
    address, *options = url.split("?", 1)
    if address.endswith(".parquet"):
        return [url]
    names = [name for name in ObjectFolder(url).names() if name.endswith(".parquet")]
    if not names:
        raise InputError(f"{url} has no files that end in .parquet")
    return ["?".join([f"{address.rstrip('/')}/{quote(name)}", *options]) for name in names]


def open_file(url: str) -> AbstractContextManager[IO[bytes]]:
    """Open the file at a URL."""
    address, *options = url.split("?", 1)
    folder, _, name = address.rpartition("/")
    return ObjectFolder("?".join([folder, *options])).source(unquote(name))


class _RemoteFile(io.RawIOBase):
    """An open file whose errors are translated: pyarrow would take them for a damaged file."""

    def __init__(self, folder: ObjectFolder, name: str, file: pa.NativeFile) -> None:
        self._folder, self._name, self._file = folder, name, file

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        return int(self._file.seek(offset, whence))

    def tell(self) -> int:
        return int(self._file.tell())

    def readinto(self, buffer: Any) -> int:
        with self._folder._opened(self._name):
            return int(self._file.readinto(buffer))

    def close(self) -> None:
        self._file.close()
        super().close()
