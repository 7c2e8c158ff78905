"""Outside programs that these tests need: node, Chromium and the TypeScript compiler.

Without one, its tests skip and say how to get it; with CI=true a missing one is a failure.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "clients" / "js"
MODULE = PACKAGE / "deniable.js"


def program(name: str, found: str | None) -> str:
    """The path of a program, or a skip."""
    if found is None or not Path(found).exists():
        missing = f"{name} is missing: bash .ci/setup installs it"
        if os.environ.get("CI") == "true":
            pytest.fail(missing)
        pytest.skip(missing)
    return found


def node() -> str:
    return program("node", shutil.which("node"))


def chromium() -> str:
    return program("chromium", shutil.which("chromium"))


def compiler() -> str:
    return program("tsc", str(PACKAGE / "node_modules" / ".bin" / "tsc"))
