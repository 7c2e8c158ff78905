"""Reports from wherever they are, as a stream of batches that can be read again."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from deniable.columns import ReportBatch, scan
from deniable.errors import InputError
from deniable.survey import Survey

ROWS = 1 << 16
"""Rows worked on together: a batch is cut into pieces of this many, so that threads share them."""

Reports = ReportBatch | str | Path | Iterable[ReportBatch | str | Path]


class Source:
    """A survey's reports: a batch, a file, an Arrow table, or any number of these."""

    def __init__(self, reports: Reports | Any, survey: Survey) -> None:
        self.survey = survey
        one = isinstance(reports, ReportBatch | str | Path) or hasattr(reports, "schema")
        given: Any = reports
        self._parts: list[Any] = [given] if one else list(given)
        if not self._parts:
            raise InputError("expected reports, got none")
        self.origin = ""

    def batches(self) -> Iterator[ReportBatch]:
        """Every report, some at a time."""
        origins: dict[str, None] = {}
        for part in self._parts:
            for batch in self._read(part):
                if batch.survey != self.survey:
                    raise InputError(
                        f"expected reports of {self.survey!r}, got some of {batch.survey!r}"
                    )
                origins[batch.origin] = None
                for start in range(0, len(batch), ROWS):
                    yield batch.select(slice(start, start + ROWS))
        self.origin = "; ".join(o for o in origins if o)

    def _read(self, part: Any) -> Iterator[ReportBatch]:
        if isinstance(part, ReportBatch):
            yield part
        elif isinstance(part, str | Path):
            yield from scan(part, survey=self.survey)
        elif hasattr(part, "schema"):
            from deniable.columns.arrow import from_arrow

            yield from_arrow(part)
        else:
            raise InputError(
                f"expected a ReportBatch, a file or an Arrow table, got {type(part).__name__}"
            )
