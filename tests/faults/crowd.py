"""Reports with serial numbers in their bits, so that each can be identified in a store."""

from __future__ import annotations

import secrets
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import count

import numpy as np

from deniable import store
from deniable.columns import ReportBatch
from deniable.survey.report import BATCH, REPORT, header
from tests.surveys import make_survey

SURVEY = make_survey(
    """
[questions.q]
kind = "string"
hashes = 2
p = 0.25
q = 0.75
""",
    name="faults",
)
SERIAL = 8
"""Bytes of a serial number, little-endian, at the start of the 128 bits."""


def bodies(first: int, reports: int) -> bytes:
    """Return reports numbered from `first`."""
    rows = np.zeros((reports, SURVEY.body_size), np.uint8)
    serials = np.arange(first, first + reports, dtype="<u8")
    rows[:, 2 : 2 + SERIAL] = serials.view(np.uint8).reshape(-1, SERIAL)
    return rows.tobytes()


def batch(first: int, reports: int) -> bytes:
    """Return a wire batch of numbered reports."""
    return header(SURVEY, BATCH) + reports.to_bytes(4, "little") + bodies(first, reports)


def single(number: int) -> bytes:
    """Return one numbered wire report."""
    return header(SURVEY, REPORT) + bodies(number, 1)


@dataclass(eq=False)
class Sent:
    """One upload, as its sender knows it."""

    first: int
    reports: int
    key: str = field(default_factory=lambda: secrets.token_hex(16))
    acknowledged: bool = False

    @property
    def body(self) -> bytes:
        return batch(self.first, self.reports)


class Crowd:
    """Creates uploads with consecutive numbers, and remembers them."""

    def __init__(self, reports: int) -> None:
        self.reports, self.sent = reports, list[Sent]()
        self._next = count()

    def upload(self) -> Sent:
        """Create an upload."""
        self.sent.append(Sent(next(self._next) * self.reports, self.reports))
        return self.sent[-1]

    def acknowledged(self) -> int:
        """Return the uploads that were acknowledged."""
        return sum(one.acknowledged for one in self.sent)


def serials(batches: Iterable[ReportBatch]) -> Iterator[int]:
    """Return the serial numbers of reports."""
    for found in batches:
        yield from found.bits[0][0][:, :SERIAL].copy().view("<u8").reshape(-1).tolist()


def stored(url: str) -> list[int]:
    """Return the serial numbers in the store, sorted."""
    with store.open(url) as kept:
        return sorted(serials(kept.scan(SURVEY)))


def differences(url: str, crowd: Crowd) -> list[str]:
    """Return the differences between what was sent and what is stored, one sentence each."""
    found = Counter(stored(url))
    wrong = []
    with store.open(url) as kept:
        wrong += kept.check()
    twice = [serial for serial, times in found.items() if times > 1]
    if twice:
        wrong.append(f"{len(twice)} reports stored more than once, such as {twice[0]}")
    for one in crowd.sent:
        there = sum(serial in found for serial in range(one.first, one.first + one.reports))
        if one.acknowledged and there < one.reports:
            wrong.append(f"upload {one.first}: acknowledged, but {one.reports - there} lost")
        if 0 < there < one.reports:
            wrong.append(f"upload {one.first}: {there} of {one.reports} stored")
    sent = len(crowd.sent) * crowd.reports
    if strangers := [serial for serial in found if serial >= sent]:
        wrong.append(f"{len(strangers)} reports stored that nobody sent")
    return wrong
