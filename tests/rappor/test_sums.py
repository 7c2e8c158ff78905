"""The Python of the documentation for those who kept only counts.csv."""

from __future__ import annotations

import csv
import gzip
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tools.rappor_files import PARAMS, write_rows
from tools.run_docs import ROOT, blocks_of

from tests.rappor.test_import import EXAMPLE


def test_sums_are_decoded_as_reports_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    counts = np.zeros((PARAMS.m, PARAMS.k + 1), int)
    with gzip.open(EXAMPLE / "reports.csv.gz", "rt") as file:
        for row in csv.DictReader(file):
            counts[int(row["cohort"])] += [1, *(bit == "1" for bit in row["irr"][::-1])]
    write_rows(tmp_path / "counts.csv", counts.tolist())
    for name in ("params.csv", "map.csv"):
        shutil.copy(EXAMPLE / name, tmp_path)
    monkeypatch.chdir(tmp_path)
    (block,) = blocks_of((ROOT / "docs/reference/not-included.md").read_text())
    defined: dict[str, Any] = {}
    exec(compile(block.code, "page", "exec"), defined)
    assert "apple.example" in capsys.readouterr().out
    shares = defined["marginal"].estimate[:3]
    former = [0.5085882942000935, 0.2949927884727261, 0.16125557278467417]
    np.testing.assert_allclose(shares, former, rtol=1e-9)
