"""What the verbs compute from stored reports is what it was when the golden files were recorded."""

from __future__ import annotations

import json

import pytest

from tests.golden import association_cases, discovery_cases, marginal_cases  # noqa: F401
from tests.golden.compare import differences
from tests.golden.freezing import as_json
from tests.golden.registry import CASES, DATA

MOST_SHOWN = 20


@pytest.mark.parametrize("name", CASES)
def test_golden(name: str) -> None:
    case = CASES[name]
    expected = json.loads(case.path.read_text(encoding="utf-8"))
    wrong = list(differences(expected, as_json(case.make()), case.tolerance))
    assert not wrong, "\n".join([f"{len(wrong)} differences", *wrong[:MOST_SHOWN]])


def test_every_golden_file_has_a_case() -> None:
    assert {path.stem for path in DATA.glob("*.json")} == CASES.keys()
