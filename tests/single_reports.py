"""Columns as single reports and back, one at a time: an independent route for small numbers."""

from __future__ import annotations

from collections.abc import Sequence

from deniable.columns import ReportBatch, from_wire
from deniable.survey import Answer, Report, to_batch


def single_reports(batch: ReportBatch) -> list[Report]:
    """Each report by itself."""
    reports = []
    for i in range(len(batch)):
        answers = tuple(
            Answer(tuple(clear[i].tolist()), tuple(b[i].tobytes() for b in bits))
            for clear, bits in zip(batch.clear, batch.bits, strict=True)
        )
        reports.append(Report(batch.survey, int(batch.cohort[i]), answers))
    return reports


def batch_of(reports: Sequence[Report]) -> ReportBatch:
    """The same reports as columns."""
    return from_wire(to_batch(reports), reports[0].survey)
