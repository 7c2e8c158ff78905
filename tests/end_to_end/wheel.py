"""The built wheel, and fresh environments that it is installed in."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import venv
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FOREIGN = ("PYTHON", "COV", "DENIABLE_", "NUMBA_", "XDG_", "MPL", "VIRTUAL_ENV")
"""Variables of this process that a user of the wheel would not have."""


def build_wheel(folder: Path) -> Path:
    """Build the wheel of this checkout in a folder and return its path."""
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    (wheel,) = folder.glob("deniable-*.whl")
    return wheel


@dataclass(frozen=True)
class Environment:
    """A virtual environment of its own; `variables` are those that its programs see."""

    folder: Path
    variables: dict[str, str]

    @property
    def programs(self) -> Path:
        """The folder of the commands."""
        return self.folder / ("Scripts" if os.name == "nt" else "bin")

    @property
    def packages(self) -> Path:
        """The folder of the installed packages."""
        return next(self.folder.glob("**/site-packages"))

    def run(
        self, command: list[str], cwd: Path, *, stdin: str = "", rc: int = 0
    ) -> subprocess.CompletedProcess[str]:
        """Run a program of the environment and check its exit code."""
        done = subprocess.run(
            [str(self.programs / command[0]), *command[1:]],
            cwd=cwd,
            env=self.variables,
            input=stdin,
            capture_output=True,
            text=True,
        )
        assert done.returncode == rc, f"{command}: {done.returncode}\n{done.stdout}\n{done.stderr}"
        return done


def install(wheel: Path, folder: Path, extras: str = "") -> Environment:
    """Install the wheel with these extras ("cli,collector") in an environment, new if need be.

    Its programs have no writable home directory, like those of a service account. Without an index
    of packages the test is skipped; in CI it fails.
    """
    if not folder.exists():
        venv.create(folder, with_pip=False)
    name = f"{wheel}[{extras}]" if extras else str(wheel)
    environment = Environment(folder, variables(folder))
    python = str(environment.programs / "python")
    if shutil.which("uv"):
        command = ["uv", "pip", "install", "--quiet", "--python", python, name]
    else:
        quiet = ["--quiet", "--no-compile", "--disable-pip-version-check"]
        command = [sys.executable, "-m", "pip", "--python", python, "install", *quiet, name]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        (pytest.fail if os.environ.get("CI") else pytest.skip)(f"cannot install: {done.stderr}")
    return environment


def variables(folder: Path) -> dict[str, str]:
    """Return the environment variables of a user who has this environment and no home."""
    kept = {name: text for name, text in os.environ.items() if not name.startswith(FOREIGN)}
    no_home = folder / "pyvenv.cfg" / "home"  # below a file: not even root can create it
    path = f"{folder / 'bin'}{os.pathsep}{os.environ['PATH']}"
    return kept | {"HOME": str(no_home), "PATH": path, "NO_COLOR": "1", "COLUMNS": "100"}
