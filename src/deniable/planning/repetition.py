"""What a larger loss per report buys in repeated collection: accuracy of one day and of many.

The reports of a client share its permanent noise. With n reports of each, a share has the variance
V∞ + (V₁ − V∞)/n per client, where V₁ is that of one report and V∞ that of the permanent noise. The
loss in total fixes V∞; the loss per report fixes V₁.
"""

from __future__ import annotations

import math
from contextlib import suppress
from dataclasses import dataclass

from deniable.errors import InputError
from deniable.mechanisms import Mechanism
from deniable.mechanisms.schemes import DENIABLE_1
from deniable.survey import Question
from deniable.survey.defaults import most_accurate

DAYS = (1, 7, 30, 365)
"""Numbers of daily reports that are compared."""
PARTS = (0.25, 0.5, 0.75, 0.9)
"""Losses per report that are compared with the chosen one, as parts of the loss in total."""
CLIENTS = 10_000


@dataclass(frozen=True)
class RepeatedAccuracy:
    """Accuracy of repeated collection with one loss per report.

    Parameters
    ----------
    per_report : float
        Privacy loss ε of one report.
    errors : tuple of float
        Standard error of the share of a rare value after each number of `DAYS`, if each of
        `CLIENTS` clients reports daily.
    chosen : bool
        Whether the survey has this loss per report.
    """

    per_report: float
    errors: tuple[float, ...]
    chosen: bool


def repeated_accuracy(question: Question) -> tuple[RepeatedAccuracy, ...]:
    """Compare the noise of a repeatedly collected question with other losses per report.

    The others have the most accurate noise with the same loss in total.

    Parameters
    ----------
    question : Question
        A question with one slot per report.

    Returns
    -------
    tuple of RepeatedAccuracy
        In increasing order of the loss per report; empty if there is no permanent noise, if
        reports have several slots, or if the scheme is one of google/rappor.
    """
    mechanism, *others = question.protocol.mechanisms
    in_total = mechanism.loss.in_total
    if others or not math.isfinite(in_total) or mechanism.scheme is not DENIABLE_1:
        return ()
    rows = [_accuracy(mechanism, chosen=True)]
    for part in PARTS:
        with suppress(InputError):  # too small a loss, or too few bits for asymmetric noise
            rival = most_accurate(mechanism, in_total, part * in_total)
            if not math.isclose(rival.loss.per_report, rows[0].per_report, rel_tol=1e-4):
                rows.append(_accuracy(rival, chosen=False))
    return tuple(sorted(rows, key=lambda row: row.per_report))


def _accuracy(mechanism: Mechanism, chosen: bool) -> RepeatedAccuracy:
    """Return the accuracy of one mechanism."""
    errors = (math.sqrt(mechanism.variance(reports=n) / CLIENTS) for n in DAYS)
    return RepeatedAccuracy(mechanism.loss.per_report, tuple(errors), chosen)
