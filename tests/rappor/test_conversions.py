"""Their tools and the way to a survey, against small reimplementations and vectors."""

from __future__ import annotations

import csv
import gzip
import hashlib
import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner, Result

from deniable import decode
from deniable.cli.app import app
from deniable.columns import read
from deniable.errors import InputError
from deniable.rappor.files import Params, write_params
from deniable.rappor.survey_file import drawn_noise, question_name
from deniable.survey import Survey

CLIENTS = 3000


def run(*args: Any, stdin: bytes | None = None) -> Result:
    return CliRunner().invoke(app, ["rappor", *map(str, args)], input=stdin)


def ok(*args: Any, stdin: bytes | None = None) -> Result:
    done = run(*args, stdin=stdin)
    assert done.exit_code == 0, done.output
    return done


@pytest.fixture(scope="module")
def legacy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Files of google/rappor, as `deniable rappor example` writes them."""
    folder = tmp_path_factory.mktemp("legacy")
    ok("example", folder, "--clients", CLIENTS)
    return folder


def survey_of(legacy: Path, folder: Path, file: str = "schema.csv", *options: str) -> Path:
    path = folder / "survey.toml"
    ok("survey", legacy / file, "--client", "cpp", "-o", path, *options)
    return path


def slow_counts(text: str, k: int, m: int, column: int = -1) -> bytes:
    """Count character by character: total and bits 0 to k - 1 of each cohort."""
    table = [[0] * (k + 1) for _ in range(m)]
    for row in list(csv.reader(io.StringIO(text)))[1:]:
        counts = table[int(row[1])]
        counts[0] += 1
        for place, character in enumerate(reversed(row[column])):
            counts[place + 1] += character == "1"
    return "".join(",".join(map(str, row)) + "\r\n" for row in table).encode()


def test_sum_bits_counts_every_bit(legacy: Path, tmp_path: Path) -> None:
    text = (legacy / "reports.csv").read_text()
    expected = slow_counts(text, 32, 16)
    ok("sum-bits", legacy / "params.csv", legacy / "reports.csv", "-o", tmp_path / "new/counts.csv")
    assert (tmp_path / "new/counts.csv").read_bytes() == expected
    piped = ok("sum-bits", legacy / "params.csv", stdin=text.encode())
    assert piped.stdout_bytes == expected
    bloom = ok("sum-bits", legacy / "params.csv", legacy / "reports.csv", "--column", "bloom")
    assert bloom.stdout_bytes == slow_counts(text, 32, 16, 2) != expected
    (tmp_path / "reports.csv.gz").write_bytes(gzip.compress(text.encode()))
    packed = ok("sum-bits", legacy / "params.csv", tmp_path / "reports.csv.gz")
    assert packed.stdout_bytes == expected


def test_sum_bits_reads_the_three_columns_of_older_tools(tmp_path: Path) -> None:
    write_params(tmp_path / "params.csv", Params(4, 1, 3, 0.25, 0.75, 0.0))
    for head in (b"user_id,cohort,rappor\n", b"client,cohort,irr\r\n", b""):
        counted = ok("sum-bits", tmp_path / "params.csv", stdin=head + b"7,2,1100\n8,2,0101\n")
        assert counted.stdout_bytes == b"0,0,0,0,0\r\n0,0,0,0,0\r\n2,1,0,2,1\r\n"


def slow_map_row(word: bytes, k: int, h: int, m: int) -> list[int]:
    """MD5 of the cohort (four bytes, big-endian) and the word: byte i is hash i."""
    digests = [hashlib.md5(cohort.to_bytes(4, "big") + word).digest() for cohort in range(m)]
    return [c * k + digests[c][i] % k + 1 for c in range(m) for i in range(h)]


def test_hash_candidates_writes_their_map(tmp_path: Path) -> None:
    params = tmp_path / "params.csv"
    write_params(params, Params(16, 2, 4, 0.25, 0.75, 0.0))
    vectors = (
        b"apple,5,1,26,26,38,34,63,62\r\n"
        b"banana,12,14,28,24,37,34,62,49\r\n"
        b"carrot,4,12,25,21,48,38,61,54\r\n"
    )
    assert ok("hash-candidates", params, stdin=b"apple\nbanana\r\n carrot").stdout_bytes == vectors
    words = ["a,b", 'say "x"', "ü", "two words", ""]
    (tmp_path / "words.txt").write_text("\n".join(words) + "\n", encoding="utf-8")
    ok("hash-candidates", params, tmp_path / "words.txt", "-o", tmp_path / "new/map.csv")
    written = (tmp_path / "new/map.csv").read_bytes()
    expected = ['"a,b"', '"say ""x"""', "ü", "two words", ""]
    assert (
        written
        == "".join(
            ",".join([cell, *map(str, slow_map_row(word.encode(), 16, 2, 4))]) + "\r\n"
            for cell, word in zip(expected, words, strict=True)
        ).encode()
    )


