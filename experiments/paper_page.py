"""Fill the documentation's page about the paper with the rows of a run.

    python -m experiments.paper_page docs/results/paper docs/results/paper.md

The page is text written by hand; between `<!-- rows NAME -->` and `<!-- end -->` stand the rows of
FOLDER/NAME.json, and this puts them there.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

from deniable.errors import InputError
from deniable.reproduction.records import Comparison

BETWEEN = re.compile(r"(<!-- rows (\w+) -->\n).*?(<!-- end -->)", re.DOTALL)


def filled(page: str, folder: Path) -> str:
    """The page with every table made from its data."""

    def table(found: re.Match[str]) -> str:
        path = folder / f"{found[2]}.json"
        if not path.exists():
            raise InputError(f"the page shows {found[2]}, but there is no {path}")
        return f"{found[1]}{rows_of(json.loads(path.read_text()))}{found[3]}"

    return BETWEEN.sub(table, page)


def rows_of(data: dict[str, Any]) -> str:
    """A run's rows as a table, and how it was made."""
    rows = [Comparison(**c).row() for c in data["comparisons"]]
    lines = [
        "| quantity | paper | ours | least to most | agrees |",
        "| --- | --- | --- | --- | --- |",
        *("| " + " | ".join(str(v) for v in row.values()) + " |" for row in rows),
    ]
    made = (
        f"`deniable reproduce {data['experiment']}`, seed {data['seed']}, {data['seconds']:.0f} s"
    )
    return "\n".join(lines) + f"\n\n{made}\n"


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    target = Path(sys.argv[2])
    target.write_text(filled(target.read_text(), Path(sys.argv[1])))
