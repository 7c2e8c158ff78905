"""`python -m experiments.paper`: every experiment runs and compares every printed number."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from experiments.paper import PAPER
from experiments.paper.__main__ import main
from experiments.paper.figures import FIGURES
from experiments.paper.processes import MIN_TASKS, in_processes, trials_by_case
from experiments.paper.records import Claim, Comparison

PRINTED = {
    "tables": ("0.44", "3.26", "15", "19", "15.6", "12.7", "10.2", "8.4"),
    "other": ("not 1", "1"),
    "playstore": ("107.093", "29", "6.9523", "6.9523e-11", "at least 0.95"),
    "independence": ("0.5", "0.05"),
    "hashes": ("7", "17", "0"),
    "urls": ("75", "23", "5", "896", "0.0062", "4", "2", "3", "1"),
    "length": ("above 0", "0"),
    "complexity": ("1", "above 0", "above 1"),
    "threshold": ("above 0", "0"),
    "distributions": ("above 0", "0"),
}


ROOT = Path(__file__).parents[2]


@pytest.mark.slow
@pytest.mark.parametrize("name", PAPER)
def test_quick_runs_write_data_a_figure_and_rows(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["paper", name, "--quick", "--json", "-o", str(tmp_path)])
    main()
    rows = json.loads(capsys.readouterr().out)
    assert {row["experiment"] for row in rows} == {name}
    assert set(PRINTED[name]) <= {row["paper"] for row in rows}
    data = json.loads((tmp_path / f"{name}.json").read_text())
    assert data["seed"] == __import__(f"experiments.paper.{name}", fromlist=["x"]).SEED
    assert data["version"] and data["parameters"] and len(data["comparisons"]) == len(rows)
    assert (tmp_path / f"{name}.png").stat().st_size > 5_000


def test_every_experiment_has_a_figure() -> None:
    assert list(FIGURES) == list(PAPER)


def test_no_id_lists_them_and_an_unknown_one_is_refused(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["paper"])
    main()
    assert [line.split()[0] for line in capsys.readouterr().out.splitlines()] == list(PAPER)
    monkeypatch.setattr(sys, "argv", ["paper", "tabels"])
    with pytest.raises(SystemExit):
        main()
    assert "tables" in capsys.readouterr().err


def test_a_printed_number_agrees_if_our_crowds_predict_it() -> None:
    seen = [6.0, 8.0, 7.0, 8.0, 6.0, 7.0]  # 7 ± t(5) s √(1 + 1/6), s = .894
    margin = 2.5706 * 0.8944 * np.sqrt(7 / 6)
    assert Comparison.of("q", 7 + 0.99 * margin, seen).agrees
    assert not Comparison.of("q", 7 - 1.01 * margin, seen).agrees
    # What the paper says of a method in general must lie in the interval of the mean.
    assert not Comparison.of("q", 8.5, seen, behind=np.inf).agrees
    assert Comparison.of("q", None, seen).verdict == ""
    assert Comparison.of("q", 7, [7]).verdict == "", "one crowd predicts nothing"
    row = Comparison.of("q", 12, seen, reason="other crowds").row()
    assert row["verdict"] == "differs by -5: other crowds"


def test_rounding_of_computed_numbers() -> None:
    assert not Comparison.of("q", 0.44, [0.446], computed=True).agrees
    assert Comparison.of("q", 0.44, [0.446], computed=True, rounding=0.0065).agrees


def test_numbers_that_vary_by_factors_are_compared_by_their_logarithms() -> None:
    """On the scale of the numbers, the range would reach below 0, and include 185."""
    seen = [468.0, 6480.0, 2500.0, 1200.0, 4000.0, 3000.0, 1800.0, 2200.0]
    assert Comparison.of("q", 150, seen).agrees
    found = Comparison.of("q", 150, seen, logarithm=True)
    assert found.agrees is False and found.difference.startswith("a factor of 1")


@pytest.mark.parametrize(
    ("claim", "seen", "verdict"),
    [
        (Claim("above", 0), [0.9, 1.0, 1.1, 1.0], True),
        (Claim("above", 0), [-0.9, -1.0, -1.1, -1.0], False),
        (Claim("above", 0), [-0.9, 1.0, 1.1, 0.2], None),
        (Claim("above", 0), [0.0, 0.0], False),
        (Claim("at least", 0), [0.0, 0.0], True),
        (Claim("not", 1), [0.7, 0.71, 0.72], True),
        (Claim("not", 1), [0.9, 1.1, 1.0], None),
        (Claim("not", 1), [1.0, 1.0], False),
    ],
)
def test_claims_agree_if_they_hold_in_the_whole_range(
    claim: Claim, seen: list[float], verdict: bool | None
) -> None:
    assert Comparison.of("q", claim, seen, behind=np.inf).agrees is verdict


def test_the_rule_holds_its_level_and_the_former_one_did_not() -> None:
    """False "differs" in 4,000 papers: 5 ± 1.1% (three standard errors) with one crowd behind.

    The twin is the former rule, between minimum and maximum or within two standard deviations,
    which with ten crowds calls 8% different. The chance of a false alarm is .003.
    """
    rng = np.random.default_rng(8)
    crowds, papers = rng.normal(size=(4000, 10)), rng.normal(size=4000)
    pairs = list(zip(papers.tolist(), crowds.tolist(), strict=True))
    differ = np.mean([not Comparison.of("q", paper, seen).agrees for paper, seen in pairs])
    assert abs(differ - 0.05) < 3 * np.sqrt(0.05 * 0.95 / 4000)
    spread, inside = crowds.std(axis=1, ddof=1), np.abs(papers - crowds.mean(axis=1))
    between = (crowds.min(axis=1) <= papers) & (papers <= crowds.max(axis=1))
    former = 1 - np.mean(between | (inside <= 2 * spread))
    assert abs(former - 0.05) > 3 * np.sqrt(0.05 * 0.95 / 4000)


def test_outcomes_of_processes_are_in_order() -> None:
    tasks = [(i, 3) for i in range(MIN_TASKS)]
    assert in_processes(divmod, tasks, "dividing") == [divmod(*task) for task in tasks]
    assert in_processes(divmod, [(7, 3)], "dividing") == [(2, 1)]
    cases = {"small": [(7, 3), (8, 3)], "none": [], "large": [(70, 3)]}
    expected = {"small": [(2, 1), (2, 2)], "none": [], "large": [(23, 1)]}
    assert trials_by_case(divmod, cases, "dividing") == expected


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")
def test_interrupted_processes_end_without_tracebacks() -> None:
    """Ctrl-C reaches all processes of a terminal."""
    child = subprocess.Popen(
        [sys.executable, "-c", "from tests.experiments.test_paper import many; many()"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True,
        cwd=ROOT,
    )  # fmt: skip
    assert child.stdout is not None
    child.stdout.readline()  # a worker is at work
    os.killpg(child.pid, signal.SIGINT)
    _, told = child.communicate(timeout=60)
    assert told.count("Traceback") == 1, told


def many() -> None:
    """Run tasks in processes until interrupted; the traceback is that of this process."""
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a background job may ignore it
    in_processes(_work, [(i,) for i in range(100)], "working")


def _work(task: int) -> None:
    print("at work", flush=True)
    time.sleep(60)
