"""One self-contained HTML file from results: nothing is fetched, everything is escaped.

Decoded strings are hostile input. The file's content security policy allows its own style and its
one script, each by the hash of its text, and nothing else at all.
"""

from __future__ import annotations

import base64
import hashlib
import math
from collections.abc import Sequence

from deniable.errors import InputError
from deniable.formatting import html_text, odds_factor
from deniable.render.html.static_files import static
from deniable.render.view import Truth, view_of
from deniable.results import Result
from deniable.survey import Survey


def report(
    results: Sequence[Result],
    *,
    survey: Survey | None = None,
    title: str | None = None,
    truth: Truth | None = None,
) -> str:
    """The page's text. truth : of simulated crowds, by question, each value's share."""
    if not results:
        raise InputError("expected at least one result to report, got none")
    style, script = static("style.css"), static("report.js")
    policy = (
        f"default-src 'none'; style-src '{_hash(style)}'; script-src '{_hash(script)}'; "
        "base-uri 'none'; form-action 'none'"
    )
    name = title or (f"{survey.name}: what the crowd said" if survey else "What the crowd said")
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
<header><h1>{html_text(name)}</h1>{_asked(survey)}</header>
<main>
{sections}
</main>
<script>{script}</script>
</body>
</html>
"""


def _hash(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def _asked(survey: Survey | None) -> str:
    """What was asked, and what it cost those who answered, in plain words."""
    if survey is None:
        return ""
    rows = []
    for question in survey.questions:
        loss = question.loss
        lasting = "no limit on repeated answers but the budget"
        if math.isfinite(loss.in_total):
            lasting = f"ε = {loss.in_total:.2f} for ever, however often it is answered"
        name, kind = html_text(question.name), html_text(question.kind)
        rows.append(
            f"<li><b>{name}</b> ({kind}): ε = {loss.per_report:.2f} a report; {lasting}. In words: "
            f"{epsilon_in_words(loss.per_report)}.</li>"
        )
    return (
        f'<p class="lead">{html_text(survey.description)}</p><div class="card">'
        f"<p>Every client added noise on its own device before anything was sent. What each person "
        f"gave away, at most:</p><ul>{''.join(rows)}</ul></div>"
    )


def epsilon_in_words(once: float) -> str:
    """Return what ε means to the person who answered.

    >>> epsilon_in_words(0.0)
    'nothing at all'
    """
    if once <= 0:
        return "nothing at all"
    return (
        f"whatever someone guessed about an answer before, seeing the report changes the odds by "
        f"at most a factor of {odds_factor(once)}"
    )
