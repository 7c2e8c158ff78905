"""One row of the table: the same work by this package and by another program."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from benchmarks.table import seconds
from deniable.formatting import aligned

Quantity = Literal[
    "time per report",
    "time to decode",
    "time to fit",
    "summed error",
    "summed error without Other",
    "set bits sent as 0",
    "strings found",
    "false strings",
    "nats below maximum, at most",
]
WITH_RATIO = ("time", "summed error")
"""How the names of quantities begin of which the ratio is meaningful."""


@dataclass(frozen=True)
class Comparison:
    """One figure of both programs. Times are processor time in seconds; errors are of shares."""

    work: str
    quantity: Quantity
    ours: float
    theirs: float

    @property
    def ratio(self) -> str:
        """Theirs divided by ours, for times and errors: above 1, ours is faster or better."""
        return f"{self.theirs / self.ours:.3g}" if self.quantity.startswith(WITH_RATIO) else ""

    def texts(self) -> tuple[str, ...]:
        """Return the cells of the row."""
        as_text = seconds if self.quantity.startswith("time") else "{:.3g}".format
        return self.work, self.quantity, as_text(self.ours), as_text(self.theirs), self.ratio


def show(rows: Sequence[Comparison]) -> None:
    """Print the table."""
    names = ("work (peer)", "quantity", "deniable", "peer", "peer / deniable")
    print(f"load average {os.getloadavg()[0]:.1f} on {os.cpu_count()} processors, processor time")
    lines = aligned([names, *(row.texts() for row in rows)], [False, False, True, True, True])
    print("\n".join(lines), flush=True)
