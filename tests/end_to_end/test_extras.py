"""Each extra, installed alone from the wheel, runs the first command in the documentation."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import time
import tomllib
import urllib.error
import urllib.request
from pathlib import Path

import pytest
from tools.run_docs import blocks_of

from tests.end_to_end.wheel import ROOT, Environment, install

PAGE = (ROOT / "docs" / "how-to" / "install.md").read_text()
FIRST = {
    extra.strip("`"): command
    for extra, command in re.findall(r"^\| (\S+) \|.*\| `(.+)` \|$", PAGE, re.MULTILINE)
}
"""The first command of each extra."""
SHOWN = {"cli": "ε", "analysis": "cat", "plots": "pets.png", "frames": "estimate", "cluster": "cat"}


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The files that the page makes first."""
    folder = tmp_path_factory.mktemp("files")
    table, commands = (block for block in blocks_of(PAGE) if "pets.csv" in block.title + block.code)
    (folder / table.title).write_text(table.code)
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = os.environ | {"PATH": path}
    subprocess.run(["bash", "-ec", commands.code], cwd=folder, env=environment, check=True)
    return folder


@pytest.fixture
def folder(files: Path, tmp_path: Path) -> Path:
    """A folder of its own for each test, with these files."""
    return Path(shutil.copytree(files, tmp_path / "work"))


def test_the_page_lists_every_extra() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = set(project["optional-dependencies"]) - {"all", "dev", "docs"}
    assert set(FIRST) == extras | {"none"}


def test_the_command_line_alone(wheel: Path, folder: Path) -> None:
    run_first("cli", install(wheel, folder / "env", "cli"), folder)


def test_the_analysis_alone_and_what_includes_it(wheel: Path, folder: Path) -> None:
    """Packages of one extra are removed before the next; those of `analysis` serve all of them."""
    environment = install(wheel, folder / "env", "analysis")
    run_first("analysis", environment, folder)
    kept = set(environment.packages.iterdir())
    for extra in ("plots", "frames", "cluster"):
        install(wheel, folder / "env", extra)
        run_first(extra, environment, folder)
        for added in set(environment.packages.iterdir()) - kept:
            shutil.rmtree(added) if added.is_dir() else added.unlink()


def run_first(extra: str, environment: Environment, folder: Path) -> None:
    """Run the first command of an extra."""
    done = environment.run(shlex.split(FIRST[extra]), folder)
    assert SHOWN[extra] in done.stdout + done.stderr


def test_the_collector_serves(wheel: Path, folder: Path) -> None:
    environment = install(wheel, folder / "env", "collector")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [*shlex.split(FIRST["collector"]), "--port", str(port)]
    with subprocess.Popen(
        [environment.programs / command[0], *command[1:]],
        cwd=folder, env=environment.variables, stderr=subprocess.PIPE, text=True,
    ) as process:  # fmt: skip
        try:
            assert b"pet" in fetched(f"http://127.0.0.1:{port}/v1/surveys/survey", process)
        finally:
            process.send_signal(signal.SIGTERM)


def fetched(url: str, process: subprocess.Popen[str]) -> bytes:
    """Return a page of a server that is starting."""
    for _ in range(300):
        try:
            with urllib.request.urlopen(url) as response:
                return bytes(response.read())
        except urllib.error.URLError:
            assert process.poll() is None, process.stderr and process.stderr.read()
            time.sleep(0.1)
    raise TimeoutError(url)


def test_postgres(wheel: Path, folder: Path, postgres_server: object) -> None:
    postgres_server.wipe()  # type: ignore[attr-defined]
    url = postgres_server.url  # type: ignore[attr-defined]
    environment: Environment = install(wheel, folder / "env", "postgres")
    command = [url if part.startswith("postgresql:") else part for part in
               shlex.split(FIRST["postgres"])]  # fmt: skip
    assert "5,000" in environment.run(command, folder).stdout
