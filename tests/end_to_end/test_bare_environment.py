"""The wheel, installed where nothing else is, passes tests/bare."""

from __future__ import annotations

import os
import subprocess
import sys
import venv
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_the_wheel_alone_in_an_empty_environment(tmp_path: Path) -> None:
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)]
    subprocess.run(build, cwd=ROOT, check=True, capture_output=True)
    (wheel,) = tmp_path.glob("deniable-*.whl")
    venv.create(tmp_path / "env", with_pip=False)
    python = tmp_path / "env" / ("Scripts" if os.name == "nt" else "bin") / "python"
    libraries = next((tmp_path / "env").glob("**/site-packages"))
    # A wheel of pure Python is installed by unpacking it; pip itself would be something installed.
    subprocess.run([sys.executable, "-m", "zipfile", "-e", str(wheel), str(libraries)], check=True)
    # The pages serve the one browser client.
    packed = libraries / "deniable" / "render" / "html" / "static" / "deniable.js"
    assert packed.read_bytes() == (ROOT / "clients" / "js" / "deniable.js").read_bytes()
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "COV"))}
    run = [str(python), "-W", "error", str(ROOT / "tests" / "bare" / "test_bare.py")]
    done = subprocess.run(run, cwd=tmp_path, capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr
    assert "Ran 6 tests" in done.stderr
