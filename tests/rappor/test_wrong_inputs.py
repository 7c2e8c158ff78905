"""Wrong files and options: one sentence that names the file and the line, and nothing written."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st
from tools.rappor_files import write_map

from deniable.cli.app import app
from deniable.errors import InputError
from deniable.rappor import files
from deniable.rappor.files import Params
from deniable.rappor.reports import read_reports

GOOD = {
    "params.csv": "k,h,m,p,q,f\n4,1,2,0.25,0.75,0.0\n",
    "flag.csv": "k,h,m,p,q,f\n1,1,2,0.25,0.75,0.0\n",
    "reports.csv": "client,cohort,irr\n1,0,0101\n2,1,1111\n",
    "both.csv": "client,cohort,word,flag\n1,0,0101,1\n2,1,1111,0\n",
    "vars.csv": "metric,var,var_type,params\nm,word,string,params\nm,flag,boolean,flag\n",
}
ONE = "--client cpp --params params.csv --map map.csv reports.csv -o out"
BOTH = "--client cpp --schema vars.csv --maps word=map.csv both.csv -o out"
HEAD = "client,cohort,irr\n"
VARS = "metric,var,var_type,params\n"
PARAMS = "k,h,m,p,q,f\n"

FILES: list[tuple[str, str, str | bytes, str]] = [
    # command, file, its content, message
    (ONE, "reports.csv", "", "reports.csv, line 1: expected a header client,cohort"),
    (ONE, "reports.csv", HEAD, "reports.csv has no reports"),
    (ONE, "reports.csv", "1,0,0101\n2,1,1111\n", "reports.csv, line 1: expected a header"),
    (ONE, "reports.csv", "client,cohort\n1,0\n", "reports.csv, line 1: expected a header"),
    (ONE, "reports.csv", "client,group,irr\n1,0,0101\n", "reports.csv, line 1: expected a header"),
    (ONE, "reports.csv", "client,cohort,a,b\n1,0,0,0\n", "line 1: no column 'value', only a, b"),
    (ONE, "reports.csv", "client,cohort,irr,irr\n1,0,0,0\n", "line 1: two columns have one name"),
    (ONE, "reports.csv", HEAD + "1,0,0101\n2,1,011\n", "reports.csv, line 3: column 'irr': expect"),
    (ONE, "reports.csv", HEAD + "1,0,01011\n", "line 2: column 'irr': expected 4 bits, got 5"),
    (ONE, "reports.csv", HEAD + "1,2,0101\n", "line 2: expected a cohort in 0..1, got '2'"),
    (ONE, "reports.csv", HEAD + "1,-1,0101\n", "line 2: expected a cohort in 0..1, got '-1'"),
    (ONE, "reports.csv", HEAD + "1,99999999999,0101\n", "line 2: expected a cohort in 0..1"),
    (ONE, "reports.csv", HEAD + "1,,0101\n", "line 2: expected a cohort in 0..1, got ''"),
    (ONE, "reports.csv", HEAD + "1,0,01x1\n", "column 'irr': expected 0s and 1s, got 'x'"),
    (ONE, "reports.csv", HEAD + "1,0\n", "line 2: expected 3 fields (client,cohort,irr), got 2"),
    (ONE, "reports.csv", HEAD + "1,0,0101,1\n", "line 2: expected 3 fields"),
    (ONE, "reports.csv", HEAD + "1,0,0101\n\n2,0,0101\n", "line 3: expected 3 fields (client,coho"),
    (ONE, "reports.csv", gzip.compress(b"x" * 99)[:-5], "cannot decompress reports.csv"),
    (ONE, "reports.csv", b"PAR1\x00\xff\x00", "reports.csv, line 1: expected a header"),
    (
        ONE,
        "params.csv",
        "",
        "params.csv: expected the header k,h,m,p,q,f and one row, got an",
    ),
    (ONE, "params.csv", "k,h,m\n4,1,2\n", "params.csv: expected the header k,h,m,p,q,f"),
    (ONE, "params.csv", b"k\xff", "params.csv is not UTF-8 text (line 1)"),
    (ONE, "params.csv", gzip.compress(b"k" * 99)[:-5], "cannot decompress params.csv"),
    (ONE, "params.csv", PARAMS + "4,1,2,a,b,c\n", "params.csv, line 2: expected three whole"),
    (ONE, "params.csv", PARAMS + "4,1,2,0.25,0.75\n", "params.csv, line 2: expected three whole"),
    (ONE, "params.csv", PARAMS + "0,1,2,0.25,0.75,0\n", "params.csv, line 2: k must be an integer"),
    (ONE, "params.csv", PARAMS + "4,1,2,0.25,1.75,0\n", "params.csv, line 2: a probability must"),
    (ONE, "params.csv", PARAMS + "4,1,2,0.5,0.5,0\n", "params.csv, line 2: p and q are equal"),
    (ONE, "params.csv", PARAMS + "4,1,2,nan,0.75,0\n", "params.csv, line 2: a probability must"),
    (ONE, "params.csv", PARAMS + "4,17,2,0.25,0.75,0\n", "supports at most 16 hashes"),
    (ONE, "params.csv", PARAMS + "4,1,2,0.001,0.75,0\n", "the C++ client rounds p and q down"),
    (ONE, "map.csv", "", "map.csv is empty"),
    (ONE, "map.csv", "a,1\n", "map.csv, line 1: expected a string and 2 numbers (m·h in the"),
    (ONE, "map.csv", "a,1,x\n", "map.csv, line 1: 'a' has other bits than the cpp client sets"),
    (BOTH, "vars.csv", "", "vars.csv: expected the header metric,var,var_type,params"),
    (BOTH, "vars.csv", VARS, "vars.csv has no variables"),
    (BOTH, "vars.csv", VARS + "m,word\n", "vars.csv, line 2: expected 4 columns"),
    (BOTH, "vars.csv", VARS + "m,word,number,p\n", "line 2: expected var_type string or boolean"),
    (BOTH, "vars.csv", VARS + "m,word,string,gone\n", "there is no file or folder gone.csv"),
    (BOTH, "vars.csv", VARS + "m,a,string,params\nn,b,string,params\n", "has the metrics m, n"),
    (BOTH, "vars.csv", VARS + "m,w,string,params\n", "'word' of --maps is not a string of"),
    (BOTH, "both.csv", "client,cohort,word,flagg\n1,0,0101,1\n", 'Did you mean "flagg"?'),
    (
        BOTH,
        "both.csv",
        "client,cohort,word,flag\n1,0,0101,2\n",
        "column 'flag': expected 0s and",
    ),
]
OPTIONS: list[tuple[str, str]] = [
    (ONE.replace("--client cpp", ""), "Missing option '--client'"),
    (ONE.replace("cpp", "php"), "'php' is not one of"),
    (ONE.replace("-o out", ""), "Missing option '-o'"),
    (ONE.replace("-o out", "-o map.csv"), "'map.csv' is a file"),
    (ONE.replace("--map map.csv", ""), "give either --params and --map, or --schema and --maps"),
    (ONE + " --schema vars.csv", "give either --params and --map, or --schema and --maps"),
    (ONE + " --maps word=map.csv", "give either --params and --map, or --schema and --maps"),
    (ONE + " --survey params.csv", "params.csv"),
    (BOTH.replace("--maps word=map.csv", ""), "give its map with --maps word=FILE"),
    (BOTH.replace("word=map.csv", "wrod=map.csv"), 'Did you mean "word"?'),
    (BOTH.replace("word=map.csv", "map.csv"), "expected --maps VARIABLE=FILE and an existing file"),
    (BOTH.replace("word=map.csv", "word=gone.csv"), "and an existing file, got word=gone.csv"),
    (BOTH + " --metric-name mm", "no metric 'mm', only m"),
    (BOTH.replace("both.csv", "gone.csv"), "'gone.csv' does not exist"),
]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name, content in GOOD.items():
        (tmp_path / name).write_text(content)
    write_map(tmp_path / "map.csv", ["a", "b"], Params(4, 1, 2, 0.25, 0.75, 0.0))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(arguments: str) -> Any:
    return CliRunner().invoke(app, ["rappor", "import", *arguments.split()])


def check_message(arguments: str, says: str, folder: Path) -> None:
    before = set(folder.iterdir())
    done = run(arguments)
    assert done.exit_code in (1, 2), done.output
    assert isinstance(done.exception, SystemExit), done.exc_info
    assert says in done.output
    if done.exit_code == 1:
        assert done.output.count("\n") == 1 or "mistake" in done.output, done.output
    assert set(folder.iterdir()) == before, "a command that fails writes nothing"


@pytest.mark.parametrize("arguments, file, content, says", FILES, ids=[f[3] for f in FILES])
def test_wrong_files(
    arguments: str, file: str, content: str | bytes, says: str, folder: Path
) -> None:
    (folder / file).write_bytes(content.encode() if isinstance(content, str) else content)
    check_message(arguments, says, folder)


@pytest.mark.parametrize("arguments, says", OPTIONS, ids=[says for _, says in OPTIONS])
def test_wrong_options(arguments: str, says: str, folder: Path) -> None:
    check_message(arguments, says, folder)


@pytest.mark.parametrize("arguments", [ONE, BOTH])
def test_the_right_files_are_accepted(arguments: str, folder: Path) -> None:
    done = run(arguments)
    assert done.exit_code == 0, done.output


@pytest.mark.parametrize(
    "strings, says",
    [
        (["a", "b", "a"], "map.csv, line 3: 'a' is already in line 1: remove one"),
        (["a", ""], "map.csv, line 2: '' cannot be a line of text: remove it"),
        (["a", "b\nc"], "map.csv, line 3: 'b\\nc' cannot be a line of text"),
    ],
)
def test_strings_that_are_no_list_are_refused(strings: list[str], says: str, folder: Path) -> None:
    write_map(folder / "map.csv", strings, Params(4, 1, 2, 0.25, 0.75, 0.0))
    check_message(ONE, says, folder)


def test_a_compressed_map_may_not_unfold_to_any_size(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "MAX_TEXT_BYTES", 2000)
    (folder / "map.csv").write_bytes(gzip.compress(b"1" * 2001))
    check_message(ONE, "map.csv has more than 2,000 bytes", folder)


@pytest.mark.slow
@given(
    where=st.integers(0, 10_000),
    drop=st.integers(0, 3),
    put=st.sampled_from(["", ",", "\n", "\r", "\r\n", "0", "1", "2", "é", "-", " ", "01", "65,"]),
)
@settings(max_examples=300, deadline=None)
def test_damaged_reports_are_read_as_written_or_refused(
    where: int, drop: int, put: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    lines = [f"client{i},{i % 7},{i % 512:09b},{i % 2}" for i in range(20)]
    body = "\n".join(lines) + "\n"
    where %= len(body)
    broken = body[:where] + put + body[where + drop :]
    path = tmp_path_factory.mktemp("damaged") / "r.csv"
    path.write_text("client,cohort,x,y\n" + broken, newline="")
    fields = [line.split(",") for line in broken.replace("\r", "\n").split("\n") if line]
    try:
        reports = read_reports(path, {"x": 9, "y": 1}, 7)
    except InputError as error:
        assert f"{path}" in str(error)
        return
    assert reports.cohort.tolist() == [int(line[1]) for line in fields]
    got = [int.from_bytes(row.tobytes(), "little") for row in reports.bits[0]]
    assert got == [int(line[2], 2) for line in fields]
    assert all(set(line[2]) <= {"0", "1"} and len(line[2]) == 9 for line in fields)
