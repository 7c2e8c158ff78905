"""Files that claim to be larger than they are, or that unfold to more than memory holds."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from deniable import count, decode
from deniable.analysis import counting
from deniable.analysis.counting import MAX_REPORTS, PairCounts, read_counts
from deniable.columns import arrow, read, scan, write
from deniable.columns.arrow import schema_of, to_arrow
from deniable.columns.batch import ReportBatch, from_bodies
from deniable.columns.files import partitions
from deniable.errors import InputError
from tests.surveys import make_survey

SURVEY = make_survey(
    '[questions.dark]\nkind = "boolean"\nepsilon = 1\n'
    '[questions.ads]\nkind = "boolean"\nepsilon = 1\n'
)


def zeros(count: int) -> ReportBatch:
    return from_bodies(bytes(count * SURVEY.body_size), SURVEY)


@pytest.mark.slow
def test_a_small_file_cannot_unfold_to_any_size(tmp_path: Path) -> None:
    """Without the limit, each partition of it would be cut from a row group in memory."""
    path = tmp_path / "bomb.parquet"
    table = pa.Table.from_batches([to_arrow(zeros(5_000_000))])
    pq.write_table(table, path, compression="none", row_group_size=len(table))
    assert path.stat().st_size < 100_000
    for using in (read, lambda path: list(scan(path)), lambda path: decode(SURVEY, path, "dark")):
        with pytest.raises(InputError, match=r"bomb\.parquet: row group 0 has 5,000,000 rows"):
            using(path)


def test_the_limit_is_in_bytes_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, batch = tmp_path / "x.parquet", zeros(100)
    write(path, batch)
    size = 100 * sum(field.type.bit_width for field in schema_of(SURVEY)) // 8
    monkeypatch.setattr(arrow, "MAX_READ_BYTES", size)
    assert read(path) == batch
    monkeypatch.setattr(arrow, "MAX_READ_BYTES", size - 1)
    with pytest.raises(InputError, match=f"{size} bytes in memory"):
        read(path)


@pytest.mark.parametrize("codec, accepted", [("snappy", True), ("zstd", False), ("gzip", False)])
def test_which_compression_is_read(codec: str, accepted: bool, tmp_path: Path) -> None:
    path = tmp_path / "x.parquet"
    pq.write_table(pa.Table.from_batches([to_arrow(zeros(100))]), path, compression=codec)
    if accepted:
        assert read(path) == zeros(100)
        return
    with pytest.raises(InputError, match=f"compressed with {codec.upper()}"):
        read(path)


def test_a_file_that_changes_after_it_was_listed_is_checked_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "x.parquet"
    write(path, zeros(10))
    (part,) = partitions(path)
    write(path, zeros(100))
    monkeypatch.setattr(arrow, "MAX_READ_ROWS", 50)
    with pytest.raises(InputError, match="row group 0 has 100 rows"):
        part.load()


def test_a_column_with_more_values_than_rows_is_refused(tmp_path: Path) -> None:
    """The footer says both; the reader would believe the column."""
    path = tmp_path / "x.parquet"
    write(path, zeros(300))
    whole, messages = path.read_bytes(), []
    footer = len(whole) - 8 - int.from_bytes(whole[-8:-4], "little")
    was, claimed = b"\xd8\x04", b"\xd6\x7f"  # 300 and 8,171 as Thrift writes them
    at = whole.find(was, footer)
    while at >= 0:
        path.write_bytes(whole[:at] + claimed + whole[at + 2 :])
        try:
            read(path)
        except InputError as error:
            messages.append(str(error))
        at = whole.find(was, at + 1)
    wrong = [message for message in messages if "300 rows, but 8,171 values of" in message]
    assert len(wrong) == 3, messages


# --- counts --------------------------------------------------------------------------------------


def counts(total: int) -> PairCounts:
    return PairCounts("00", ("x", "y"), np.array([[[0, 0], [0, total]]]))


def test_counts_whose_sums_would_overflow_are_refused() -> None:
    assert (counts(MAX_REPORTS - 1) + counts(1)).reports == MAX_REPORTS
    with pytest.raises(InputError, match="too large"):
        counts(2**63 - 1)
    with pytest.raises(InputError, match="too large"):
        counts(MAX_REPORTS) + counts(MAX_REPORTS)
    with pytest.raises(InputError, match="these are no counts"):
        PairCounts("00", ("x", "y"), np.full((1, 2, 2), 2**64 - 1, np.uint64))


def test_counts_that_unfold_to_any_size_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "counts.npz"
    saved = count(SURVEY, zeros(100), ["dark", "ads"])
    saved.save(path)
    assert read_counts(path) == saved
    monkeypatch.setattr(counting, "MAX_COUNTERS", 10)
    with pytest.raises(InputError, match=r"counts\.npz does not hold counts"):
        read_counts(path)
