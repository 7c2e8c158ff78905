"""deniable rappor: their files in, their files out."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from experiments.direct_counts import bit_counts, values_by_stratum

from deniable.cli.app import app
from deniable.rappor import files as rappor
from deniable.rappor.csv_files import write_rows
from deniable.rappor.files import Params
from deniable.rappor.reports import Reports, write_reports
from deniable.simulation import contingency, correlated, power, zipf

PARAMS = Params(64, 2, 16, 0.25, 0.75, 0.0)
WORDS = [f"v{i}" for i in range(30)]


def run(*args: Any) -> Any:
    return CliRunner().invoke(app, ["rappor", *map(str, args)])


@pytest.fixture
def dist(tmp_path: Path) -> Path:
    rng = np.random.default_rng(1)
    made = rappor.hash_map([*WORDS, *(f"absent{i}" for i in range(30))], PARAMS)
    values = values_by_stratum(power(30), 50_000, PARAMS.m, rng)
    counts = bit_counts(values, made.positions[:, :30], PARAMS.k, 0.25, 0.75, rng)
    rappor.write_params(tmp_path / "params.csv", PARAMS)
    write_rows(tmp_path / "map.csv", rappor.map_rows(made, PARAMS))
    write_rows(tmp_path / "counts.csv", rappor.count_rows(counts.ones, counts.total))
    return tmp_path


def arguments(folder: Path) -> list[Any]:
    return ["--map", folder / "map.csv", "--counts", folder / "counts.csv",
            "--params", folder / "params.csv", "--output-dir", folder]  # fmt: skip


def test_decode_dist(dist: Path) -> None:
    got = run("decode-dist", *arguments(dist))
    assert got.exit_code == 0, got.output
    with (dist / "results.csv").open(newline="") as file:
        rows = [
            {name: cell if name == "string" else float(cell) for name, cell in row.items()}
            for row in csv.DictReader(file)
        ]
    truth = dict(zip(WORDS, power(30), strict=True))
    assert rows[0]["string"] == "v0"
    assert all(row["string"] in truth for row in rows)
    for row in rows:
        assert abs(row["proportion"] - truth[row["string"]]) < 4.5 * row["prop_std_error"]
        assert row["estimate"] == pytest.approx(50_000 * row["proportion"])
    metrics = json.loads((dist / "metrics.json").read_text())
    assert metrics["sample_size"] == 50_000
    assert metrics["num_detected"] == len(rows) > 5
    assert 0.5 < metrics["explained_var"] <= 1
    assert metrics["explained_var"] + metrics["missing_var"] == pytest.approx(1)


@pytest.mark.parametrize("correction", ["FDR", "bonferroni", "None"])
def test_corrections_and_json(dist: Path, correction: str) -> None:
    got = run("decode-dist", *arguments(dist), "--correction", correction, "--json")
    assert json.loads(got.output)["num_detected"] >= 5


def test_mismatched_files_are_named(dist: Path) -> None:
    rappor.write_params(dist / "params.csv", Params(64, 2, 8, 0.25, 0.75, 0.0))
    got = run("decode-dist", *arguments(dist))
    assert got.exit_code == 1
    assert "expected" in got.output
    assert "Traceback" not in got.output


def reports_of(
    codes: Any, positions: Any, cohort: Any, k: int, rng: np.random.Generator
) -> np.ndarray[Any, np.dtype[np.uint8]]:
    bits = np.zeros((len(codes), k), np.uint8)
    for j in range(positions.shape[2]):
        bits[np.arange(len(codes)), positions[cohort, codes, j]] = 1
    noisy = rng.random(bits.shape) < np.where(bits, 0.75, 0.25)
    return np.packbits(noisy, axis=1, bitorder="little")


@pytest.mark.slow
def test_decode_assoc_string_by_string_with_different_parameters(tmp_path: Path) -> None:
    rng = np.random.default_rng(2)
    n, second = 40_000, Params(32, 1, 16, 0.25, 0.75, 0.0)
    table = correlated(zipf(6), zipf(4), strength=0.6)
    pages, langs = [f"p{i}" for i in range(6)], [f"l{i}" for i in range(4)]
    drawn = contingency(table, page=pages, lang=langs).draw(n, rng)
    cohort = rng.integers(0, 16, n).astype(np.uint16)
    maps = {"page": (rappor.hash_map(pages, PARAMS), PARAMS),
            "lang": (rappor.hash_map(langs, second), second)}  # fmt: skip
    columns = {}
    for name, (made, params) in maps.items():
        bits = reports_of(drawn[name].codes, made.positions, cohort, params.k, rng)
        columns[name] = (bits, params.k)
        rappor.write_params(tmp_path / f"{name}_params.csv", params)
        write_rows(tmp_path / f"{name}_map.csv", rappor.map_rows(made, params))
    https = rng.random(n) < np.where(drawn["lang"].codes == 0, 0.75, 0.25)
    columns["https"] = (https.astype(np.uint8)[:, None], 1)
    ids = np.array([b"%d" % i for i in range(n)])
    write_reports(tmp_path / "reports.csv", Reports(ids, cohort, columns))
    rappor.write_params(tmp_path / "https_params.csv", Params(1, 1, 16, 0.25, 0.75, 0.0))
    (tmp_path / "schema.csv").write_text(
        "metric,var,var_type,params\nm,page,string,page_params\nm,lang,string,lang_params\n"
        "m,https,boolean,https_params\n"
    )
    common = ["--metric-name", "m", "--schema", tmp_path / "schema.csv", "--params-dir", tmp_path,
              "--reports", tmp_path / "reports.csv", "--output-dir", tmp_path]  # fmt: skip
    got = run("decode-assoc", *common, "--var1", "page", "--map1", tmp_path / "page_map.csv",
              "--var2", "lang", "--map2", tmp_path / "lang_map.csv", "--json")  # fmt: skip
    assert got.exit_code == 0, got.output
    assert json.loads(got.output)["p_value"] < 1e-6
    lines = (tmp_path / "assoc-results.csv").read_text().splitlines()
    assert lines[0] == "page,lang,proportion"
    found = {tuple(line.split(",")[:2]): float(line.split(",")[2]) for line in lines[1:]}
    assert found["p0", "l0"] == pytest.approx(table[0, 0], abs=0.03)
    assert sum(found.values()) == pytest.approx(1)
    got = run("decode-assoc", *common, "--var1", "lang", "--map1", tmp_path / "lang_map.csv",
              "--var2", "https")  # fmt: skip
    assert got.exit_code == 0, got.output
    assert "TRUE" in got.output
    for arguments_, says in (
        (["--var1", "page", "--var2", "https"], "give its map"),
        (["--var1", "pagee", "--var2", "https"], "only page, lang, https. Did you mean"),
    ):
        wrong = run("decode-assoc", *common, *arguments_)
        assert wrong.exit_code == 1
        assert says in wrong.output
