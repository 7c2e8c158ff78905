"""Test that partitions hold the same reports, in any process and however they are cut."""

from __future__ import annotations

import os
import pickle
from datetime import date
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

import deniable.store
from deniable import ReportBatch
from deniable.analysis.source import MIN_PARTITION_ROWS, Source
from deniable.columns import write
from deniable.columns.arrow import MAX_ROW_GROUP_ROWS
from deniable.columns.batch import from_bodies, to_bodies, to_wire
from deniable.columns.files import partitions
from deniable.columns.partition import BatchPartition, LocalPartition, Partition
from deniable.errors import InputError
from deniable.store import Upload
from tests.uploads import MARKS

COUNT = 2 * MAX_ROW_GROUP_ROWS + 500


@pytest.fixture(scope="module")
def batch() -> ReportBatch:
    return from_bodies(np.random.default_rng(3).bytes(COUNT * MARKS.body_size), MARKS)


def found(parts: list[Partition]) -> ReportBatch:
    """Load the partition as another process would."""
    return ReportBatch.concat([pickle.loads(pickle.dumps(part)).load() for part in parts])


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["parquet", "dn", "memory"])
def test_the_same_reports_in_order(kind: str, batch: ReportBatch, tmp_path: Path) -> None:
    wholes: list[Partition] = [BatchPartition.of(batch)]
    if kind != "memory":
        write(tmp_path / f"reports.{kind}", batch)
        wholes = partitions(tmp_path / f"reports.{kind}", survey=batch.survey)
    if kind == "parquet":
        assert [whole.count for whole in wholes] == [MAX_ROW_GROUP_ROWS, MAX_ROW_GROUP_ROWS, 500]
        assert len(pickle.dumps(wholes)) < 10_000
    for rows in (1 << 30, 30_000, 777):
        parts = [part for whole in wholes for part in whole.cut(rows)]
        assert max(part.count for part in parts) <= rows
        assert [len(part.load()) for part in parts] == [part.count for part in parts]
        assert found(parts) == batch


def test_extents_of_many_wire_batches_are_cut_anywhere(batch: ReportBatch, tmp_path: Path) -> None:
    edges = [0, 1, 2, 500, 501, 1300]
    cut = [batch.select(slice(a, b)) for a, b in pairwise(edges)]
    (tmp_path / "reports.dn").write_bytes(b"".join(map(to_wire, cut)))
    (whole,) = partitions(tmp_path / "reports.dn", survey=batch.survey)
    assert found(list(whole.cut(333))) == batch.select(slice(0, 1300))


def test_a_store_gives_names_of_segments_and_copies_of_the_rest(
    batch: ReportBatch, tmp_path: Path
) -> None:
    with deniable.store.open(tmp_path / "x.db", create=True) as store:
        store.add_survey(batch.survey)
        for start in (0, 4000, 8000):
            some, key = to_bodies(batch.select(slice(start, start + 4000))), os.urandom(16)
            store.append([
                Upload(key, batch.survey.digest, 4000, some.tobytes(), date(2025, 3, 3), key)
            ])  # fmt: skip
            if start == 4000:
                store.compact(at_least=1000)
    parts = Source(tmp_path / "x.db", batch.survey).partitions
    travelling = [part for part in parts if isinstance(part, LocalPartition)]
    assert sum(part.count for part in travelling) == 4000
    assert sum(part.count for part in parts) == 12_000
    sizes = [len(pickle.dumps(part)) for part in parts if part not in travelling]
    assert max(sizes) < 5000
    assert len(found(parts)) == 12_000


def test_few_reports_are_still_shared(batch: ReportBatch) -> None:
    parts = Source(batch.select(slice(0, 20_000)), batch.survey).partitions
    assert len(parts) == 8
    (part,) = Source(batch.select(slice(0, MIN_PARTITION_ROWS)), batch.survey).partitions
    assert part.count == MIN_PARTITION_ROWS
    (part,) = Source(batch.select(slice(0, 0)), batch.survey).partitions
    assert part.count == 0 == len(part.load()), "nobody has answered yet"
    with pytest.raises(InputError, match="no reports to analyse"):
        _ = Source([], batch.survey).partitions
