"""Test every route against the OpenAPI description, with schemathesis."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from deniable.collector import keys
from tests.faults.server import Server

RUN = "from schemathesis.cli import schemathesis; schemathesis()"
START_JOB = "startJob"
LENIENT = ("--exclude-checks", "positive_data_acceptance")
"""The description cannot say which bytes are a report, nor which of two days comes first: some
requests that match it are refused."""


def inflict(folder: Path, examples: int, seed: int = 1, *options: str, uploads: bool = True) -> str:
    """Try valid and invalid examples for each operation, with and without tokens."""
    file = folder / "keys.json"
    token = keys.add(file, "ann", "analyst")
    cases = 0
    with Server(folder, "--keys", str(file)) as server:
        given = ("--header", f"Authorization: Bearer {token}")
        runs: list[tuple[str, ...]] = [
            ("--exclude-path", "/v1/reports", "--exclude-operation-id", START_JOB, *given),
            ("--include-operation-id", START_JOB, *LENIENT, *given),
        ]
        if uploads:
            runs.append(("--include-path", "/v1/reports", *LENIENT))
        for chosen in runs:
            done = subprocess.run(
                [
                    sys.executable, "-c", RUN, "run",
                    f"http://127.0.0.1:{server.port}/openapi.json",
                    "--max-examples", str(examples), "--seed", str(seed), *chosen, *options,
                ],
                capture_output=True, text=True, cwd=folder,
            )  # fmt: skip
            assert done.returncode == 0, done.stdout[-5000:] + done.stderr[-2000:]
            found = re.search(r"([\d,]+) generated", done.stdout)
            assert found, done.stdout[-2000:]
            cases += int(found[1].replace(",", ""))
        server.stop()
    return f"{cases:,} cases: no failure"


def test_api(tmp_path: Path) -> None:
    print(inflict(tmp_path, 2, 1, "--phases", "fuzzing", uploads=False))
