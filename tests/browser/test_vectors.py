"""The browser client writes the same vectors as every other client, in node and in Chromium."""

from __future__ import annotations

import json
from typing import Any

from tests.vectors import make


def vectors() -> dict[str, Any]:
    return {
        name.removesuffix(".json"): json.loads((make.HERE / name).read_text())
        for name in make.FILES
    }


def test_every_vector_bit_for_bit(run: Any) -> None:
    rows = vectors()
    found = run("vectors.js", rows)
    assert found["wrong"] == []
    assert found["replayed"] == {name: len(rows[name]) for name in rows}
