"""The Containerfile: it builds from what it copies, runs without rights, and its check works."""

from __future__ import annotations

import json
import os
import re
import shutil
import socket
import subprocess
import sys
import time
import tomllib
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.deploy.files import (
    ROOT,
    has_route,
    image_variables,
    only,
    settings_of,
    stages,
)
from tests.surveys import make_survey

BUILD, FINAL = stages()
COPIED = [
    source
    for instruction in BUILD
    if instruction.name == "COPY"
    for source in instruction.text.split()[:-1]
]


def check_command() -> list[str]:
    """Return the command of the health check."""
    command: list[str] = json.loads(only(FINAL, "HEALTHCHECK").partition("CMD ")[2])
    return command


def test_the_context_has_what_is_copied_and_nothing_else() -> None:
    allowed = [
        line[1:]
        for line in (ROOT / ".dockerignore").read_text().splitlines()
        if line.startswith("!")
    ]
    assert sorted(COPIED) == sorted(allowed)
    assert all((ROOT / source).exists() for source in COPIED)


@pytest.mark.slow
def test_the_package_builds_from_what_is_copied(tmp_path: Path) -> None:
    source = tmp_path / "source"
    for name in COPIED:
        target = source / name
        target.parent.mkdir(parents=True, exist_ok=True)
        copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy
        copy(ROOT / name, target)
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)]
    subprocess.run(command, cwd=source, check=True, capture_output=True)
    assert list(tmp_path.glob("deniable-*.whl"))


def test_it_installs_extras_that_exist_and_can_open_both_stores() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = only(BUILD, "ARG").removeprefix("EXTRAS=").split(",")
    assert set(extras) <= project["optional-dependencies"].keys()
    assert {"collector", "postgres"} <= set(extras)


def test_it_runs_without_rights_and_without_a_home() -> None:
    user, group = only(FINAL, "USER").split(":")
    assert int(user) > 0 and int(group) > 0
    assert f"--owner={user} --group={group}" in only(FINAL, "RUN")
    assert not Path(image_variables()["HOME"]).exists()
    assert only(FINAL, "VOLUME") in only(FINAL, "RUN")


def test_variables_are_settings_and_ports_agree() -> None:
    settings = settings_of(image_variables())
    assert settings.host == "0.0.0.0"
    assert int(only(FINAL, "EXPOSE")) == settings.port
    assert Path(settings.store.removeprefix("sqlite:///")).parent == Path(only(FINAL, "VOLUME"))
    (path,) = re.findall(r"'(/\w+)'", check_command()[-1])
    assert has_route(path)


@pytest.fixture
def served(tmp_path: Path) -> Iterator[tuple[dict[str, str], subprocess.Popen[bytes]]]:
    """The image's command with its variables; only folders and the port are of this test."""
    survey = make_survey("[questions.dark]\nkind = 'boolean'\nepsilon = 1")
    (tmp_path / "survey.json").write_bytes(survey.canonical)
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = str(probe.getsockname()[1])
    folders = {"/etc/deniable": str(tmp_path), "/var/lib/deniable": str(tmp_path)}
    variables = {}
    for name, text in image_variables().items():
        for inside, here in folders.items():
            text = text.replace(inside, here)
        variables[name] = text
    variables |= {"DENIABLE_PORT": port, "DENIABLE_HOST": "127.0.0.1", "PATH": os.environ["PATH"]}
    variables |= {"PYTHONPATH": str(ROOT / "src"), "TMPDIR": str(tmp_path)}
    entry, command = (json.loads(only(FINAL, name)) for name in ("ENTRYPOINT", "CMD"))
    assert entry == ["deniable"]
    arguments = [sys.executable, "-m", *entry, *command]
    with subprocess.Popen(arguments, env=variables, cwd="/", stderr=subprocess.DEVNULL) as process:
        try:
            yield variables, process
        finally:
            process.kill()


@pytest.mark.slow
def test_its_command_serves_and_its_check_sees_it(
    served: tuple[dict[str, str], subprocess.Popen[bytes]],
) -> None:
    """Also on another port than that of the image."""
    variables, process = served
    interpreter, *arguments = check_command()
    assert interpreter == "python"

    def healthy() -> bool:
        command = [sys.executable, *arguments]
        return subprocess.run(command, env=variables, stderr=subprocess.DEVNULL).returncode == 0

    for _ in range(60):
        assert process.poll() is None
        if healthy():
            break
        time.sleep(0.2)
    else:
        pytest.fail("the check never succeeds")
    address = f"http://127.0.0.1:{variables['DENIABLE_PORT']}/readyz"
    with urllib.request.urlopen(address) as response:
        assert response.status == 200
    process.terminate()
    assert process.wait(20) == 0
    assert not healthy()
