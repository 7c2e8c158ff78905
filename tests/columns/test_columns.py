"""Test that columns convert without loss, and are checked as strictly as single reports."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deniable.columns import ReportBatch, from_wire, read, scan, to_wire, write
from deniable.columns.arrow import from_arrow, schema_of, to_arrow
from deniable.columns.batch import from_arrays, packed_numbers
from deniable.errors import DeniableError, InputError, WireError
from deniable.inference.marginal.bit_counts import count_bits
from deniable.simulation import simulate
from deniable.survey import Survey, from_batch, to_batch
from deniable.survey.report import BATCH_HEADER_SIZE
from tests.single_reports import batch_of, single_reports
from tests.vectors import make

# These strings are too long, or have characters outside the alphabet, on purpose.
pytestmark = pytest.mark.filterwarnings("ignore::deniable.errors.LossyAnswerWarning")
SURVEYS = {s.name: s for s in make.surveys()}
EVERY, URLS, PLAIN = SURVEYS["vectors"], SURVEYS["urls"], SURVEYS["plain"]


def crowd(survey: Survey, n: int = 200, seed: int = 1) -> ReportBatch:
    rng = np.random.default_rng(seed)
    values = {
        q.name: [make.answers(survey, f"w{i % 9}", i)[q.name] for i in range(n)]
        for q in survey.questions
    }
    return simulate(survey, values, rng=rng)


@pytest.mark.parametrize("survey", SURVEYS.values(), ids=SURVEYS.keys())
def test_wire_and_columns_say_the_same(survey: Survey) -> None:
    batch = crowd(survey)
    data = to_wire(batch)
    reports = from_batch(data, survey)
    assert single_reports(batch) == reports
    assert to_batch(reports) == data
    assert batch_of(reports) == batch == from_wire(data, survey)
    assert from_wire(memoryview(data), {survey.digest: survey}) == batch


@pytest.mark.parametrize("suffix", [".parquet", ".dn"])
@pytest.mark.parametrize("survey", SURVEYS.values(), ids=SURVEYS.keys())
def test_files_are_lossless(survey: Survey, suffix: str, tmp_path: Path) -> None:
    batch = crowd(survey)
    path = tmp_path / f"reports{suffix}"
    assert write(path, (batch.select(slice(i, i + 60)) for i in range(0, 200, 60))) == 200
    given = survey if suffix == ".dn" else None
    assert read(path, survey=given) == batch
    sizes = [len(b) for b in scan(path, survey=given, rows=50)]
    assert sum(sizes) == 200
    assert suffix == ".dn" or max(sizes) <= 50


def test_arrow_carries_the_survey() -> None:
    batch = crowd(EVERY)
    record = to_arrow(batch)
    assert from_arrow(record) == batch
    assert from_arrow(pa.Table.from_batches([record.slice(0, 70), record.slice(70)])) == batch
    assert from_arrow(record.slice(10, 5)) == batch.select(slice(10, 15))
    assert len(from_arrow(pa.Table.from_batches([], schema_of(EVERY)))) == 0
    assert record.schema.field("grams.1").type == pa.binary(5)
    with pytest.raises(InputError, match="not written by deniable"):
        from_arrow(record.replace_schema_metadata({}))
    with pytest.raises(InputError, match="expected columns"):
        from_arrow(record.drop_columns(["cohort"]))


@pytest.mark.slow
def test_arrow_does_not_load_pandas() -> None:
    """It would take 45 MiB of a collector, and stop it for half a second at a compaction."""
    program = """
