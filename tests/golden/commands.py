"""Run the command in this process, and write the files that it reads."""

from __future__ import annotations

import csv
import json
from datetime import date
from pathlib import Path
from typing import Any

from click.testing import CliRunner, Result

from tests.golden.crowds import answers, survey_path
from tests.golden.imports import app

DAYS = (date(2025, 3, 4), date(2025, 3, 5), date(2025, 3, 12))
"""Two days of one week and one of the next."""


def run(*args: object, input: str | None = None) -> Result:
    """Run a command."""
    return CliRunner().invoke(app, [str(arg) for arg in args], input=input)


def output(*args: object, input: str | None = None) -> str:
    """Run a command that must succeed, and return what it printed."""
    got = run(*args, input=input)
    assert got.exit_code == 0, f"{args}: exit code {got.exit_code}\n{got.output}"
    return got.stdout


def said(*args: object) -> Any:
    """Run a command with --json and return what it printed as data."""
    return json.loads(output(*args, "--json"))


def write_answers(path: Path, name: str, seed: int, clients: int) -> Path:
    """Write the answers of a crowd as the CSV file that `simulate` reads."""
    given = answers(name, seed, clients)
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(given)
        for row in zip(*given.values(), strict=True):
            writer.writerow([{True: "yes", False: "no", None: ""}.get(cell, cell) for cell in row])
    return path


def write_reports(path: Path, name: str, seed: int = 1, clients: int = 4000) -> Path:
    """Write the reports of a crowd to a file, by the command."""
    values = write_answers(path.with_suffix(".csv"), name, seed, clients)
    output("simulate", survey_path(name), "--values", values, "--seed", seed, "-o", path)
    return path


def without(data: dict[str, Any], *names: str) -> dict[str, Any]:
    """Return data without these keys: paths, sizes of compressed files, and wording."""
    assert set(names) <= data.keys(), f"expected {names}, got {sorted(data)}"
    return {key: value for key, value in data.items() if key not in names}


def listed(folder: Path, strings: Any, name: str = "strings.txt") -> Path:
    """Write a list of strings, one per line."""
    (folder / name).write_text("\n".join(strings) + "\n", encoding="utf-8")
    return folder / name


def store_of_days(path: Path, name: str, folder: Path, clients: int = 2000) -> Path:
    """Make a store with the reports of three days, by the command."""
    for number, day in enumerate(DAYS):
        reports = write_reports(folder / f"day{number}.parquet", name, 30 + number, clients)
        output("import", path, reports, "--day", day)
    return path
