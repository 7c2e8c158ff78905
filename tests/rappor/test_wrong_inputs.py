"""Wrong files and options: one line that names the file and the line, and no traceback."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from deniable.cli.app import app
from deniable.errors import InputError
from deniable.rappor import csv_files

GOOD = {
    "params.csv": "k,h,m,p,q,f\n4,1,2,0.25,0.75,0.0\n",
    "flag.csv": "k,h,m,p,q,f\n1,1,2,0.25,0.75,0.0\n",
    "counts.csv": "3,1,0,2,3\n2,0,0,1,2\n",
    "map.csv": "a,1,6\nb,2,8\n",
    "candidates.txt": "a\nb\n",
    "reports.csv": "client,cohort,irr\n1,0,0101\n2,1,1111\n",
    "both.csv": "client,cohort,word,flag\n1,0,0101,1\n2,1,1111,0\n",
    "schema.csv": "metric,var,var_type,params\nm,word,string,params\nm,flag,boolean,flag\n",
    "survey.toml": """\
name = "m"
version = 1
owner = "x"
description = "x"
expires = 2027-01-01
collect = "once"
[questions.word]
kind = "string"
scheme = "rappor-cpp"
bits = 4
hashes = 1
cohorts = 2
p = 0.25
q = 0.75
f = 0.0
[questions.flag]
kind = "boolean"
p = 0.25
q = 0.75
f = 0.0
""",
}
DIST = "decode-dist --map map.csv --counts counts.csv --params params.csv"
ASSOC = (
    "decode-assoc --metric-name m --schema schema.csv --reports both.csv --var1 word "
    "--map1 map.csv --var2 flag"
)
SUM = "sum-bits params.csv reports.csv"
HASH = "hash-candidates params.csv candidates.txt"
SURVEY = "survey schema.csv --client cpp -o new.toml"
IMPORT = "import r.parquet both.csv --survey survey.toml"
HEAD = "client,cohort,irr\n"
BOTH = "client,cohort,word,flag\n"
SCHEMA = "metric,var,var_type,params\n"
PARAMS = "k,h,m,p,q,f\n"

FILES: list[tuple[str, str, str | bytes, str]] = [
    # command, file, its content, message
    (SUM, "reports.csv", "", "reports.csv is empty"),
    (SUM, "reports.csv", HEAD, "reports.csv: the file has no reports"),
    (SUM, "reports.csv", "client,cohort\n1,0\n", "reports.csv has the bit columns none"),
    (SUM, "reports.csv", "client,cohort,a,b\n1,0,0000,0000\n", "has the bit columns a, b: choose"),
    (SUM, "reports.csv", HEAD + "1,0,0101\n2,1,011\n", "reports.csv: line 3, column 'irr': expect"),
    (SUM, "reports.csv", HEAD + "1,0,01011\n", "line 2, column 'irr': expected 4 bits, got 5"),
    (SUM, "reports.csv", HEAD + "1,2,0101\n", "reports.csv: line 2: expected a cohort in 0..1"),
    (SUM, "reports.csv", HEAD + "1,-1,0101\n", "reports.csv: line 2: expected a cohort in 0..1"),
    (SUM, "reports.csv", HEAD + "1,0,01x1\n", "line 2, column 'irr': expected 0 or 1, got 'x'"),
    (SUM, "reports.csv", HEAD + "1,0\n", "expected client,cohort and at least one column of bits"),
    (SUM, "reports.csv", HEAD + "1,0,0101,1\n", "the header has 1 bit columns (irr)"),
    (
        SUM,
        "reports.csv",
        HEAD + "1,0,0101\n\n2,0,0101\n",
        "line 3: expected a report, got an empty",
    ),
    (SUM, "reports.csv", HEAD + ",0,0101\n", "reports.csv: line 2: expected a client id"),
    (SUM, "reports.csv", "client,cohort,irr,irr\n1,0,0101,0101\n", "two columns of one name"),
    (SUM, "reports.csv", "client,group,irr\n1,0,0101\n", "line 1: expected a cohort in 0..1, got"),
    (SUM, "reports.csv", gzip.compress(b"x" * 99)[:-5], "cannot decompress reports.csv"),
    (SUM, "reports.csv", b"PAR1\x00\xff\x00", "reports.csv has the bit columns none"),
    (
        SUM,
        "params.csv",
        "",
        "params.csv: expected the header k,h,m,p,q,f and one row, got an empty",
    ),
    (SUM, "params.csv", PARAMS, "params.csv: expected the header k,h,m,p,q,f and one row"),
    (SUM, "params.csv", "k,h,m\n4,1,2\n", "params.csv: expected the header k,h,m,p,q,f"),
    (SUM, "params.csv", PARAMS + "4,1,2,a,b,c\n", "params.csv, line 2: expected three whole"),
    (SUM, "params.csv", PARAMS + "4,1,2,0.25,0.75\n", "params.csv, line 2: expected three whole"),
    (SUM, "params.csv", PARAMS + "0,1,2,0.25,0.75,0\n", "params.csv, line 2: k must be an integer"),
    (SUM, "params.csv", PARAMS + "4,1,99999,0.25,0.75,0\n", "params.csv, line 2: m must be an int"),
    (SUM, "params.csv", PARAMS + "4,1,2,0.25,1.75,0\n", "params.csv, line 2: a probability must"),
    (SUM, "params.csv", PARAMS + "4,1,2,0.5,0.5,0\n", "params.csv, line 2: p and q are equal"),
    (SUM, "params.csv", PARAMS + "4,1,2,0.25,0.75,1\n", "params.csv, line 2: f must be"),
    (SUM, "params.csv", PARAMS + "4,1,2,nan,0.75,0\n", "params.csv, line 2: a probability must"),
    (HASH, "params.csv", PARAMS + "4,17,2,0.25,0.75,0\n", "supports at most 16 hashes"),
    (HASH, "candidates.txt", b"a\n\xff\n", "candidates.txt is not UTF-8 text (line 2)"),
    (HASH, "candidates.txt", "", "candidates.txt is empty"),
    (DIST, "counts.csv", "9223372036854775807,1,0,2,3\n2,0,0,1,2\n", "counts more than 9,007,199,"),
    (DIST, "counts.csv", "", "counts.csv: expected 2 rows, one per cohort (m in the parameters)"),
    (DIST, "counts.csv", "3,1,0,2,3\n", "counts.csv: expected 2 rows"),
    (DIST, "counts.csv", "3,1,0,2,3\n2,0,0,1\n", "counts.csv, line 2: expected 5 columns"),
    (DIST, "counts.csv", "3,1,0,2,3\n\n2,0,0,1,x\n", "counts.csv, line 3: expected a whole number"),
    (DIST, "counts.csv", "3,1,0,2,3\n2,0,0,1,3\n", "counts.csv, line 2: expected every bit"),
    (DIST, "counts.csv", "3,1,0,2,3\n2,0,-1,1,2\n", "counts.csv, line 2: expected every bit"),
    (DIST, "counts.csv", "0,0,0,0,0\n0,0,0,0,0\n", "counts.csv has no reports"),
    (DIST, "counts.csv", b"\xff\xfe", "counts.csv is not UTF-8 text"),
    (DIST, "map.csv", "", "map.csv is empty"),
    (DIST, "map.csv", "a,1,6\nb,2\n", "map.csv, line 2: expected a string and 2 numbers"),
    (DIST, "map.csv", "a,1,6\nb,2,9\n", "map.csv, line 2: the numbers of cohort c must be from"),
    (DIST, "map.csv", "a,1,6\nb,0,6\n", "map.csv, line 2: the numbers of cohort c must be from"),
    (DIST, "map.csv", "a,1,6\nb,2,6.5\n", "map.csv, line 2: expected a whole number, got '6.5'"),
    (DIST, "map.csv", "a,1,6\nb,2,8\na,1,6\n", "map.csv, line 3: 'a' is already in line 1"),
    (DIST, "map.csv", 'a,1,6\n"b,2,8\n', "map.csv, line 2: expected a string and 2 numbers"),
    (ASSOC, "schema.csv", "", "schema.csv: expected the header metric,var,var_type,params; got an"),
    (ASSOC, "schema.csv", SCHEMA, "schema.csv has no variables"),
    (ASSOC, "schema.csv", SCHEMA + "m,word,string\n", "schema.csv, line 2: expected 4 columns"),
    (ASSOC, "schema.csv", SCHEMA + "m,word,double,p\n", "schema.csv, line 2: expected var_type"),
    (ASSOC, "schema.csv", SCHEMA + "n,word,string,p\n", "schema.csv has no metric 'm', only n"),
    (
        ASSOC,
        "schema.csv",
        SCHEMA + "m,word,string,gone\nm,flag,boolean,flag\n",
        "no file or folder",
    ),
    (ASSOC, "both.csv", "client,cohort,word,flagg\n1,0,0101,1\n", 'Did you mean "flagg"?'),
    (ASSOC, "both.csv", BOTH + "1,2,0101,1\n", "both.csv: line 2: expected a cohort in 0..1"),
    (ASSOC, "both.csv", BOTH + "1,1,0101,01\n", "line 2, column 'flag': expected 1 bits, got 2"),
    (ASSOC, "both.csv", BOTH + "1,1,01010,1\n", "line 2, column 'word': expected 4 bits, got 5"),
    (SURVEY, "params.csv", PARAMS + "4,1,2,0.001,0.75,0\n", "the C++ client rounds p and q down"),
    (SURVEY, "schema.csv", SCHEMA + "m,A!,string,params\nm,A?,string,params\n", "become one quest"),
    (SURVEY, "schema.csv", SCHEMA + "m,a,string,params\nn,b,string,params\n", "the metrics m, n"),
    ("cliques graph.txt", "graph.txt", "", "graph.txt is empty"),
    ("cliques graph.txt", "graph.txt", b"\xff\n", "graph.txt is not UTF-8 text (line 1)"),
    ("cliques graph.txt", "graph.txt", "num_partitions 3\n", "no line gives ngram_size"),
    ("cliques graph.txt", "graph.txt", "num_partitions 999999999\n", "graph.txt, line 1: expected"),
    ("cliques graph.txt", "graph.txt", "ngram_size 2\nedge 0.ab\n", "graph.txt, line 2: expected"),
    (IMPORT, "both.csv", "", "both.csv is empty"),
    (IMPORT, "both.csv", BOTH + "1,0,0101,1\n2,2,0101,1\n", "both.csv: line 3: expected a cohort"),
    (IMPORT, "both.csv", BOTH + "1,0,0101,1\n2,0,0101\n", "both.csv: line 3: expected 4 fields"),
    (IMPORT, "both.csv", BOTH + "1,0,0101,2\n", "both.csv: line 2, column 'flag': expected 0 or 1"),
    (IMPORT, "both.csv", "client,cohort,word,flagg\n1,0,0101,1\n", "--column flag=COLUMN"),
    (IMPORT, "both.csv", "1,0,0101,1\n", "both.csv has the bit columns 3, 4: say with --column"),
    (IMPORT, "survey.toml", 'name = "m"\n', "survey.toml"),
]
OPTIONS: list[tuple[str, str]] = [
    (SUM + " --column prr", "reports.csv has the bit columns irr; expected prr"),
    ("sum-bits gone.csv", "'gone.csv' does not exist"),
    ("sum-bits params.csv gone.csv", "'gone.csv' does not exist"),
    (HASH + " --client php", "'php' is not one of"),
    (HASH + " -o map.csv/new.csv", "map.csv"),
    (DIST + " --output-dir map.csv", "'map.csv' is a file"),
    (ASSOC.replace("flag", "flog"), 'Did you mean "flag"?'),
    (ASSOC.replace("--map1 map.csv", ""), "word is a string: give its map"),
    (ASSOC.replace("--metric-name m", "--metric-name mm"), "no metric 'mm', only m"),
    (SURVEY.replace("--client cpp", ""), "Missing option '--client'"),
    (SURVEY.replace("new.toml", "survey.toml"), "survey.toml already exists"),
    (SURVEY.replace("new.toml", "new.json"), "ends in .toml"),
    ("survey params.csv --client cpp --question A.B -o new.toml", "not 'A.B'"),
    ("survey map.csv --client cpp -o new.toml", "map.csv: expected the header k,h,m,p,q,f"),
    (IMPORT + " --column flog=flag", "flog"),
    (IMPORT + " --column flag=flog", 'expected flog. Did you mean "flag"?'),
    (IMPORT + " --column flag", "expected --column QUESTION=COLUMN, got 'flag'"),
    (IMPORT + " --day 2017-01-01", "--day goes with a store"),
    (IMPORT + " --day yesterday", "expected a day as YYYY-MM-DD"),
    ("import both.csv both.csv --survey survey.toml", "expected a store or a .parquet file"),
    ("import reports.csv both.csv --survey survey.toml", "expected a store or a .parquet file"),
    ("import r.parquet both.csv", "Missing option '--survey'"),
    ("import map.csv/r.db both.csv --survey survey.toml", "map.csv"),
]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name, content in GOOD.items():
        (tmp_path / name).write_text(content)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(arguments: str) -> Any:
    return CliRunner().invoke(app, ["rappor", *arguments.split()])


def check_message(arguments: str, says: str, folder: Path) -> None:
    before = set(folder.iterdir())
    done = run(arguments)
    assert done.exit_code in (1, 2), done.output
    assert isinstance(done.exception, SystemExit), done.exc_info
    assert says in done.output
    assert "Traceback" not in done.output
    if done.exit_code == 1:
        assert done.output.count("\n") == 1 or "mistakes" in done.output, done.output
    assert set(folder.iterdir()) == before, "a command that fails writes nothing"


@pytest.mark.parametrize(
    "arguments, file, content, says", FILES, ids=[f"{a.split()[0]}-{s}" for a, _, _, s in FILES]
)
def test_wrong_files(
    arguments: str, file: str, content: str | bytes, says: str, folder: Path
) -> None:
    (folder / file).write_bytes(content.encode() if isinstance(content, str) else content)
    check_message(arguments, says, folder)


@pytest.mark.parametrize("arguments, says", OPTIONS, ids=[says for _, says in OPTIONS])
def test_wrong_options(arguments: str, says: str, folder: Path) -> None:
    check_message(arguments, says, folder)


@pytest.mark.parametrize("arguments", [SUM, HASH, SURVEY, IMPORT, DIST])
def test_the_right_files_are_accepted(arguments: str, folder: Path) -> None:
    done = run(arguments)
    assert done.exit_code == 0, done.output


def test_a_byte_order_mark_is_no_part_of_a_file(folder: Path) -> None:
    expected = [run(arguments).output for arguments in (SUM, HASH)]
    for name in ("params.csv", "reports.csv", "candidates.txt"):
        (folder / name).write_bytes(b"\xef\xbb\xbf" + GOOD[name].encode())
    assert [run(arguments).output for arguments in (SUM, HASH)] == expected


def test_a_compressed_file_may_not_unfold_to_any_size(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(csv_files, "MAX_UNPACKED_BYTES", 2000)
    path = tmp_path / "reports.csv"
    path.write_bytes(gzip.compress(b"1" * 2000))
    assert csv_files.input_bytes(path).size == 2000
    path.write_bytes(gzip.compress(b"1" * 2001))
    with pytest.raises(InputError, match=r"reports\.csv has more than 2,000 bytes"):
        csv_files.input_bytes(path)
    path.write_bytes(gzip.compress(bytes(range(256)) * 10))  # no more than 50 times its size
    assert csv_files.input_bytes(path).size == 2560
