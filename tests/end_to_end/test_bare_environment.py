"""The wheel, installed where nothing else is, passes tests/bare."""

from __future__ import annotations

from pathlib import Path

from tests.end_to_end.wheel import ROOT, install


def test_the_wheel_alone_in_an_empty_environment(wheel: Path, tmp_path: Path) -> None:
    environment = install(wheel, tmp_path / "env")
    # The pages serve the one browser client.
    packed = environment.packages / "deniable" / "render" / "html" / "static" / "deniable.js"
    assert packed.read_bytes() == (ROOT / "clients" / "js" / "deniable.js").read_bytes()
    tests = str(ROOT / "tests" / "bare" / "test_bare.py")
    done = environment.run(["python", "-W", "error", tests], tmp_path)
    assert "Ran 6 tests" in done.stderr