def test_hash_candidates_of_the_java_client(tmp_path: Path) -> None:
    """Their vector: k = 12, h = 2, "Whizbang", cohort 3 sets bits 6 and 7."""
    write_params(tmp_path / "params.csv", Params(12, 2, 4, 0.25, 0.75, 0.0))
    made = ok("hash-candidates", tmp_path / "params.csv", "--client", "java", stdin=b"Whizbang\n")
    assert made.output.strip().split(",")[-2:] == ["43", "44"]


def test_many_candidates_are_hashed_in_their_order(tmp_path: Path) -> None:
    write_params(tmp_path / "params.csv", Params(32, 1, 2, 0.25, 0.75, 0.0))
    words = [f"w{i}" for i in range(2500)]
    made = ok("hash-candidates", tmp_path / "params.csv", stdin="\n".join(words).encode())
    assert [line.split(",")[0] for line in made.output.splitlines()] == words


def test_the_old_way_and_the_new_way_agree(legacy: Path, tmp_path: Path) -> None:
    """sum-bits, hash-candidates and decode-dist estimate what import and decode do."""
    params = legacy / "params.csv"
    ok("sum-bits", params, legacy / "reports.csv", "-o", tmp_path / "counts.csv")
    ok("hash-candidates", params, legacy / "candidates.txt", "-o", tmp_path / "map.csv")
    ok("decode-dist", "--params", params, "--counts", tmp_path / "counts.csv",
       "--map", tmp_path / "map.csv", "--output-dir", tmp_path / "a/new/folder")  # fmt: skip
    with (tmp_path / "a/new/folder/results.csv").open(newline="") as file:
        theirs = {row["string"]: float(row["proportion"]) for row in csv.DictReader(file)}
    survey = survey_of(legacy, tmp_path, "params.csv", "--question", "domain")
    ok("import", tmp_path / "r.parquet", legacy / "reports.csv", "--survey", survey)
    candidates = (legacy / "candidates.txt").read_text().split()
    found = decode(Survey.load(survey), tmp_path / "r.parquet", "domain", candidates)
    ours = {candidates[i]: float(found.estimate[i]) for i in found.top(10)}
    assert ours == pytest.approx(theirs)
    assert "apple.example" in ours


def test_import_keeps_every_bit_and_cohort(legacy: Path, tmp_path: Path) -> None:
    survey = survey_of(legacy, tmp_path)
    done = ok("import", tmp_path / "new/r.parquet", legacy / "assoc-reports.csv",
              "--survey", survey, "--json")  # fmt: skip
    assert json.loads(done.stdout) == {
        "reports": CLIENTS, "file": str(tmp_path / "new/r.parquet"), "clients": CLIENTS
    }  # fmt: skip
    batch = read(tmp_path / "new/r.parquet")
    assert batch.survey == Survey.load(survey)
    lines = (legacy / "assoc-reports.csv").read_text().splitlines()[1:]
    for row, line in enumerate(lines[:200]):
        _, cohort, domain, https = line.split(",")
        assert batch.cohort[row] == int(cohort)
        assert int.from_bytes(batch.column("domain").bits[row].tobytes(), "little") == int(
            domain, 2
        )
        assert batch.column("https").bits[row, 0] == int(https)


