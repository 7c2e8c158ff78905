"""CSV files of ours: safe to open in a spreadsheet, and read back unchanged."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deniable.columns.spreadsheet import escape, read_rows, unescape, write_rows
from deniable.errors import InputError


@given(st.text(st.characters(codec="utf-8"), max_size=12))
def test_no_cell_is_a_formula_and_all_come_back(text: str) -> None:
    cell = escape(text)
    assert unescape(cell) == text
    assert not cell.startswith(("=", "+", "-", "@", "\t", "\r"))


def test_csv_files_of_ours(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    rows: list[list[str | float]] = [
        ["value", "n"],
        ["=cmd|' /C calc'!A0", -1.5],
        ["'@x", 2],
        ["it's", 3],
    ]
    write_rows(path, rows)
    text = path.read_text()
    assert "'=cmd" in text
    assert ",-1.5" in text, "a number of ours is not text"
    got = [row for _, row in read_rows(path)]
    assert got == [[c if isinstance(c, str) else str(c) for c in row] for row in rows]
    path.write_bytes(b"a,\xff\n")
    with pytest.raises(InputError, match="not UTF-8 text"):
        list(read_rows(path))
