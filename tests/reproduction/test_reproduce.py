"""`deniable reproduce`: every experiment runs and compares every number of the paper."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from deniable.cli.app import app
from deniable.reproduction import PAPER
from deniable.reproduction.figures import FIGURES
from deniable.reproduction.records import Comparison
from deniable.reproduction.runner import MIN_TASKS, in_processes, trials_by_case

PRINTED = {
    "tables": ("0.44", "3.26", "15", "19", "15.6", "12.7", "10.2", "8.4"),
    "other": ("not 1", "1"),
    "playstore": ("107.093", "29", "6.9523", "6.95e-11"),
    "independence": ("uniform", ".05"),
    "hashes": ("7", "17", "0"),
    "urls": ("75", "23", "5", "896", "0.0062", "4", "2", "3", "1"),
    "length": ("above 0", "0"),
    "threshold": ("close to 0",),
    "distributions": ("worse than geometric", "0"),
}


@pytest.mark.parametrize("name", PAPER)
def test_quick_runs_write_data_a_figure_and_rows(name: str, tmp_path: Path) -> None:
    done = CliRunner().invoke(app, ["reproduce", name, "--quick", "--json", "-o", str(tmp_path)])
    assert done.exit_code == 0, done.output
    rows = json.loads(done.stdout)
    assert {row["experiment"] for row in rows} == {name}
    assert set(PRINTED[name]) <= {row["paper"] for row in rows}
    data = json.loads((tmp_path / f"{name}.json").read_text())
    assert data["seed"] == __import__(f"deniable.reproduction.{name}", fromlist=["x"]).SEED
    assert data["version"] and data["parameters"] and len(data["comparisons"]) == len(rows)
    assert (tmp_path / f"{name}.png").stat().st_size > 5_000


def test_every_experiment_has_a_figure() -> None:
    assert list(FIGURES) == list(PAPER)


def test_an_unknown_name_is_refused() -> None:
    done = CliRunner().invoke(app, ["reproduce", "tabels"])
    assert done.exit_code == 2 and "tables" in done.output


def test_a_printed_number_agrees_if_it_lies_in_the_range_of_trials() -> None:
    assert Comparison.of("q", 7, [6, 8]).agrees
    assert Comparison.of("q", 8.5, [6, 8, 7, 8]).agrees, "within two standard deviations"
    assert not Comparison.of("q", 11, [6, 8]).agrees
    assert not Comparison.of("q", 0.44, [0.446]).agrees
    assert Comparison.of("q", 0.44, [0.446], rounding=0.0065).agrees, "as printed"
    assert Comparison.of("q", "", [1.0]).agrees is None
    assert Comparison.of("q", 1, [2.0]).row() == {
        "quantity": "q", "paper": "1", "ours": "2", "over seeds": "", "agrees": "no",
    }  # fmt: skip


def test_outcomes_of_processes_are_in_order() -> None:
    tasks = [(i, 3) for i in range(MIN_TASKS)]
    assert in_processes(divmod, tasks, "dividing") == [divmod(*task) for task in tasks]
    assert in_processes(divmod, [(7, 3)], "dividing") == [(2, 1)]
    cases = {"small": [(7, 3), (8, 3)], "none": [], "large": [(70, 3)]}
    expected = {"small": [(2, 1), (2, 2)], "none": [], "large": [(23, 1)]}
    assert trials_by_case(divmod, cases, "dividing") == expected
