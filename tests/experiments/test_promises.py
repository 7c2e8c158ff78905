"""Promises: verdicts follow from target and error, and every calibration is on the page."""

from __future__ import annotations

import importlib.util

import numpy as np
import pytest
from experiments.calibrate import FOLDER, kept
from experiments.promises import MARK, Promise, judged, share_error
from tools.facts import RESULTS


@pytest.mark.parametrize(
    ("values", "errors", "verdict"),
    [
        ([0.94, 0.96], 0.01, "kept"),
        ([0.94, 0.98], 0.01, "kept within error (±0.010)"),
        ([0.94, 0.90, 0.89], 0.005, "missed in 2 of 3 rows"),
        ([0.94, 0.90], 0.03, "not measured precisely enough (±0.030)"),
        ([0.94, 0.95], 0.03, "not measured precisely enough (±0.030)"),
    ],
)
def test_verdicts(values: list[float], errors: float, verdict: str) -> None:
    found = judged("Intervals cover", np.array(values), np.array(errors), 0.93, 0.97)
    assert found.verdict == verdict
    assert found.target == "0.93 to 0.97"
    assert found.measured == f"{min(values):.3f} to {max(values):.3f}"
    assert Promise.read(str(found)) == found


def test_one_sided_targets() -> None:
    found = judged("False strings", np.array([0.02]), np.array([0.01]), 0, 0.05)
    assert (found.target, found.measured, found.verdict) == ("at most 0.05", "0.020", "kept")
    assert judged("Found", np.array([0.5]), np.array([0.01]), 0.9, 1).target == "at least 0.9"
    gain = judged("Gain", np.array([9.8]), np.array([0.6]), 4, np.inf)
    assert gain.verdict == "kept", "the error is large, but the target is far away"


def test_a_share_of_nothing_has_an_error() -> None:
    assert 0 < share_error(np.array(0.0), 100) < 0.01


@pytest.mark.parametrize("name", kept())
def test_every_calibration_is_kept_and_explained(name: str) -> None:
    assert importlib.util.find_spec(f"experiments.{name}")
    page = (RESULTS / "promises.md").read_text()
    assert f"| `{name}` |" in page
    lines = (FOLDER / f"{name}.txt").read_text().splitlines()
    assert lines[0] == f"$ python -m experiments.{name}", "not from a run with the default size"
    assert any(line.startswith(MARK) for line in lines)
