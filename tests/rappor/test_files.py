"""google/rappor's files: read as their tools write them, written as their tools read them."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from deniable.columns.spreadsheet import escape, read_rows, unescape, write_rows
from deniable.errors import InputError
from deniable.rappor import csv_files
from deniable.rappor import files as rappor
from deniable.rappor.files import DistMetrics, Params, ResultRow, Variable
from deniable.rappor.gram_graph import GramEdges, read_graph
from deniable.rappor.reports import Reports, read_reports, write_reports

PARAMS = Params(16, 2, 4, 0.25, 0.75, 0.0)


def test_params(tmp_path: Path) -> None:
    path = tmp_path / "params.csv"
    rappor.write_params(path, Params(128, 2, 64, 0.25, 0.75, 0.0))
    assert path.read_bytes() == b"k,h,m,p,q,f\r\n128,2,64,0.25,0.75,0.0\r\n"
    assert rappor.read_params(path) == Params(128, 2, 64, 0.25, 0.75, 0.0)
    path.write_text("k,h,m,p,q,f\n16,2,4,.5,.75,0\n")
    assert rappor.read_params(path).noise.q == 3 * 2**30
    for bad in ("", "k,h,m,p,q,f\n", "k,h\n1,2\n", "k,h,m,p,q,f\na,2,4,.5,.75,0\n"):
        path.write_text(bad)
        with pytest.raises(InputError, match=r"params\.csv"):
            rappor.read_params(path)


def test_counts(tmp_path: Path) -> None:
    path = tmp_path / "counts.csv"
    ones = np.arange(64).reshape(4, 16)
    total = np.array([100, 90, 80, 0]) + ones.max(axis=1)
    csv_files.write_rows(path, rappor.count_rows(ones, total))
    assert path.read_bytes().startswith(b"115,0,1,2,3")
    assert path.read_bytes().count(b"\r\n") == 4
    got = rappor.read_counts(path, PARAMS)
    assert (got[0] == ones).all()
    assert (got[1] == total).all()
    csv_files.write_rows(path, rappor.count_rows(ones, total - 101))
    with pytest.raises(InputError, match="line 1: expected every bit to be set 0 to 14 times"):
        rappor.read_counts(path, PARAMS)
    path.write_text("1,2\n")
    with pytest.raises(InputError, match="expected 4 rows, one per cohort"):
        rappor.read_counts(path, PARAMS)


def test_map(tmp_path: Path) -> None:
    path = tmp_path / "map.csv"
    made = rappor.hash_map(["apple", "banana", "carrot"], PARAMS)
    csv_files.write_rows(path, rappor.map_rows(made, PARAMS))
    assert path.read_bytes() == (
        b"apple,5,1,26,26,38,34,63,62\r\n"
        b"banana,12,14,28,24,37,34,62,49\r\n"
        b"carrot,4,12,25,21,48,38,61,54\r\n"
    )
    got = rappor.read_map(path, PARAMS)
    assert got.strings == made.strings
    assert (got.positions == made.positions).all()
    assert got.positions[0, 0].tolist() == [4, 0]
    for bad, says in (
        ("apple,5,1\n", "line 1: expected a string and 8"),
        ("a,5,1,26,26,38,34,63,65\n", "line 1: the numbers of cohort c"),
        ("a,5,1,26,26,38,34,63,x\n", "line 1: expected a whole number, got 'x'"),
    ):
        path.write_text(bad)
        with pytest.raises(InputError, match=says):
            rappor.read_map(path, PARAMS)


REPORTS = (
    b"client,cohort,bloom,prr,irr\r\n"
    b"c1,0,0010000001000000,1110000011101000,1111101111101101\r\n"
    b"c2,3,0000000000000001,0000000000000000,1000000000000000\r\n"
)


def test_reports(tmp_path: Path) -> None:
    path = tmp_path / "reports.csv"
    path.write_bytes(REPORTS)
    got = read_reports(path)
    assert got.clients.tolist() == [b"c1", b"c2"]
    assert got.cohort.tolist() == [0, 3]
    irr, width = got.columns["irr"]
    assert width == 16
    # Their vector: Bloom 8256, IRR 64493; character 0 is bit 15.
    assert irr[0].tobytes() == (64493).to_bytes(2, "little")
    assert got.columns["bloom"][0][0].tobytes() == (8256).to_bytes(2, "little")
    assert irr[1].tobytes() == (1 << 15).to_bytes(2, "little")
    write_reports(tmp_path / "again.csv", got)
    assert (tmp_path / "again.csv").read_bytes() == REPORTS
    only = read_reports(path, columns=["irr"])
    assert list(only.columns) == ["irr"]


def test_association_reports(tmp_path: Path) -> None:
    path = tmp_path / "assoc.csv"
    path.write_bytes(b"client,cohort,domain,https\n1,5,0110,1\n2,6,1000,0\n")
    got = read_reports(path)
    assert got.columns["domain"][0].tolist() == [[6], [8]]
    assert got.columns["https"] == (pytest.approx(np.array([[1], [0]])), 1)


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"", "is empty"),
        (b"client,cohort,irr\n1,0,01\n2,0,0x\n", "line 3"),
        (b"client,cohort,irr\n1,9,01\n", "line 2"),
        (b"client,cohort,irr\n1,0,01\n2,0,011\n", "line 3"),
        (b"client,cohort,irr\n1,0\n", "at least one column of bits, got '1,0'"),
    ],
)
def test_bad_reports_are_named_by_line(data: bytes, says: str, tmp_path: Path) -> None:
    path = tmp_path / "r.csv"
    path.write_bytes(data)
    with pytest.raises(InputError, match=says):
        read_reports(path, cohorts=4)


def test_missing_column_is_named(tmp_path: Path) -> None:
    (tmp_path / "r.csv").write_bytes(REPORTS)
    with pytest.raises(InputError, match=r"bloom, prr, irr; expected x"):
        read_reports(tmp_path / "r.csv", columns=["x"])


@pytest.mark.slow
@given(st.integers(1, 70), st.integers(1, 30), st.integers(0, 2**32))
def test_reports_of_any_width_come_back(width: int, n: int, seed: int) -> None:
    import tempfile

    rng = np.random.default_rng(seed)
    bits = np.packbits(rng.integers(0, 2, (n, width), np.uint8), axis=1, bitorder="little")
    cohort = rng.integers(0, 99, n).astype(np.uint16)
    reports = Reports(np.array([b"c%d" % i for i in range(n)]), cohort, {"irr": (bits, width)})
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "r.csv"
        write_reports(path, reports)
        got = read_reports(path)
        text = path.read_bytes().split(b"\r\n")[1].split(b",")[2].decode()
    assert (got.columns["irr"][0] == bits).all()
    assert (got.cohort == reports.cohort).all()
    value = int.from_bytes(bits[0].tobytes(), "little")
    assert text == f"{value:0{width}b}", "most significant first"


def test_schema(tmp_path: Path) -> None:
    path = tmp_path / "schema.csv"
    header = "metric,var,var_type,params\n"
    path.write_text(header + "m,domain,string,p1\r\nm,https,boolean,p2\r\n")
    expected = (Variable("m", "domain", "string", "p1"), Variable("m", "https", "boolean", "p2"))
    assert rappor.read_schema(path) == expected
    for bad in ("a,b\n", "", header + "a,b\n"):
        path.write_text(bad)
        with pytest.raises(InputError):
            rappor.read_schema(path)


def test_results_and_metrics(tmp_path: Path) -> None:
    path = tmp_path / "results.csv"
    rappor.write_results(path, [ResultRow("v1", 0.5, 1, 1, 1, 1, 1)])
    assert path.read_bytes() == (
        b"string,estimate,std_error,proportion,prop_std_error,prop_low_95,prop_high_95\r\n"
        b"v1,0.5,1,1,1,1,1\r\n"
    )
    rappor.write_metrics(tmp_path / "m.json", DistMetrics(7, 0.5, 2, 0.25, 0.75, 1.0))
    assert json.loads((tmp_path / "m.json").read_text()) == {
        "sample_size": 7,
        "allocated_mass": 0.5,
        "num_detected": 2,
        "explained_var": 0.25,
        "missing_var": 0.75,
        "total_elapsed_time": 1.0,
    }


def test_graph(tmp_path: Path) -> None:
    path = tmp_path / "graph.txt"
    path.write_bytes(b"num_partitions 3\r\nngram_size 2\r\nedge 0.ab 1.cd\r\nedge 1.. 2.  \r\n")
    graph = read_graph(path)
    assert graph == GramEdges(3, 2, (((0, "ab"), (1, "cd")), ((1, ". "), (2, "  "))))
    for bad in ("edge 0.ab 1.cd\n", "num_partitions 3\n", "num_partitions 3\nngram_size 2\nfoo\n",
                "num_partitions 3\nngram_size 2\nedge 0.ab 3.cd\n",
                "num_partitions 3\nngram_size 2\nedge 0.ab 0.cd\n",
                "num_partitions x\n"):  # fmt: skip
        path.write_text(bad)
        with pytest.raises(InputError):
            read_graph(path)


@given(st.text(st.characters(codec="utf-8"), max_size=12))
def test_no_cell_is_a_formula_and_all_come_back(text: str) -> None:
    cell = escape(text)
    assert unescape(cell) == text
    assert not cell.startswith(("=", "+", "-", "@", "\t", "\r"))


def test_csv_files_of_ours(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    rows: list[list[str | float]] = [
        ["value", "n"],
        ["=cmd|' /C calc'!A0", -1.5],
        ["'@x", 2],
        ["it's", 3],
    ]
    write_rows(path, rows)
    text = path.read_text()
    assert "'=cmd" in text
    assert ",-1.5" in text, "a number of ours is not text"
    got = [row for _, row in read_rows(path)]
    assert got == [[c if isinstance(c, str) else str(c) for c in row] for row in rows]
    path.write_bytes(b"a,\xff\n")
    with pytest.raises(InputError, match="not UTF-8 text"):
        list(read_rows(path))
