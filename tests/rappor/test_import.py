"""`deniable rappor import`: its files, and the results that its two commands print."""

from __future__ import annotations

import datetime as dt
import gzip
import json
import shlex
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner, Result
from tools import rappor_files
from tools.rappor_files import write_map, write_params, write_rows

from deniable import Survey, decode
from deniable.cli.app import app
from deniable.client import Client
from deniable.columns import ReportBatch, read
from deniable.errors import SurveyRefused
from deniable.rappor import importing
from deniable.rappor.files import Params
from deniable.rappor.importing import drawn_noise

EXAMPLE = Path(__file__).parents[2] / "examples" / "rappor"
SINGLE = ["--params", EXAMPLE / "params.csv", "--map", EXAMPLE / "map.csv"]
BOTH = ["--schema", EXAMPLE / "rappor-vars.csv", "--maps", f"domain={EXAMPLE / 'map.csv'}"]
SMALL = Params(4, 1, 2, 0.25, 0.75, 0.0)


def run(*args: Any) -> Result:
    return CliRunner().invoke(app, ["rappor", "import", *map(str, args)])


def imported(folder: Path, *args: Any, client: str = "cpp") -> Result:
    done = run("--client", client, *args, "-o", folder)
    assert done.exit_code == 0, done.output
    return done


def small(folder: Path, reports: str, *options: Any) -> Result:
    """Import reports of one string of four bits in two cohorts."""
    write_params(folder / "params.csv", SMALL)
    write_map(folder / "map.csv", ["a", "b"], SMALL)
    (folder / "reports.csv").write_text(reports)
    return run("--client", "cpp", "--params", folder / "params.csv", "--map", folder / "map.csv",
               folder / "reports.csv", "-o", folder / "out", *options)  # fmt: skip


def bits_of(batch: ReportBatch, question: str) -> list[int]:
    return [int.from_bytes(row.tobytes(), "little") for row in batch.column(question).bits]


def test_the_example_is_what_the_tool_writes(tmp_path: Path) -> None:
    rappor_files.write_example(tmp_path)
    for path in tmp_path.iterdir():
        unpack = gzip.decompress if path.suffix == ".gz" else bytes
        assert unpack((EXAMPLE / path.name).read_bytes()) == unpack(path.read_bytes())
    assert len(list(tmp_path.iterdir())) == len(list(EXAMPLE.iterdir()))


def test_the_printed_commands_give_the_results_of_the_former_ones(tmp_path: Path) -> None:
    """Numbers of `decode-dist` and `decode-assoc` of an earlier version, for the same files."""
    one, both = tmp_path / "one string", tmp_path / "both"
    printed = imported(one, *SINGLE, EXAMPLE / "reports.csv.gz").output.splitlines()
    assert printed[0] == f"Wrote 5,000 reports to {one}. To analyse them:"
    printed += imported(both, *BOTH, EXAMPLE / "assoc-reports.csv.gz").output.splitlines()
    single, decoded, associated = (
        json.loads(CliRunner().invoke(app, [*shlex.split(line)[1:], "--json"]).stdout)
        for line in printed
        if line.startswith("deniable ")
    )
    shares = dict(zip(single["labels"], single["estimate"], strict=True))
    errors = dict(zip(single["labels"], single["standard_error"], strict=True))
    former = {
        "apple.example": (0.5085882942000935, 0.011814221896599274),
        "banana.example": (0.2949927884727261, 0.011416836956351461),
        "cherry.example": (0.16125557278467417, 0.01075009905530041),
    }
    assert {n for n, found in zip(shares, single["detected"], strict=True) if found} == set(former)
    for name, (share, error) in former.items():
        assert (shares[name], errors[name]) == pytest.approx((share, error), rel=1e-9)
    assert decoded["estimate"] == single["estimate"], "both files have the same domains"
    assert associated["labels"] == [[*former, "(other)"], ["yes", "no"]]
    np.testing.assert_allclose(
        associated["table"],
        [
            [0.40640868083936565, 0.10067384046701039],
            [0.06865897286359512, 0.2200495934294211],
            [0.027321432312943757, 0.13069780150852853],
            [0.014410954106742762, 0.03177872447239257],
        ],
        atol=1e-7,  # where EM stopped
    )


