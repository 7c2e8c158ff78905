"""Print one table of the most important figures: python -m benchmarks

Each row has the work, its time by the clock and its processor time, the target, a peer where there
is one, and the limit that the machine sets. Targets are for two quiet cores. To add rows, write a
function that returns or yields `Row`s, and add it to `ROWS`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from benchmarks import bits, collector, discover, hashing, joint, start
from benchmarks.table import Row, show

ROWS: tuple[Callable[[], Iterable[Row]], ...] = (
    start.rows,
    bits.rows,
    hashing.rows,
    joint.rows,
    discover.rows,
    collector.rows,
)


if __name__ == "__main__":
    show([row for rows in ROWS for row in rows()])