def test_a_store_counts_a_file_once(legacy: Path, tmp_path: Path) -> None:
    survey, url = survey_of(legacy, tmp_path), tmp_path / "reports.db"
    lines = (legacy / "assoc-reports.csv").read_bytes().splitlines(keepends=True)
    first, second = tmp_path / "first.csv", tmp_path / "second.csv"
    first.write_bytes(b"".join(lines[:1001]))
    second.write_bytes(lines[0] + b"".join(lines[1001:]))
    for files, new in (([first], 1000), ([first, second], CLIENTS - 1000), ([second], 0)):
        done = ok("import", url, *files, "--survey", survey, "--day", "2017-01-31", "--json")
        assert json.loads(done.stdout)["new"] == new
    status = CliRunner().invoke(app, ["store", "status", str(url), "--json"])
    assert json.loads(status.stdout)["surveys"][0]["days"] == {"2017-01-31": CLIENTS}


@pytest.mark.parametrize("target", ["r.parquet", "r.db"])
def test_nothing_is_imported_if_the_last_line_is_wrong(
    legacy: Path, tmp_path: Path, target: str
) -> None:
    survey = survey_of(legacy, tmp_path)
    good = legacy / "assoc-reports.csv"
    (tmp_path / "bad.csv").write_bytes(good.read_bytes() + b"9,16,1,1\r\n")
    done = run("import", tmp_path / target, good, tmp_path / "bad.csv", "--survey", survey)
    assert done.exit_code == 1
    assert f"bad.csv: line {CLIENTS + 2}: expected a cohort in 0..15, got '16'" in done.output
    assert not (tmp_path / target).exists()


def test_columns_by_name_by_option_and_alone(legacy: Path, tmp_path: Path) -> None:
    survey = survey_of(legacy, tmp_path)
    (tmp_path / "r.csv").write_text(
        "client,cohort,Domain,https,other\n"
        f"1,3,{'01' * 16},1,0\n2,4,{'10' * 16},0,1\n"
    )  # fmt: skip
    ok("import", tmp_path / "a.parquet", tmp_path / "r.csv", "--survey", survey)
    batch = read(tmp_path / "a.parquet")
    assert batch.column("domain").bits[0].tolist() == [0x55] * 4
    assert batch.column("https").bits.tolist() == [[1], [0]]
    ok("import", tmp_path / "b.parquet", tmp_path / "r.csv", "--survey", survey,
       "--column", "https=other")  # fmt: skip
    assert read(tmp_path / "b.parquet").column("https").bits.tolist() == [[0], [1]]
    same = run("import", tmp_path / "c.parquet", tmp_path / "r.csv", "--survey", survey,
               "--column", "https=Domain")  # fmt: skip
    assert "two questions have the same column (domain=Domain, https=Domain)" in same.output


def test_repeated_clients_are_told(legacy: Path, tmp_path: Path) -> None:
    survey = survey_of(legacy, tmp_path, "params.csv")
    lines = [f"{i % 3},0,{i % 16:032b}" for i in range(9)]
    (tmp_path / "r.csv").write_text("\n".join(["client,cohort,irr", *lines]))
    done = ok("import", tmp_path / "r.parquet", tmp_path / "r.csv", "--survey", survey)
    assert "the 9 reports come from 3 clients" in done.stderr


def test_the_survey_has_the_probabilities_that_clients_draw_with() -> None:
    """f = 0.3 is 38.4/128: seven random bits are below it with probability 39/128 or 38/128."""
    asked = Params(16, 2, 4, 0.3, 0.7, 0.3)
    python, cpp = drawn_noise(asked, "python"), drawn_noise(asked, "cpp")
    assert python == Params(16, 2, 4, 0.3, 0.7, sum(b < 128 * 0.3 for b in range(128)) / 128)
    assert cpp == Params(16, 2, 4, 76 / 256, 179 / 256, 38 / 128)
    assert drawn_noise(asked, "java") == asked