def test_every_bit_and_cohort_is_kept_and_no_client_id(tmp_path: Path) -> None:
    done = imported(tmp_path / "new/out", *BOTH, EXAMPLE / "assoc-reports.csv.gz", "--json")
    outcome = json.loads(done.stdout)
    assert (outcome["reports"], outcome["clients"]) == (5000, 5000)
    batch = read(tmp_path / "new/out/reports.parquet")
    text = gzip.decompress((EXAMPLE / "assoc-reports.csv.gz").read_bytes()).decode()
    rows = [line.split(",") for line in text.splitlines()[1:]]
    assert batch.cohort.tolist() == [int(row[1]) for row in rows]
    assert bits_of(batch, "domain") == [int(row[2], 2) for row in rows]
    assert bits_of(batch, "https") == [int(row[3]) for row in rows]
    out = tmp_path / "new/out"
    assert {path.name for path in out.iterdir()} == {
        "survey.toml", "survey.json", "reports.parquet", "candidates-domain.txt"
    }  # fmt: skip
    assert batch.survey == Survey.load(out / "survey.toml") == Survey.load(out / "survey.json")
    names = (out / "candidates-domain.txt").read_text().splitlines()
    assert names == list(rappor_files.CANDIDATES)
    head = "client,cohort,irr\nsomebody-1,0,0101\nsomebody-2,1,1111\n"
    assert small(tmp_path, head).exit_code == 0
    for path in (tmp_path / "out").iterdir():
        assert b"somebody" not in path.read_bytes()


@pytest.mark.parametrize("name", ["params.csv", "map.csv", "reports.csv"])
def test_compressed_files_and_byte_order_marks(name: str, tmp_path: Path) -> None:
    head = "client,cohort,irr\n1,0,0101\n2,1,1111\n"
    first, second = tmp_path / "first", tmp_path / "second"
    for folder in (first, second):
        folder.mkdir()
        assert small(folder, head).exit_code == 0
    data = (second / name).read_bytes()
    for changed in (gzip.compress(data), b"\xef\xbb\xbf" + data):
        (second / name).write_bytes(changed)
        imported(second / f"again-{len(changed)}", "--params", second / "params.csv", "--map",
                 second / "map.csv", second / "reports.csv")  # fmt: skip
        again = read(second / f"again-{len(changed)}" / "reports.parquet")
        assert bits_of(again, "value") == bits_of(read(first / "out/reports.parquet"), "value")


@pytest.mark.parametrize(
    "reports",
    [
        "client,cohort,irr\n7,1,1100\n8,0,0101\n",
        "user_id,cohort,rappor\r\n7,1,1100\r\n8,0,0101",
        "client,cohort,bloom,prr,irr\n7,1,x,,1100\n8,0,y,,0101\n",
        'client,cohort,irr\n"a b",1,1100\n8,0,0101\n',
        "client,cohort,irr\n7,1,1100\r8,0,0101\r",
    ],
)
def test_headers_columns_and_line_ends(reports: str, tmp_path: Path) -> None:
    assert small(tmp_path, reports).exit_code == 0
    batch = read(tmp_path / "out/reports.parquet")
    assert bits_of(batch, "value") == [0b1100, 0b0101]
    assert batch.cohort.tolist() == [1, 0]


