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
| `paper::EXPERIMENT::QUANTITY` | our mean; with `::printed` the paper's number |
| `paper::EXPERIMENT::PART::CASE::found` | strings found |
| `paper::EXPERIMENT::overview::PART` | a part of the data as a compact table |
| `paper::minutes` | how long all experiments took together |
| `paper::verdicts` | how many numbers of each experiment agree |
| `promises` | every promise, its target, what was measured, and the verdict |
| `code::FACT` | a constant or a table computed by `tools/code_facts.py` |

A cell of a data file may itself contain `{NAME}`. `tests/test_facts.py` fails when a page is stale.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from experiments.calibrate import FOLDER, kept
from experiments.promises import MARK as PROMISE
from experiments.promises import Promise

from deniable.errors import InputError
from tools.code_facts import CODE_FACTS
from tools.markdown import cell_text, markdown_table
from tools.paper_facts import RESULTS, ROOT, load, paper_fact

MARK = re.compile(r"(<!-- generated: (.+?) -->)(.*?)(<!-- end -->)", re.DOTALL)
PROMISE_HEADINGS = ("Promise", "Target", "Measured", "Verdict", "Output")
NESTED = re.compile(r"\{([^{}]+)\}")


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
        if source == "promises":
            return promises()
        if source == "paper":
            return paper_fact(*path)
        return _data_file(source, *path)
    except (KeyError, StopIteration, OSError, TypeError) as error:
        raise InputError(f"no fact is called {name!r} ({error!r})") from error


def promises() -> str:
    """Return the promises of all experiments, each with a link to what the experiment printed."""
    rows = []
    for name in kept():
        for line in (FOLDER / f"{name}.txt").read_text(encoding="utf-8").splitlines():
            if line.startswith(PROMISE):
                p = Promise.read(line)
                link = f"[{name}](calibration/{name}.txt)"
                rows.append([p.sentence, p.target, p.measured, p.verdict, link])
    return markdown_table(PROMISE_HEADINGS, rows)


def _data_file(file: str, table: str, row: str = "", column: str = "") -> str:
    """Return a table of a data file, or one cell of it."""
    data = load(RESULTS / "data" / f"{file}.json")
    chosen = data["tables"][table]
    if row:
        return _expanded(chosen["rows"][row][list(chosen["columns"]).index(column)])
    rows = [[_expanded(cell) for cell in row] for row in chosen["rows"].values()]
    lines = markdown_table(chosen["columns"].values(), rows)
    if "command" in chosen["columns"]:
        return lines
    conditions = [chosen["conditions"]]
    if "machine" in chosen:
        conditions.insert(0, data["machines"][chosen["machine"]])
    if "no_command" in chosen:
        source = f"No command in the repository prints these figures: {chosen['no_command']}."
    else:
        source = f"Command: `{chosen['command']}`."
    source += f" Conditions: {'; '.join(conditions)}."
    return "\n\n".join([lines, source, *chosen.get("notes", [])])


def _expanded(value: object) -> str:
    """Return a cell as text, with the facts that it names in braces."""
    return NESTED.sub(lambda nested: fact(nested[1]), cell_text(value))


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
