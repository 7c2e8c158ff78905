"""One self-contained HTML file from results: nothing is fetched, everything is escaped.

Decoded strings are hostile input. The file's content security policy allows its own style and its
one script, each by the hash of its text, and nothing else at all.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence

from deniable.errors import InputError
from deniable.render.html.sections import Truth, epsilon_in_words, section
from deniable.render.html.static_files import static
from deniable.render.html.svg import safe
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
    parts = [section(r, survey, truth) for r in results]
    return "\n".join([
        "<!doctype html>", '<html lang="en">', "<head>", '<meta charset="utf-8">',
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f"<title>{safe(name)}</title>", f"<style>{style}</style>", "</head>", "<body>",
        f"<header><h1>{safe(name)}</h1>{_asked(survey)}</header>", "<main>", *parts, "</main>",
        f"<script>{script}</script>", "</body>", "</html>", "",
    ])  # fmt: skip


def _hash(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def _asked(survey: Survey | None) -> str:
    """What was asked, and what it cost those who answered, in plain words."""
    if survey is None:
        return ""
    rows = []
    for question in survey.questions:
        loss = question.loss
        lasting = (
            "no limit on repeated answers but the budget" if loss.forever == float("inf")
            else f"ε = {loss.forever:.2f} for ever, however often it is answered"
        )  # fmt: skip
        rows.append(
            f"<li><b>{safe(question.name)}</b> ({safe(question.kind)}): ε = {loss.once:.2f} a "
            f"report; {lasting}. In words: {epsilon_in_words(loss.once)}.</li>"
        )
    return (
        f'<p class="lead">{safe(survey.description)}</p><div class="card">'
        f"<p>Every client added noise on its own device before anything was sent. What each person "
        f"gave away, at most:</p><ul>{''.join(rows)}</ul></div>"
    )