def test_long_bit_strings_and_many_blocks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("deniable.rappor.reports.BLOCK_BYTES", 1 << 12)
    params = Params(133, 2, 7, 0.25, 0.75, 0.0)
    write_params(tmp_path / "params.csv", params)
    write_map(tmp_path / "map.csv", ["a"], params)
    rng = np.random.default_rng(1)
    bits, cohort = rng.integers(0, 2, (500, 133), np.uint8), rng.integers(0, 7, 500)
    rappor_files.write_reports(tmp_path / "r.csv", range(500), cohort, {"irr": bits})
    imported(tmp_path / "out", "--params", tmp_path / "params.csv", "--map", tmp_path / "map.csv",
             tmp_path / "r.csv")  # fmt: skip
    batch = read(tmp_path / "out/reports.parquet")
    packed = np.packbits(bits, axis=1, bitorder="little")
    assert (batch.column("value").bits == packed).all()
    assert (batch.cohort == cohort).all()


def test_variables_become_questions(tmp_path: Path) -> None:
    (tmp_path / "vars.csv").write_text(
        "metric,var,var_type,params\nm,flag..HTTPS,boolean,https_params\nother,x,string,params\n"
    )
    (tmp_path / "r.csv").write_text("client,cohort,x,flag..HTTPS\n1,900,0,1\n2,3,1,0\n")
    options = ["--schema", tmp_path / "vars.csv", "--params-dir", EXAMPLE]
    done = imported(tmp_path / "out", *options, "--metric-name", "m", tmp_path / "r.csv")
    batch = read(tmp_path / "out/reports.parquet")
    assert batch.survey.name == "m"
    assert bits_of(batch, "flag-https") == [1, 0]
    assert not list((tmp_path / "out").glob("*.txt")), "a boolean has no candidates"
    (command,) = done.output.splitlines()[1:]
    assert CliRunner().invoke(app, shlex.split(command)[1:]).exit_code == 0


def test_repeated_clients_are_told(tmp_path: Path) -> None:
    lines = [f"{i % 3},0,{i % 16:04b}" for i in range(9)]
    done = small(tmp_path, "\n".join(["client,cohort,irr", *lines]))
    assert "the 9 reports come from 3 clients" in done.stderr


