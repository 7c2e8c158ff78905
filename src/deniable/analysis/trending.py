"""trend: how common each value of one question was, day by day or week by week."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from datetime import date, timedelta
from pathlib import Path
from typing import Literal

import numpy as np

from deniable.analysis.decoding import decode
from deniable.analysis.source import Stored
from deniable.compute.backend import Executor
from deniable.compute.progress import Progress, reports_progress
from deniable.errors import InputError
from deniable.inference.marginal.multiplicity import Correction
from deniable.results import Trend
from deniable.store import Store
from deniable.survey import Survey

By = Literal["day", "week"]


@reports_progress
def trend(
    survey: Survey,
    store: Store | str | Path,
    question: str,
    candidates: Iterable[str] | None = None,
    *,
    by: By = "day",
    since: date | None = None,
    until: date | None = None,
    alpha: float = 0.05,
    correction: Correction = "holm",
    reports_per_client: float = 1.0,
    executor: Executor | None = None,
    progress: Progress | None = None,
) -> Trend:
    """Decode every day or week (from Monday) of a store that has reports, each by itself.

    The other arguments are those of `decode`; `reports_per_client` is within one period. Clients
    that report in several periods share their permanent noise between them: each interval is
    right by itself, but neighbouring errors may go together.
    """
    if by not in ("day", "week"):
        raise InputError(f"expected by day or week, got {by!r}")
    names = None if candidates is None else list(candidates)
    with Stored(store, since, until).opened() as opened:
        first, last = since or date.min, until or date.max
        days = [day for day in opened.days(survey) if first <= day <= last]
        if not days:
            raise InputError(f"{opened.url} has no reports of {survey!r} in these days")
        periods = sorted({_start(day, by) for day in days})
        found = [
            decode(
                survey, Stored(opened, max(first, start), min(last, _end(start, by))), question,
                names, alpha=alpha, correction=correction, reports_per_client=reports_per_client,
                executor=executor,
            )
            for start in periods
        ]  # fmt: skip
    reports = [marginal.reports for marginal in found]
    provenance = found[0].provenance
    assert provenance is not None
    origin = f"{opened.url}, {days[0]} to {days[-1]}, by {by}"
    return Trend(
        question=question,
        by=by,
        periods=tuple(map(str, periods)),
        labels=found[0].labels or (),
        estimate=np.stack([marginal.estimate for marginal in found]),
        standard_error=np.stack([marginal.standard_error for marginal in found]),
        low=np.stack([marginal.low for marginal in found]),
        high=np.stack([marginal.high for marginal in found]),
        detected=np.stack([marginal.detected for marginal in found]),
        reports=np.array(reports, np.int64),
        alpha=alpha,
        correction=correction,
        provenance=replace(provenance, reports=sum(reports), origin=origin),
    )


def _start(day: date, by: By) -> date:
    return day - timedelta(days=day.weekday()) if by == "week" else day


def _end(start: date, by: By) -> date:
    return start + timedelta(days=6) if by == "week" else start
