"""Test every route against the OpenAPI description, with schemathesis."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from deniable.collector import keys
from tests.faults.server import Server

RUN = "from schemathesis.cli import schemathesis; schemathesis()"


def inflict(folder: Path, examples: int, *options: str, uploads: bool = True) -> str:
    """Try valid and invalid examples for each operation, with and without tokens."""
    file = folder / "keys.json"
    token = keys.add(file, "ann", "analyst")
    cases = 0
    with Server(folder, "--keys", str(file)) as server:
        runs = [("--exclude-path", "/v1/reports", "--header", f"Authorization: Bearer {token}")]
        if uploads:
            # The description cannot say which bytes are a report, so most are refused.
            runs.append(
                ("--include-path", "/v1/reports", "--exclude-checks", "positive_data_acceptance")
            )
        for chosen in runs:
            done = subprocess.run(
                [
                    sys.executable, "-c", RUN, "run",
                    f"http://127.0.0.1:{server.port}/openapi.json",
                    "--max-examples", str(examples), "--seed", "1", *chosen, *options,
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
    print(inflict(tmp_path, 2, "--phases", "fuzzing", uploads=False))
