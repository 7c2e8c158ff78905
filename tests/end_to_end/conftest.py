"""The wheel that tests of installed environments share."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.end_to_end.wheel import build_wheel


@pytest.fixture(scope="session")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel of this checkout."""
    return build_wheel(tmp_path_factory.mktemp("wheel"))