def test_imports_of_several_days_share_a_survey(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monday, tuesday = tmp_path / "monday", tmp_path / "tuesday"
    imported(monday, *SINGLE, EXAMPLE / "reports.csv.gz")
    later = SimpleNamespace(date=SimpleNamespace(today=lambda: dt.date(2099, 1, 1)))
    monkeypatch.setattr(importing, "dt", later)
    imported(tmp_path / "apart", *SINGLE, EXAMPLE / "reports.csv.gz")
    assert "expires = 2099-01-01" in (tmp_path / "apart/survey.toml").read_text()
    imported(tuesday, *SINGLE, EXAMPLE / "reports.csv.gz", "--survey", monday / "survey.json")
    for name in ("survey.toml", "survey.json"):
        assert (monday / name).read_bytes() == (tuesday / name).read_bytes()
    survey, files = monday / "survey.toml", [d / "reports.parquet" for d in (monday, tuesday)]
    assert decode(survey, files, "value", ["apple.example"]).reports == 10_000
    other = run("--client", "python", *SINGLE, EXAMPLE / "reports.csv.gz", "-o", tmp_path / "no",
                "--survey", monday / "survey.toml")  # fmt: skip
    assert other.exit_code == 1
    assert "the survey of the earlier import describes other reports" in other.output
    assert not (tmp_path / "no").exists()


def test_probabilities_are_those_that_clients_draw_with(tmp_path: Path) -> None:
    """f = 0.3 is 38.4/128: seven random bits are below it with probability 39/128 or 38/128."""
    asked = Params(16, 2, 4, 0.3, 0.7, 0.3)
    python, cpp = drawn_noise(asked, "python"), drawn_noise(asked, "cpp")
    assert python == Params(16, 2, 4, 0.3, 0.7, sum(b < 128 * 0.3 for b in range(128)) / 128)
    assert cpp == Params(16, 2, 4, 76 / 256, 179 / 256, 38 / 128)
    assert drawn_noise(asked, "java") == asked
    write_params(tmp_path / "params.csv", asked)
    (tmp_path / "r.csv").write_text(f"client,cohort,irr\n1,0,{'01' * 8}\n")
    for client in ("python", "cpp", "java"):
        write_map(tmp_path / "map.csv", ["apple"], asked, client)
        out = tmp_path / client
        imported(out, "--params", tmp_path / "params.csv", "--map", tmp_path / "map.csv",
                 tmp_path / "r.csv", client=client)  # fmt: skip
        assert Survey.load(out / "survey.toml").collect == "repeatedly"
        rounded = "as the cpp client rounds it" in (out / "survey.toml").read_text()
        assert rounded == (client == "cpp")
        with pytest.raises(SurveyRefused, match="nobody can answer this survey"):
            Client(out / "survey.json", secret=bytes(32))


def test_maps_have_the_bits_of_the_client(tmp_path: Path) -> None:
    """Their vectors: three rows for k = 16, h = 2, m = 4, and one string of the Java client."""
    (tmp_path / "r.csv").write_text(f"client,cohort,irr\n1,0,{'01' * 8}\n")
    write_params(tmp_path / "params.csv", Params(16, 2, 4, 0.25, 0.75, 0.0))
    rows = ["apple,5,1,26,26,38,34,63,62", "banana,12,14,28,24,37,34,62,49",
            "carrot,4,12,25,21,48,38,61,54"]  # fmt: skip
    (tmp_path / "map.csv").write_text("\r\n".join(rows))
    options = ["--params", tmp_path / "params.csv", "--map", tmp_path / "map.csv"]
    imported(tmp_path / "out", *options, tmp_path / "r.csv")
    java = run("--client", "java", *options, tmp_path / "r.csv", "-o", tmp_path / "java")
    assert "map.csv, line 1: 'apple' has other bits than the java client sets" in java.output
    rows[1] = rows[1].replace("28", "29")
    (tmp_path / "map.csv").write_text("\r\n".join(rows))
    wrong = run("--client", "cpp", *options, tmp_path / "r.csv", "-o", tmp_path / "wrong")
    assert "map.csv, line 2: 'banana' has other bits than the cpp client sets" in wrong.output
    words = ["a,b", 'say "x"', "ü", "two words"]
    write_rows(tmp_path / "params.csv", [list("khmpqf"), [12, 2, 4, 0.25, 0.75, 0]])
    (tmp_path / "r.csv").write_text(f"client,cohort,irr\n1,3,{'01' * 6}\n")
    write_map(tmp_path / "map.csv", ["Whizbang", *words], Params(12, 2, 4, 0.25, 0.75, 0.0), "java")
    assert (tmp_path / "map.csv").read_text().splitlines()[0].split(",")[-2:] == ["43", "44"]
    imported(tmp_path / "words", *options, tmp_path / "r.csv", client="java")
    listed = (tmp_path / "words/candidates-value.txt").read_text("utf-8")
    assert listed.splitlines() == ["Whizbang", *words]


def test_a_folder_that_is_not_empty_is_refused(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").touch()
    done = run("--client", "cpp", *SINGLE, EXAMPLE / "reports.csv.gz", "-o", tmp_path)
    assert done.exit_code == 1
    assert f"{tmp_path} is not empty: choose another folder" in done.output
    assert [path.name for path in tmp_path.iterdir()] == ["notes.txt"]
    empty = tmp_path / "empty"
    empty.mkdir()
    imported(empty, *SINGLE, EXAMPLE / "reports.csv.gz")


def test_the_same_file_twice_is_refused(tmp_path: Path) -> None:
    reports = EXAMPLE / "reports.csv.gz"
    done = run("--client", "cpp", *SINGLE, reports, reports, "-o", tmp_path / "out")
    assert done.exit_code == 1 and "is given twice" in done.output
    assert not (tmp_path / "out").exists()
