"""The first hour of a new user: the wheel, an empty folder, and no writable home directory.

Of the repository, only the text of the pages and the tool that runs their blocks are used.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.end_to_end.wheel import ROOT, Environment, install

PAGES = ("README.md", "docs/tutorial.md", "docs/how-to/collector.md")
ANSWERS = "editor,dark_mode,word\n" + "vim,yes,cat\n" * 600 + "emacs,no,dog\n" * 400
OPTIONS = "--owner you@example.com --description editors --choice editor=vim,emacs,nano"


@pytest.fixture(scope="module")
def environment(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Environment:
    """The wheel with the extras of a user who collects and analyses."""
    if shutil.which("curl") is None:
        (pytest.fail if os.environ.get("CI") else pytest.skip)("curl is not installed")
    return install(wheel, tmp_path_factory.mktemp("first-hour") / "env", "collector,plots")


def test_the_blocks_of_the_first_pages_run(environment: Environment, tmp_path: Path) -> None:
    shutil.copy(ROOT / "tools" / "run_docs.py", tmp_path)  # away from the sources
    pages = [str(ROOT / page) for page in PAGES]
    done = environment.run(["python", "run_docs.py", "--no-home", *pages], tmp_path)
    assert done.stdout.count("blocks ran") == len(PAGES)


@contextlib.contextmanager
def collector(environment: Environment, folder: Path) -> Iterator[str]:
    """Run `deniable serve` and give its address; it must stop at once when it is told to."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    process = subprocess.Popen(
        [environment.programs / "deniable", "serve", "survey.json", "--store", "reports.db"],
        cwd=folder,
        env={**environment.variables, "DENIABLE_PORT": str(port)},
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stderr is not None
        assert "listening on" in process.stderr.readline()
        yield f"http://127.0.0.1:{port}"
    finally:
        process.terminate()
        _, errors = process.communicate(timeout=30)
    assert process.returncode == 0 and "Traceback" not in errors


def test_every_step_from_a_survey_to_a_page(environment: Environment, tmp_path: Path) -> None:
    folder = tmp_path / "an empty folder ø"
    folder.mkdir()

    def run(line: str, *, rc: int = 0) -> str:
        return environment.run(["deniable", *line.split()], folder, rc=rc).stdout

    # Write and publish a survey.
    assert "Next: deniable check survey.toml" in run(
        f"init survey.toml {OPTIONS} --boolean dark_mode --unknown word --epsilon 9"
    )
    draft = (folder / "survey.toml").read_text()
    (folder / "survey.toml").write_text(
        draft.replace("max_length = 20", "max_length = 4").replace("a-z0-9._-", "a-z")
    )
    assert "Detection threshold" in run("check survey.toml -o survey.json")
    survey = json.loads((folder / "survey.json").read_text())
    assert {q["name"] for q in survey["questions"]} == {"editor", "dark_mode", "word"}

    # Without a home directory, a client needs a folder, and says so.
    refused = environment.run(["deniable", "answer", "survey.json", "editor=vim"], folder, rc=3)
    assert "choose a folder" in refused.stderr and "Traceback" not in refused.stderr

    # Collect: one report through the client, one through curl.
    with collector(environment, folder) as address:
        run("answer survey.json editor=vim dark_mode=yes word=cat --folder device")
        assert "1 accepted, 0 waiting" in run(f"send {address} --folder device --wait 30")
        other = json.loads(
            run(f"answer {address}/v1/surveys/survey editor=emacs --folder other --json")
        )
        (folder / "report").write_bytes(bytes.fromhex(other["report"]))
        curl = ["curl", "--silent", "--show-error", "--data-binary", "@report"]
        curl += ["-H", "Content-Type: application/octet-stream"]
        curl += ["-H", f"Idempotency-Key: {'0123456789abcdef' * 2}"]
        uploaded = subprocess.run(
            [*curl, f"{address}/v1/reports"], cwd=folder, capture_output=True, text=True
        )
        assert uploaded.stdout.startswith('{"accepted"'), uploaded
        deadline = time.monotonic() + 30
        while "2 reports" not in (status := run("store status reports.db")):
            assert time.monotonic() < deadline, status
    assert "report" in run("export reports.db survey two.parquet")

    # A crowd, in the same store on an earlier day.
    (folder / "answers.csv").write_text(ANSWERS)
    run("simulate survey.json --values answers.csv --seed 1 -o crowd.parquet")
    assert "added 1,000 new" in run("import reports.db crowd.parquet --day 2026-01-05")

    # Analyse.
    assert "vim" in run("decode survey reports.db --question editor -o editor.json -o editor.png")
    shares = json.loads((folder / "editor.json").read_text())
    assert shares["reports"] == 1002
    assert "2026-01-05" in run("decode survey reports.db --question editor --by day")
    assert "cat" in run("discover survey.json crowd.parquet -o words.json")
    pairs = "--question editor --question dark_mode"
    assert "emacs" in run(f"associate survey.json reports.db {pairs} -o joint.json")
    run("report editor.json words.json joint.json --survey survey.json -o report.html")
    page = (folder / "report.html").read_text()
    assert "<svg" in page and "vim" in page and 'src="http' not in page
    assert (folder / "editor.png").read_bytes().startswith(b"\x89PNG")
    assert not (Path(environment.variables["HOME"])).exists()