def test_a_survey_of_rounded_and_permanent_noise(tmp_path: Path) -> None:
    write_params(tmp_path / "params.csv", Params(16, 2, 4, 0.3, 0.7, 0.3))
    for client in ("python", "cpp", "java"):
        path = tmp_path / f"{client}.toml"
        ok("survey", tmp_path / "params.csv", "--client", client, "-o", path, "--owner", "Ada")
        survey = Survey.load(path)
        assert survey.name == client
        assert survey.owner == "Ada"
        assert survey.collect == "repeatedly"
        assert ("as the cpp client rounds it" in path.read_text()) == (client == "cpp")


def test_names_of_variables_become_names_of_questions(legacy: Path, tmp_path: Path) -> None:
    (tmp_path / "schema.csv").write_text(
        "metric,var,var_type,params\nm,flag..HTTPS,boolean,https_params\nother,x,string,params\n"
    )
    path = tmp_path / "survey.toml"
    ok("survey", tmp_path / "schema.csv", "--client", "cpp", "--metric-name", "m",
       "--params-dir", legacy, "-o", path)  # fmt: skip
    assert [q.name for q in Survey.load(path).questions] == ["flag-https"]
    (tmp_path / "r.csv").write_text("client,cohort,x,flag..HTTPS\n1,900,0,1\n2,3,1,0\n")
    ok("import", tmp_path / "r.parquet", tmp_path / "r.csv", "--survey", path)
    assert read(tmp_path / "r.parquet").column("flag-https").bits.tolist() == [[1], [0]]
    assert question_name("Home Page!") == "home-page"


def test_the_example_is_reproducible_and_overwrites_nothing(legacy: Path, tmp_path: Path) -> None:
    ok("example", tmp_path, "--clients", CLIENTS)
    for path in legacy.iterdir():
        assert path.read_bytes() == (tmp_path / path.name).read_bytes()
    again = run("example", tmp_path)
    assert again.exit_code == 1
    assert "params.csv already exists" in again.output


def test_the_noise_of_the_example_is_that_of_its_parameters(legacy: Path) -> None:
    """Of 3,000 x 32 bits, the shares that are sent as 1; false alarm below 1e-5 at 4.5 sigma."""
    rows = list(csv.DictReader((legacy / "reports.csv").read_text().splitlines()))
    true, sent = (
        np.array([[int(bit) for bit in row[column]] for row in rows]) for column in ("bloom", "irr")
    )
    for bit, share in ((0, 0.25), (1, 0.75)):
        at = true == bit
        assert abs(sent[at].mean() - share) < 4.5 * (0.1875 / at.sum()) ** 0.5


def test_only_surveys_of_their_clients_are_imported(legacy: Path, tmp_path: Path) -> None:
    good = survey_of(legacy, tmp_path).read_text()
    for change, says in (
        (('scheme = "rappor-cpp"\n', ""), "'domain' hashes strings with the scheme deniable-1"),
        (('kind = "boolean"', 'kind = "choice"\noptions = ["a", "b"]'), "report only booleans"),
    ):
        path = tmp_path / "other.toml"
        path.write_text(good.replace(*change))
        done = run("import", tmp_path / "r.parquet", legacy / "assoc-reports.csv",
                   "--survey", path)  # fmt: skip
        assert done.exit_code == 1
        assert says in done.output


def test_params_validate_themselves() -> None:
    for bad in ((0, 1, 1, 0.25, 0.75, 0.0), (8, 1, 1, 0.5, 0.5, 0.0), (8, 1, 1, 0.25, 0.75, 1.0)):
        with pytest.raises(InputError):
            Params(*bad)
