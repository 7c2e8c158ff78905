"""The number of the last acknowledged upload, in a small file next to a SQLite store.

SQLite reads its write-ahead log up to the first damaged byte, and ignores everything after it. The
store is then sound, but misses uploads that were acknowledged. This file shows how many: it is
written after each commit, so it never runs ahead of what is durable. It is only synced when it is
created: each time would cost as much as the commit itself. After a power failure it may be some
seconds old; it then misses a loss, but never reports a false one.
"""

from __future__ import annotations

import os
import struct
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO
from zlib import crc32

from deniable.client.files import PRIVATE_MODE, sync_folder

NUMBER, RECORD = struct.Struct("<Q"), struct.Struct("<QI")
"""The number alone, and with its checksum."""


class Acknowledged:
    """The file `FILE.db.last`; only one thread may use it at a time."""

    def __init__(self, database: Path) -> None:
        self.path = database.with_name(database.name + ".last")
        self._file: BinaryIO | None = None
        self._written = 0

    def read(self) -> int | None:
        """Return the number of the last acknowledged upload; None if it is missing or damaged."""
        try:
            number, checksum = RECORD.unpack(self.path.read_bytes()[: RECORD.size])
        except (OSError, struct.error):
            return None
        return int(number) if checksum == crc32(NUMBER.pack(number)) else None

    def create(self, number: int) -> None:
        """Write and sync the file, which is missing or damaged."""
        with suppress(OSError):
            os.fsync(self._record(number))
            sync_folder(self.path.parent)

    def write(self, number: int) -> None:
        """Record that uploads up to this number were acknowledged."""
        if number <= self._written:  # a later commit was faster, or this one stored nothing
            return
        self._written = number
        # The upload is stored: the client must be told so, whether this succeeds or not.
        with suppress(OSError):
            self._record(number)

    def _record(self, number: int) -> int:
        """Write the record; return the descriptor of the file."""
        if self._file is None:
            descriptor = os.open(self.path, os.O_RDWR | os.O_CREAT, PRIVATE_MODE)
            self._file = os.fdopen(descriptor, "r+b", buffering=0)
        # Another process may have written a higher number just now. Then this one is lower than
        # it could be until the next commit, which is safe.
        self._file.seek(0)
        self._file.write(RECORD.pack(number, crc32(NUMBER.pack(number))))
        return self._file.fileno()

    def remove(self) -> None:
        """Delete the file, which may be left over from an earlier store of this name."""
        self.path.unlink(missing_ok=True)

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            self._file.close()
            self._file = None
