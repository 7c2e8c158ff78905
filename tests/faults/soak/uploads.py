"""Numbered uploads: key, body and size follow from the number, so that any can be sent again.

An hour has hundreds of thousands of uploads, so that only a byte of each is kept.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from deniable.survey.report import BATCH_HEADER_SIZE, COUNT_SIZE
from tests.faults.crowd import SERIAL, SURVEY, batch, single

SPAN = 32
"""Serial numbers that are reserved for the reports of one upload."""
BATCH_REPORTS = 20
ACKNOWLEDGED, BATCH = 1, 2
"""Bits of the byte that is kept of an upload."""
Serials = NDArray[np.uint64]


class NumberedUpload:
    """One upload; it has what senders need of `crowd.Sent`."""

    def __init__(self, uploads: Uploads, number: int) -> None:
        self._uploads, self.number = uploads, number

    @property
    def is_batch(self) -> bool:
        return bool(self._uploads.state[self.number] & BATCH)

    @property
    def key(self) -> str:
        return hashlib.sha256(f"{self._uploads.seed}/{self.number}".encode()).hexdigest()[:32]

    @property
    def body(self) -> bytes:
        first = self.number * SPAN
        return batch(first, BATCH_REPORTS) if self.is_batch else single(first)

    @property
    def acknowledged(self) -> bool:
        return bool(self._uploads.state[self.number] & ACKNOWLEDGED)

    @acknowledged.setter
    def acknowledged(self, value: bool) -> None:
        if value:
            self._uploads.state[self.number] |= ACKNOWLEDGED


class Uploads:
    """All uploads of a run."""

    def __init__(self, seed: int) -> None:
        self.seed, self.state = seed, bytearray()

    def __len__(self) -> int:
        return len(self.state)

    def __getitem__(self, number: int) -> NumberedUpload:
        return NumberedUpload(self, number)

    def create(self, *, is_batch: bool = False) -> NumberedUpload:
        self.state.append(BATCH if is_batch else 0)
        return self[len(self.state) - 1]

    def unacknowledged(self) -> list[NumberedUpload]:
        return [self[i] for i, state in enumerate(self.state) if not state & ACKNOWLEDGED]

    def reports(self, *, acknowledged: bool) -> int:
        """Return the number of reports in all uploads, or only in those acknowledged."""
        state = np.frombuffer(bytes(self.state), np.uint8)
        chosen = (state & ACKNOWLEDGED).astype(bool) if acknowledged else slice(None)
        return int(_sizes(state)[chosen].sum())

    def differences(self, serials: Serials, acknowledged: bytes = b"") -> list[str]:
        """Return what is wrong with these reports from a store, one sentence each.

        acknowledged : the state when the reports were read, or earlier; what was acknowledged then
            must be there
        """
        state = np.frombuffer(bytes(self.state), np.uint8)
        sizes = _sizes(state)
        unique, times = np.unique(serials, return_counts=True)
        number, position = np.divmod(unique, np.uint64(SPAN))
        known = number < len(state)
        known[known] &= position[known] < sizes[number[known].astype(np.int64)]
        found = np.bincount(number[known].astype(np.int64), minlength=len(state))
        before = np.zeros(len(state), bool)
        before[: len(acknowledged)] = np.frombuffer(acknowledged, np.uint8) & ACKNOWLEDGED
        sentences = {
            "reports stored more than once": unique[times > 1],
            "reports stored that nobody sent": unique[~known],
            "acknowledged uploads lost": np.flatnonzero(before & (found < sizes)),
            "uploads stored in part": np.flatnonzero((found > 0) & (found < sizes)),
        }
        return [
            f"{len(which):,} {what}, such as {which[0]}"
            for what, which in sentences.items()
            if len(which)
        ]


def _sizes(state: NDArray[np.uint8]) -> NDArray[np.int64]:
    """Return the number of reports of each upload."""
    return np.where(state & BATCH, BATCH_REPORTS, 1)


def serials_of(wire: bytes) -> Serials:
    """Return the serial numbers of the reports in a .dn file."""
    return np.concatenate([np.zeros(0, np.uint64), *_batches(wire)])


def _batches(wire: bytes) -> Iterable[Serials]:
    start = 0
    while start < len(wire):
        bodies = start + BATCH_HEADER_SIZE
        count = int.from_bytes(wire[bodies - COUNT_SIZE : bodies], "little")
        end = bodies + count * SURVEY.body_size
        rows = np.frombuffer(wire[bodies:end], np.uint8).reshape(count, SURVEY.body_size)
        yield rows[:, 2 : 2 + SERIAL].copy().view("<u8").reshape(-1)
        start = end
