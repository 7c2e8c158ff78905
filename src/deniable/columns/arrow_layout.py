"""Layout of the record batches of an Arrow file, found without reading any of them.

An Arrow file ends with a footer, which says where each record batch is. Footer and record batches
are described by tables of FlatBuffers: a table begins with the distance to its list of fields, and
that list has the place of each field, or 0 if the table does not have it. See "Columnar format" in
the documentation of Arrow. pyarrow checks that all these places are within the file.
"""

from __future__ import annotations

from dataclasses import dataclass
from struct import unpack_from

MAGIC = b"ARROW1"
BLOCK_SIZE = 24
"""Bytes in the footer per record batch: where it begins (8), and its sizes."""
FOOTER_BATCHES, MESSAGE_HEADER, BATCH_COMPRESSION = 3, 2, 3
"""Numbers of the fields that are needed, in the tables Footer, Message and RecordBatch."""
CONTINUATION = b"\xff\xff\xff\xff"
"""Begins a message since version 0.15 of Arrow."""


@dataclass(frozen=True)
class FlatTable:
    """A table of FlatBuffers.

    data : bytes that contain the table
    at : where it begins
    """

    data: memoryview
    at: int

    def field(self, number: int) -> int:
        """Return where a field is, or 0 if the table does not have it."""
        (distance,) = unpack_from("<i", self.data, self.at)
        (size,) = unpack_from("<H", self.data, self.at - distance)
        if 4 + 2 * number >= size:
            return 0
        (offset,) = unpack_from("<H", self.data, self.at - distance + 4 + 2 * number)
        return self.at + int(offset) if offset else 0

    def referenced(self, number: int) -> int:
        """Return where the table or list is that a field refers to."""
        place = self.field(number)
        return _referenced(self.data, place)


def _referenced(data: memoryview, place: int) -> int:
    """Return where a reference leads that is stored at this place."""
    return place + int(unpack_from("<I", data, place)[0])


def is_compressed(file: memoryview, batch: int) -> bool:
    """Return whether a record batch of an Arrow file is compressed."""
    end = len(file) - len(MAGIC) - 4
    (size,) = unpack_from("<i", file, end)
    footer = file[end - size : end]
    blocks = FlatTable(footer, _referenced(footer, 0)).referenced(FOOTER_BATCHES)
    (begin,) = unpack_from("<q", footer, blocks + 4 + BLOCK_SIZE * batch)
    begin += 8 if bytes(file[begin : begin + 4]) == CONTINUATION else 4
    message = FlatTable(file, _referenced(file, begin))
    return bool(FlatTable(file, message.referenced(MESSAGE_HEADER)).field(BATCH_COMPRESSION))
