"""The browser client writes the same vectors as every other client, in node and in Chromium."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from deniable.conformance import cases, replay
from tests.browser import tools


def test_every_vector_bit_for_bit(run: Any) -> None:
    assert run("vectors.js", [asdict(case) for case in cases()]) == []


def test_the_example_program_conforms() -> None:
    program = [tools.node(), str(tools.ROOT / "examples" / "conformance" / "node_client.mjs")]
    found = list(replay(program, cases(), timeout=60))
    assert len(found) == len(cases())
    assert [f for f in found if f.verdict != "passed"] == []
