"""Object storage for tests: s3:// URLs lead to a local folder, through pyarrow's own file systems.

As in object storage, folders need not be created. Operations fail on demand.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any
from unittest import mock

import pyarrow as pa
from pyarrow.fs import FileSystemHandler, LocalFileSystem, PyFileSystem, SubTreeFileSystem

from deniable.store import object_storage

Fault = Callable[[str, str], None]


def _passed_on(name: str) -> Callable[..., Any]:
    def call(self: Objects, *arguments: Any) -> Any:
        return getattr(self.files, name)(*arguments)

    return call


Handler: Any = type(
    "Handler",
    (FileSystemHandler,),
    {name: _passed_on(name) for name in FileSystemHandler.__abstractmethods__},
)
"""Passes every call on to `files`, another file system."""


class _Reading(io.BytesIO):
    """A file that calls a function before each read."""

    def __init__(self, data: bytes, before: Callable[[], None]) -> None:
        super().__init__(data)
        self._before = before

    def read(self, size: int | None = -1) -> bytes:
        self._before()
        return super().read(size)


class Objects(Handler):
    """Objects in a folder; `fault` is called before or after each operation, and may raise."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(exist_ok=True)
        self.files = SubTreeFileSystem(str(folder), LocalFileSystem())
        self.fault: Fault = lambda operation, path: None

    def get_type_name(self) -> str:
        return "objects"

    def get_file_info(self, paths: list[str]) -> Any:
        return self.files.get_file_info(paths)

    def get_file_info_selector(self, selector: Any) -> Any:
        self.fault("before list", selector.base_dir)
        return self.files.get_file_info(selector)

    def open_input_file(self, path: str) -> pa.NativeFile:
        self.fault("before get", path)
        with self.files.open_input_file(path) as file:
            reading = _Reading(file.read(), partial(self.fault, "during get", path))
        return pa.PythonFile(reading, mode="r")

    def open_output_stream(self, path: str, metadata: Any) -> pa.NativeFile:
        self.fault("before put", path)
        self.files.create_dir(path.rpartition("/")[0], recursive=True)
        stream = self.files.open_output_stream(path)
        self.fault("after put", path)
        return stream

    def delete_file(self, path: str) -> None:
        self.fault("before remove", path)
        self.files.delete_file(path)
        self.fault("after remove", path)


@contextmanager
def objects_in(folder: Path) -> Iterator[Objects]:
    """Let s3:// URLs lead to a folder."""
    objects = Objects(folder)
    files = PyFileSystem(objects)
    with mock.patch.object(object_storage, "file_system", return_value=files):
        yield objects
