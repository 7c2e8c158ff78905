"""What the package computes, writes and accepts is what it was when the golden files were made."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.golden.cases import CASES, golden_path
from tests.golden.compare import differences
from tests.golden.freezing import as_json

MOST_SHOWN = 20
# Some crowds give answers that are cut or not options, on purpose.
pytestmark = pytest.mark.filterwarnings("ignore::deniable.errors.LossyAnswerWarning")


@pytest.mark.parametrize("name", CASES)
def test_golden(name: str, tmp_path: Path) -> None:
    expected = json.loads(golden_path(name).read_text(encoding="utf-8"))
    found = as_json(CASES[name].make(tmp_path))
    wrong = list(differences(expected, found, CASES[name].tolerance))
    assert not wrong, "\n".join([f"{len(wrong)} differences", *wrong[:MOST_SHOWN]])


def test_every_golden_file_has_a_case() -> None:
    assert {path.stem for path in golden_path("x").parent.glob("*.json")} == CASES.keys()
