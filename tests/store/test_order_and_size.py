"""Stored reports do not reveal the order of arrival, and take bounded memory and files."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

import deniable.store
from deniable.columns.batch import to_bodies
from deniable.store import Store, compaction, snapshot
from deniable.store.compaction import uploads_of_segment
from deniable.store.segments import shuffle_bodies
from tests.uploads import DAY, MARKS, upload


def order(store: Store) -> list[bytes]:
    return [row.tobytes() for batch in store.scan(MARKS) for row in to_bodies(batch)]


@pytest.mark.parametrize("compacted", [False, True])
def test_reports_are_not_read_in_the_order_of_arrival(url: str, compacted: bool) -> None:
    """A hundred shuffled reports are in that order with a probability of 1e-158."""
    sent = [upload(1) for _ in range(100)]
    with deniable.store.open(url, create=True) as store:
        store.add_survey(MARKS)
        for each in sent:
            store.append([each])
        if compacted:
            assert store.compact(at_least=50, today=DAY).reports == 100
        read = order(store)
    assert sorted(read) == sorted(each.bodies for each in sent)
    assert read != [each.bodies for each in sent]


def test_a_snapshot_copies_a_bounded_amount_at_a_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copied: list[int] = []

    def recorded(bodies: bytes, size: int) -> NDArray[np.uint8]:
        copied.append(len(bodies))
        return shuffle_bodies(bodies, size)

    monkeypatch.setattr(snapshot, "shuffle_bodies", recorded)
    monkeypatch.setattr(snapshot, "MAX_BYTES_IN_MEMORY", 64)
    with deniable.store.open(tmp_path / "reports.db", create=True) as store:
        store.add_survey(MARKS)
        store.append([upload(2) for _ in range(10)])  # 32 bytes each
        assert len(order(store)) == 20
    assert [size for size in copied if size] == [64] * 5


@pytest.mark.parametrize(
    "at_least, staged, uploads",
    [
        (3, [(1, 10)] * 3, 0),  # only two others
        (3, [(1, 10)] * 4, 4),
        (3, [(1, 10)] * 20, 5),  # full at five uploads
        (3, [(1, 40)] * 20, 4),  # three have 120 bytes, but then two others do not suffice
        (1, [(1, 50)] * 20, 2),  # full at 100 bytes
        (1, [(1, 49)] * 20, 3),
        (3, [(9, 10), (1, 10), (1, 10)], 0),  # the largest has two others
        (3, [(9, 10), (1, 10), (1, 10), (1, 10)], 4),
        (9, [(1, 10)] * 20, 10),  # more uploads than five, for enough others
    ],
)
def test_how_many_uploads_make_a_segment(
    at_least: int,
    staged: list[tuple[int, int]],
    uploads: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(compaction, "MAX_SEGMENT_UPLOADS", 5)
    monkeypatch.setattr(compaction, "MAX_SEGMENT_BYTES", 100)
    assert uploads_of_segment(iter(staged), at_least) == uploads
