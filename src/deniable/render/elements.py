"""Elements of a page: titles, numbers, tables, provenance. All text is escaped."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from deniable.formatting import counted, html_text, percent, sortable_table
from deniable.planning import clients_to_move
from deniable.results import Provenance, Result
from deniable.survey import Survey

MAX_ROWS = 1000
"""Rows of a table that a page shows."""


def section(body: Sequence[str], result: Result) -> str:
    """Return a section, with the check of the reports and the provenance at the end.

    What must be said first stands at the beginning.
    """
    marks = "".join(f'<p class="card"><b>{html_text(mark)}</b></p>' for mark in result.marks)
    checked = ""
    if result.fit is not None and not result.warning:
        checked = details("Check of the reports", paragraph(str(result.fit)))
    return f"<section>{marks}{''.join(body)}{checked}{_provenance(result.provenance)}</section>"


def title(text: str) -> str:
    """Return the heading of a section."""
    return f"<h2>{html_text(text)}</h2>"


def paragraph(text: str) -> str:
    """Return a paragraph."""
    return f"<p>{html_text(text)}</p>"


def numbers(facts: Mapping[str, str]) -> str:
    """Return the most important numbers, each with its name."""
    items = "".join(f"<li><b>{html_text(v)}</b>{html_text(k)}</li>" for k, v in facts.items())
    return f'<ul class="numbers">{items}</ul>'


def count(number: int, noun: str) -> dict[str, str]:
    """Return a count as one of the `numbers`."""
    shown, name = counted(number, noun).split(" ", 1)
    return {name: shown}


def details(summary: str, body: str) -> str:
    """Return a body that is shown when its summary is clicked."""
    return f"<details><summary>{html_text(summary)}</summary>{body}</details>"


def table(result: Result) -> str:
    """Return the columns of a result as a sortable table."""
    return sortable_table(result.columns(), MAX_ROWS)


def influence(survey: Survey | None, question: str, reports: int, shift: float) -> str:
    """Say how many malicious clients can change an estimate by `shift`, if the survey is known."""
    asked = survey is not None and question in {q.name for q in survey.questions}
    if survey is None or not asked or not math.isfinite(shift):
        return ""
    needed = clients_to_move(survey.question(question), reports, shift)
    return paragraph(
        f"About {needed:,} malicious clients ({percent(needed / max(reports, 1))} of the clients) "
        f"could change one of these estimates by {percent(shift)}, enough to make an absent value "
        "look present."
    )


def _provenance(provenance: Provenance | None) -> str:
    if provenance is None:
        return ""
    facts = {
        "survey": f"{provenance.survey} version {provenance.version}",
        "digest": provenance.digest,
        "questions": ", ".join(provenance.questions),
        "reports": f"{provenance.reports:,}",
        "origin": provenance.origin or "reports as received",
        "made by": f"deniable {provenance.library}",
    }
    rows = "".join(f"<dt>{html_text(k)}</dt><dd>{html_text(v)}</dd>" for k, v in facts.items())
    return details("Provenance", f"<dl>{rows}</dl>")