import sys
from deniable.columns import from_wire
from deniable.columns.arrow import from_arrow, to_arrow
from tests.faults.crowd import SURVEY, batch
reports = from_wire(batch(0, 3), SURVEY)
assert from_arrow(to_arrow(reports)) == reports
print(sorted(sys.modules.keys() & {"pandas", "pyarrow"}))
"""
    done = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True)
    assert done.stdout == b"['pyarrow']\n"


def changed(batch: ReportBatch, array: int, row: int, column: int, value: int) -> ReportBatch:
    arrays: list[Any] = [a.copy() for a in batch.arrays()]
    arrays[array].reshape(len(batch), -1)[row, column] = value
    return from_arrays(batch.survey, arrays)


@pytest.mark.slow
@settings(max_examples=300)
@given(st.data())
def test_as_strict_as_one_report_at_a_time(data: st.DataObject) -> None:
    """After any change of a byte, both parsers accept the report or raise the same error."""
    survey = data.draw(st.sampled_from(list(SURVEYS.values())))
    wire = bytearray(to_wire(crowd(survey, 5)))
    at = data.draw(st.integers(0, len(wire) - 1))
    wire[at] = data.draw(st.integers(0, 255))
    cut = data.draw(st.sampled_from([0, 0, 0, 1, 7]))
    mutated = bytes(wire[: len(wire) - cut])
    outcomes: list[Any] = []
    for parse in (from_batch, lambda *given: single_reports(from_wire(*given))):
        try:
            outcomes.append(parse(mutated, survey))
        except WireError as error:
            outcomes.append(type(error))
    assert outcomes[0] == outcomes[1]


def test_errors_name_the_report() -> None:
    batch = crowd(URLS, 50)
    with pytest.raises(WireError, match="report 7: expected a cohort below 64, got 64"):
        changed(batch, 0, 7, 0, 64)
    with pytest.raises(WireError, match="report 3, question 'url': expected position 2 below 10"):
        changed(batch, 1, 3, 1, 10)
    with pytest.raises(WireError, match="report 9, question 'browser': expected bits 9"):
        changed(batch, 6, 9, 1, 4)


@pytest.mark.parametrize(
    "broken",
    [
        lambda a: [a[0].astype(np.int32), *a[1:]],
        lambda a: [a[0][:-1], *a[1:]],
        lambda a: [a[0], a[1], a[2][:, :3], *a[3:]],
        lambda a: [a[0], a[1], a[2].astype(np.int8), *a[3:]],
    ],
)
def test_wrong_shapes_are_refused(broken: Any) -> None:
    with pytest.raises(InputError, match="expected"):
        from_arrays(URLS, broken(list(crowd(URLS, 5).arrays())))


def test_selecting_and_joining() -> None:
    batch = crowd(URLS)
    assert ReportBatch.concat([batch.select(slice(0, 50)), batch.select(slice(50, 200))]) == batch
    mask = batch.cohort < 32
    assert len(batch.select(mask)) == mask.sum()
    assert batch.select(np.array([5, 3])) == batch_of([single_reports(batch)[i] for i in (5, 3)])
    pair = tuple(batch.clear[0][0].tolist())
    chosen = batch.where("url", pair)
    assert 1 <= len(chosen) < 200
    assert (chosen.clear[0] == pair).all()
    for bad in (lambda: batch.where("url", (1,)), lambda: batch.column("url", 3),
                lambda: ReportBatch.concat([]), lambda: batch.column("none"),
                lambda: ReportBatch.concat([batch, crowd(PLAIN)])):  # fmt: skip
        with pytest.raises(InputError):
            bad()


def test_columns_know_slot_and_cohort() -> None:
    batch = crowd(EVERY)
    for name, part in (("word", 0), ("grams", 0), ("grams", 2), ("prefix", 0), ("dark", 0)):
        column = batch.column(name, part)
        index = [q.name for q in EVERY.questions].index(name)
        for i, report in enumerate(single_reports(batch)):
            answer = report.answers[index]
            slot = EVERY.questions[index].protocol.slots(answer.clear)[part]
            assert column.part.slots[column.slot[i]] == slot
            assert column.cohort[i] == report.cohort % slot.mechanism.cohorts
            assert column.bits[i].tobytes() == answer.slots[part]
        assert column.stratum.max() < column.strata


def test_numbers_of_several_bytes_are_little_endian() -> None:
    rows = np.array([[1, 2, 3, 4], [255, 0, 255, 127], [0, 0, 0, 0]], np.uint8)
    for size in (1, 2, 3, 4):
        expected = [int.from_bytes(row[:size].tobytes(), "little") for row in rows]
        assert packed_numbers(rows[:, :size]).tolist() == expected


def test_counts_add_and_equal_counting_by_hand() -> None:
    batch = crowd(EVERY)
    column = batch.column("grams", 1)
    counts = count_bits(column)
    ones = np.zeros((column.strata, 33), int)
    unpacked = np.unpackbits(column.bits, axis=1, bitorder="little")[:, :33]
    np.add.at(ones, column.stratum, unpacked)
    assert (counts.ones == ones).all()
    assert (counts.total == np.bincount(column.stratum, minlength=column.strata)).all()
    halves = [count_bits(batch.select(s).column("grams", 1)) for s in (slice(0, 9), slice(9, 200))]
    assert ((halves[0] + halves[1]).ones == ones).all()


@pytest.mark.parametrize("suffix", [".parquet", ".dn"])
def test_every_message_about_a_damaged_file_names_it(suffix: str, tmp_path: Path) -> None:
    """Damage the end, where Parquet describes the columns, any other bytes, or cut."""
    write(tmp_path / f"good{suffix}", crowd(PLAIN))
    whole = np.frombuffer((tmp_path / f"good{suffix}").read_bytes(), np.uint8)
    path, rng = tmp_path / f"bad{suffix}", np.random.default_rng(5)
    refused = 0
    for first in (0, -1500, -100) * 20:
        damaged = whole[: rng.integers(len(whole)) if first == -100 else None].copy()
        places = np.arange(len(damaged))[first:]
        if first != -100 and len(places):
            damaged[rng.choice(places, 10)] = rng.integers(0, 256, 10)
        path.write_bytes(damaged.tobytes())
        try:
            read(path, survey=PLAIN)
        except DeniableError as error:
            assert path.name in str(error)
            assert "\n" not in str(error)
            refused += 1
    assert refused > 30


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    batch = crowd(PLAIN)
    with pytest.raises(InputError, match=r"ends in \.parquet"):
        write(tmp_path / "x.csv", batch)
    with pytest.raises(InputError, match="at least one batch"):
        write(tmp_path / "x.parquet", [])
    with pytest.raises(InputError, match="expected reports of"):
        write(tmp_path / "x.parquet", [batch, crowd(URLS)])
    assert list(tmp_path.iterdir()) == [], "a failed write leaves nothing behind"
    (tmp_path / "x.parquet").write_bytes(b"rubbish, but long enough for a footer" * 5)
    with pytest.raises(InputError, match="cannot read"):
        read(tmp_path / "x.parquet")
    write(tmp_path / "x.dn", batch)
    with pytest.raises(InputError, match="give the survey"):
        read(tmp_path / "x.dn")
    whole = (tmp_path / "x.dn").read_bytes()
    for end in (len(whole) - 1, BATCH_HEADER_SIZE - 1):
        (tmp_path / "x.dn").write_bytes(whole[:end])
        with pytest.raises(DeniableError, match=r"ends within a batch|at least"):
            read(tmp_path / "x.dn", survey=PLAIN)
    write(tmp_path / "x.parquet", batch)
    with pytest.raises(InputError, match="has reports of"):
        read(tmp_path / "x.parquet", survey=URLS)
