"""The container image, built and run: `make test-deploy` calls this where docker or podman runs.

The name keeps it out of `make test`, which must not need a container engine.
"""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import time
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.deploy.files import ROOT, SLOWEST_STOP_SECONDS, only, stages
from tests.surveys import make_survey

HOW_TO_GET_ONE = (
    "no container engine runs here, so the image was not built: install podman (on Debian and "
    "Ubuntu: apt-get install podman), or install docker and start its service"
)
IMAGE = "deniable-test"


@pytest.fixture(scope="module")
def engine() -> str:
    """The name of a container engine that works; in CI there must be one."""
    for name in ("podman", "docker"):
        if (
            shutil.which(name)
            and not subprocess.run([name, "info"], capture_output=True).returncode
        ):
            return name
    (pytest.fail if os.environ.get("CI") else pytest.skip)(HOW_TO_GET_ONE)


@pytest.fixture(scope="module")
def image(engine: str) -> str:
    """The image, built from this checkout.

    BUILD_FLAGS adds options, where packages come from a mirror of one's own.
    """
    flags = shlex.split(os.environ.get("BUILD_FLAGS", ""))
    if engine == "podman":
        flags += ["--format", "docker"]  # the other form has no checks
    command = [engine, "build", *flags, "--file", "deploy/Containerfile", "--tag", IMAGE, "."]
    subprocess.run(command, cwd=ROOT, check=True)
    return IMAGE


@pytest.fixture
def container(engine: str, image: str, tmp_path: Path) -> Iterator[str]:
    """A running collector without rights, on a read-only file system, with a volume of its own."""
    tmp_path.chmod(0o755)
    survey = tmp_path / "survey.json"
    survey.write_bytes(make_survey("[questions.dark]\nkind = 'boolean'\nepsilon = 1").canonical)
    survey.chmod(0o644)
    name = f"deniable-{uuid.uuid4().hex}"
    command = [
        engine, "run", "--detach", "--name", name, "--read-only", "--cap-drop=ALL",
        "--network=none", "--security-opt=no-new-privileges", "--volume",
        f"{survey}:/etc/deniable/survey.json:ro", "--env", "DENIABLE_RESERVE=0", image,
    ]  # fmt: skip
    subprocess.run(command, check=True, capture_output=True)
    yield name
    subprocess.run([engine, "rm", "--force", "--volumes", name], capture_output=True)


def test_the_image_serves_passes_its_check_and_stops(engine: str, container: str) -> None:
    check = json.loads(only(stages()[-1], "HEALTHCHECK").partition("CMD ")[2])
    for path in ("/healthz", "/readyz"):
        ask = [engine, "exec", container, *(text.replace("/healthz", path) for text in check)]
        for _ in range(60):
            if subprocess.run(ask, capture_output=True).returncode == 0:
                break
            time.sleep(0.5)
        else:
            logs = subprocess.run([engine, "logs", container], capture_output=True, text=True)
            pytest.fail(f"{path} never answers: {logs.stdout}{logs.stderr}")
    seconds = str(round(SLOWEST_STOP_SECONDS + 5))
    subprocess.run([engine, "stop", "--time", seconds, container], check=True, capture_output=True)
    form = "{{.State.ExitCode}} {{.Config.User}}"
    command = [engine, "inspect", "--format", form, container]
    state = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()
    assert state == ["0", only(stages()[-1], "USER")]
