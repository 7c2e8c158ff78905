"""Put the work of other programs beside ours: python -m benchmarks.peers [--rappor DIR]

Rows of pure-ldp need its package. --rappor adds rows of google/rappor, whose checkout is DIR; they
need Rscript, some R packages and g++. What is missing is named below the table.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from benchmarks.peers import pure_ldp, rappor
from benchmarks.peers.comparison import Comparison, show


def main() -> None:
    """Print one table, then what is left out and why."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--rappor", type=Path, metavar="DIR", help="checkout of google/rappor")
    options = parser.parse_args()
    rows: list[Comparison] = []
    left_out: list[str] = []
    try:
        rows += pure_ldp.rows()
    except (ModuleNotFoundError, TypeError) as error:  # TypeError: numpy or xxhash is too new
        left_out.append(pure_ldp.NEEDED.format(error))
    if options.rappor is None:
        left_out.append(rappor.NEEDED.format("there is no --rappor DIR"))
    else:
        try:
            rows += rappor.rows(options.rappor)
        except rappor.MissingError as error:
            left_out.append(rappor.NEEDED.format(error))
    show(rows)
    for sentence in left_out:
        print(sentence)


if __name__ == "__main__":
    main()
