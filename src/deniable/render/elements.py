"""Pieces of a page: titles, facts, tables, and where a result came from. Everything is escaped."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from deniable.formatting import html_table, html_text, percent
from deniable.planning import clients_to_move
from deniable.results import Provenance, Result
from deniable.survey import Survey

ROWS = 1000


def section(body: Sequence[str], provenance: Provenance | None) -> str:
    """Return a section, with where its result came from below."""
    return f"<section>{''.join(body)}{_source(provenance)}</section>"


def title(words: str) -> str:
    """Return the heading of a section."""
    return f"<h2>{html_text(words)}</h2>"


def paragraph(words: str) -> str:
    """Return a paragraph."""
    return f"<p>{html_text(words)}</p>"


def numbers(facts: Mapping[str, str]) -> str:
    """Return the few numbers that matter most, each with its name."""
    items = "".join(f"<li><b>{html_text(v)}</b>{html_text(k)}</li>" for k, v in facts.items())
    return f'<ul class="numbers">{items}</ul>'


def details(words: str, body: str) -> str:
    """Return what unfolds when its summary is clicked."""
    return f"<details><summary>{html_text(words)}</summary>{body}</details>"


def table(result: Result) -> str:
    """Return the columns of a result as a table that can be sorted."""
    return html_table(result.columns(), ROWS, sortable=True)


def influence(survey: Survey | None, question: str, reports: int, shift: float) -> str:
    """Say how many malicious clients move an estimate by this much, if the survey is known."""
    if survey is None or question not in {q.name for q in survey.questions}:
        return ""
    needed = clients_to_move(survey.question(question), reports, shift)
    return paragraph(
        f"About {needed:,} malicious clients ({percent(needed / max(reports, 1))} of them) "
        f"could move one of these numbers by {percent(shift)}, as much as makes a value seem "
        "to exist."
    )


def _source(provenance: Provenance | None) -> str:
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
    return details("Where this came from", f"<dl>{rows}</dl>")
