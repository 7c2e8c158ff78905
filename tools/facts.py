"""Rewrite the generated parts of the documentation from data files and from the code.

    python -m tools.facts            rewrite every page
    python -m tools.facts --check    exit with status 1 and name the stale pages

A page marks a generated part with two comments:

    <!-- generated: NAME -->…<!-- end -->

On lines of their own the comments enclose a table, within a line a single figure. NAME is one of

| NAME | what is inserted |
| --- | --- |
| `FILE::TABLE` | a table of docs/results/data/FILE.json, with command, conditions and notes |
| `FILE::TABLE::ROW::COLUMN` | one figure of that table |
| `paper::EXPERIMENT` | the comparison with the paper, from docs/results/paper/EXPERIMENT.json |
| `paper::EXPERIMENT::QUANTITY` | our mean; with `::summary` also minimum and |
| | maximum; with `::share` in three decimals; with `::printed` the paper's number |
| `paper::EXPERIMENT::PART::CASE::found` | strings found; with `::false` runs with a false one |
| `paper::minutes` | how long all experiments took together |
| `code::FACT` | a constant or a table computed by `tools/code_facts.py` |

A cell of a data file may itself contain `{NAME}`. `tests/test_facts.py` fails when a page is stale.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterable, Sequence
from decimal import ROUND_HALF_UP, Decimal
from functools import cache
from pathlib import Path
from typing import Any

from deniable.errors import InputError
from tools.code_facts import CODE_FACTS

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "docs" / "results"
MARK = re.compile(r"(<!-- generated: (.+?) -->)(.*?)(<!-- end -->)", re.DOTALL)
NESTED = re.compile(r"\{([^{}]+)\}")
PAPER_HEADINGS = ("Quantity", "Paper", "Ours (mean)", "Minimum to maximum", "Agrees")


def pages() -> list[Path]:
    """Return every page that may have generated parts."""
    return [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


def stale_pages() -> list[Path]:
    """Return the pages whose generated parts differ from the data or the code."""
    return [page for page in pages() if filled(page.read_text()) != page.read_text()]


def filled(text: str) -> str:
    """Return the page with every generated part made anew."""
    for mark in MARK.finditer(text):
        line = text[text.rfind("\n", 0, mark.start()) + 1 : mark.start()]
        if "\n" not in mark[3] and not line.strip():
            raise InputError(f"{mark[2]}: a figure at the start of a line is not shown as text")
    return MARK.sub(_replaced, text)


def _replaced(mark: re.Match[str]) -> str:
    inserted = fact(mark[2])
    if "\n" in mark[3]:
        inserted = f"\n\n{inserted}\n\n"
    elif "\n" in inserted:
        raise InputError(f"{mark[2]} is a table: put its comments on lines of their own")
    return mark[1] + inserted + mark[4]


@cache
def fact(name: str) -> str:
    """Return the table or the figure of this name as Markdown."""
    source, *path = name.split("::")
    try:
        if source == "code":
            return CODE_FACTS[path[0]]()
        if source == "paper":
            return _paper(*path)
        return _data_file(source, *path)
    except (KeyError, StopIteration, OSError, TypeError) as error:
        raise InputError(f"no fact is called {name!r} ({error!r})") from error


def _data_file(file: str, table: str, row: str = "", column: str = "") -> str:
    """Return a table of a data file, or one cell of it."""
    data = _load(RESULTS / "data" / f"{file}.json")
    chosen = data["tables"][table]
    if row:
        return _cell(chosen["rows"][row][list(chosen["columns"]).index(column)])
    lines = markdown_table(chosen["columns"].values(), chosen["rows"].values())
    if "command" in chosen["columns"]:
        return lines
    conditions = [chosen["conditions"]]
    if "machine" in chosen:
        conditions.insert(0, data["machines"][chosen["machine"]])
    source = f"Command: `{chosen['command']}`. Conditions: {'; '.join(conditions)}."
    return "\n\n".join([lines, source, *chosen.get("notes", [])])


def _paper(experiment: str, first: str = "", second: str = "", kind: str = "") -> str:
    """Return an experiment's comparison with the paper, or one figure of the experiment."""
    if experiment == "minutes":
        seconds = sum(_load(path)["seconds"] for path in (RESULTS / "paper").glob("*.json"))
        return f"{seconds / 60:.0f}"
    data = _load(RESULTS / "paper" / f"{experiment}.json")
    if not first:
        rows = [_comparison(row) for row in data["comparisons"]]
        made = f"Command: `deniable reproduce {experiment}`, seed {data['seed']}"
        return f"{markdown_table(PAPER_HEADINGS, rows)}\n\n{made}, {data['seconds']:.0f} s."
    if kind:
        case = next(row for row in data[first] if row["case"] == second)
        if kind == "false":
            return f"{case['runs with a false string']} of {case['runs']}"
        spread = f"{case['least']} to {case['most']}; {case['runs']} crowds"
        return f"{one_decimal(case[kind])} ({spread})"
    row = next(row for row in data["comparisons"] if row["quantity"] == first)
    if second == "printed":
        return str(row["paper"])
    if second == "share":
        return f"{row['ours']:.3f}"
    mean = one_decimal(row["ours"])
    return mean if not second else f"{mean} ({row['low']:g} to {row['high']:g})"


def _comparison(row: dict[str, Any]) -> list[str]:
    spread = "" if row["low"] is None else f"{row['low']:.4g} to {row['high']:.4g}"
    agrees = {True: "yes", False: "no", None: ""}[row["agrees"]]
    return [row["quantity"], row["paper"], f"{row['ours']:.4g}", spread, agrees]


def markdown_table(headings: Iterable[str], rows: Iterable[Sequence[object]]) -> str:
    """Return rows as a Markdown table.

    >>> print(markdown_table(["f", "N"], [["½", 1000]]))
    | f | N |
    | --- | --- |
    | ½ | 1,000 |
    """
    headings = list(headings)
    lines = [headings, ["---"] * len(headings), *([_cell(v) for v in row] for row in rows)]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def _cell(value: object) -> str:
    if isinstance(value, int):
        return f"{value:,}"
    return NESTED.sub(lambda nested: fact(nested[1]), str(value))


def one_decimal(value: float) -> str:
    """Return a mean with one decimal, halves rounded up.

    >>> one_decimal(75.55), one_decimal(7.0)
    ('75.6', '7.0')
    """
    return str(Decimal(repr(value)).quantize(Decimal("0.1"), ROUND_HALF_UP))


@cache
def _load(path: Path) -> Any:
    return json.loads(path.read_text())


def main(arguments: Sequence[str]) -> int:
    """Rewrite the pages, or name the stale ones, and return the exit status."""
    stale = stale_pages()
    for page in stale:
        if "--check" in arguments:
            print(f"{page.relative_to(ROOT)} is stale: run make facts")
        else:
            page.write_text(filled(page.read_text()))
            print(f"rewrote {page.relative_to(ROOT)}")
    return int(bool(stale) and "--check" in arguments)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
