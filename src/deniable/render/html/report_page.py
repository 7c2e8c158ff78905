"""A self-contained HTML page of results: nothing is fetched, all text is escaped.

Decoded strings may be hostile. The content security policy of the page allows its own style and its
one script, each by the hash of its text, and nothing else.
"""

from __future__ import annotations

import base64
import hashlib
import math
from collections.abc import Iterable, Sequence

from deniable.errors import InputError
from deniable.formatting import html_text, odds_factor
from deniable.observers import amplified
from deniable.render.html.static_files import static
from deniable.render.view import Truth, view_of
from deniable.results import Result
from deniable.survey import Survey, SurveyOrPath
from deniable.survey.survey import total_charge

STYLES = ("colours.css", "chart.css", "style.css")
"""Style sheets of a page of results."""


def report(
    results: Result | Sequence[Result],
    *,
    survey: SurveyOrPath | None = None,
    title: str | None = None,
    truth: Truth | None = None,
) -> str:
    """Return a self-contained HTML page of results.

    Parameters
    ----------
    results : Result or sequence of Result
        Results, one section each.
    survey : Survey, str or Path, optional
        Survey of the reports, or the path of its file. Adds its description, the privacy loss per
        question, and how many malicious clients could change a result.
    title : str, optional
        Title of the page; by default it names the survey.
    truth : mapping, optional
        True shares of a simulated crowd: question → value → share.

    Returns
    -------
    str
        HTML.

    Raises
    ------
    InputError
        If there are no results.

    Examples
    --------
    >>> from deniable import plan
    >>> page = report([plan(clients=100_000, epsilon=4.0, kind="boolean")], title="Plan")
    >>> "<title>Plan</title>" in page
    True
    """
    survey = None if survey is None else Survey.of(survey)
    results = [results] if isinstance(results, Result) else results
    if not results:
        raise InputError("expected at least one result, got none")
    style, script = "".join(map(static, STYLES)), static("report.js")
    policy = (
        f"default-src 'none'; style-src '{_hash(style)}'; script-src '{_hash(script)}'; "
        "base-uri 'none'; form-action 'none'"
    )
    name = title or (f"Results of {survey.name}" if survey else "Results")
    sections = "\n".join(view_of(result).section(survey, truth) for result in results)
    return f"""\
<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{html_text(name)}</title>
<style>{style}</style>
</head>
<body>
<header><h1>{html_text(name)}</h1>{_privacy(survey, results)}</header>
<main>
{sections}
</main>
<script>{script}</script>
</body>
</html>
"""


def _hash(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def _privacy(survey: Survey | None, results: Iterable[Result]) -> str:
    """Return what was asked, and the privacy loss of those who answered."""
    if survey is None:
        return ""
    rows = []
    second_refused = survey.budget < 2 * total_charge(survey.questions, "once")
    for question in survey.questions:
        loss = question.loss
        if survey.collect == "once" and second_refused:
            total = "each client answers once"
        elif math.isfinite(loss.in_total):
            total = f"ε = {loss.in_total:.2f} in total, however often a client answers"
        else:
            total = "in total no more than the budget"
        rows.append(
            f"<li><b>{html_text(question.name)}</b> ({html_text(question.kind)}): "
            f"ε = {loss.per_report:.2f} per report; {total}. "
            f"{epsilon_in_words(loss.per_report)}</li>"
        )
    return (
        f'<p class="lead">{html_text(survey.description)}</p><div class="card">'
        "<p>Every client added noise to its answers on its own device, before it sent anything. "
        f"Privacy loss of each client, at most:</p><ul>{''.join(rows)}</ul>"
        f"{_shuffled(survey, results)}</div>"
    )


def _shuffled(survey: Survey, results: Iterable[Result]) -> str:
    """Return what shuffling adds for those who saw only shuffled reports."""
    counts = [result.provenance.reports for result in results if result.provenance]
    if survey.collect != "once" or not counts or min(counts) < 1:
        return ""
    bound = html_text(str(amplified(survey, min(counts))))
    return (
        f"<p>Seen only in {bound}. This holds if all these reports were shuffled "
        "together by a collector that is trusted to do so.</p>"
    )


def epsilon_in_words(once: float) -> str:
    """Return what ε means to the person who answered.

    >>> epsilon_in_words(0.0)
    'A report reveals nothing.'
    """
    if once <= 0:
        return "A report reveals nothing."
    return (
        "A report changes the odds of any guess about the answer by a factor of at most "
        f"{odds_factor(once)}."
    )
