"""Numbers and tables as people read them."""

from __future__ import annotations

import math

from deniable.formatting import (
    TextTable,
    cell,
    epsilon_text,
    odds_factor,
    sortable_table,
    text_table,
)

COLUMNS = {"value": ["<b>", " x"], "estimate": [0.25, math.nan], "low": [0.2, 0.0],
           "high": [0.3, 1.0], "p_value": [0.0, 0.5], "detected": [True, False]}  # fmt: skip


def test_cells_hide_nothing() -> None:
    assert [cell(v) for v in (True, False, 3, math.inf, "a\x1b", "a ")] == [
        *("yes", "", "3", "∞", "a\N{REPLACEMENT CHARACTER}", "'a '")
    ]


def test_a_readable_table_has_shares_and_one_interval() -> None:
    table = TextTable.readable(COLUMNS)
    assert table.names == ["value", "estimate", "p-value", "detected", "95% interval"]
    assert table.rows[0] == ["<b>", "25.0%", "< 1e-300", "yes", "20.0% … 30.0%"]
    assert table.right == [False, True, True, True, True]


def test_long_tables_are_cut_and_say_so() -> None:
    long = {"value": [str(i) for i in range(1234)]}
    assert text_table("h", long).endswith("… and 1,194 more rows; to_arrow() returns all of them")
    assert sortable_table(long, 40).endswith("<p>1,194 more rows are not shown.</p>")
    assert TextTable.of(long).html().endswith("<p>1,194 more rows are not shown.</p>")


def test_html_is_escaped_and_sorts_by_number() -> None:
    page = sortable_table(COLUMNS, 40)
    assert "<b>" not in page and "&lt;b&gt;" in page
    assert 'data-key="0.25"' in page and page.count("<button") == len(COLUMNS)
    assert "<button" not in TextTable.readable(COLUMNS).html()


def test_what_is_promised_is_rounded_up() -> None:
    """The factor after "at most", and ε, are never below the truth, and close to it."""
    for step in range(1, 2000):
        epsilon = step * math.pi / 320
        assert epsilon * (1 - 1e-9) <= float(epsilon_text(epsilon)) <= epsilon * 1.001
        if epsilon < 20:
            shown = float(odds_factor(epsilon).replace(",", ""))
            factor = math.exp(epsilon)
            assert factor * (1 - 1e-8) <= shown <= factor * 1.1
    assert odds_factor(math.log(3)) == "3.00" and odds_factor(22.2) == "10^10"
