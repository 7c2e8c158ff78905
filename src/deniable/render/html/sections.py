"""One result, one section: what it says in words, the chart, the numbers behind it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from deniable.planning import clients_to_move
from deniable.render.html import svg
from deniable.results import Discovery, Joint, Marginal, Result, Trend
from deniable.results.base import Provenance
from deniable.results.format import html_table
from deniable.results.marginal import Measured
from deniable.survey import Survey

Truth = Mapping[str, Mapping[str, float]]
"""Of simulated crowds, by question, each value's share."""
SHOWN = 30
LINES = 6
"""Values of a trend that are drawn: more lines cannot be told apart."""


def section(result: Result, survey: Survey | None = None, truth: Truth | None = None) -> str:
    """The result as HTML. survey : the one it came from, for how far malicious clients reach."""
    if isinstance(result, Marginal):
        body = _marginal(result, survey, truth)
    elif isinstance(result, Discovery):
        body = _discovery(result, survey, truth)
    elif isinstance(result, Joint):
        body = _joint(result)
    elif isinstance(result, Trend):
        if not result.of_marginals:
            return _series(result, survey)
        body = _trend(result)
    else:
        body = [_table(result)]
    return f"<section>{''.join(body)}{_provenance(getattr(result, 'provenance', None))}</section>"


def _marginal(found: Marginal, survey: Survey | None, truth: Truth | None) -> list[str]:
    columns = found.columns()
    rows = min(len(columns["value"]), SHOWN)
    values = [str(v) for v in columns["value"][:rows]]
    numbers = ([float(v) for v in columns[name][:rows]] for name in ("estimate", "low", "high"))
    return [
        _title(f"{found.question}: how common each value is"),
        _numbers({
            "reports": f"{found.reports:,}",
            "values detected": f"{int(found.detected.sum())} of {len(found.estimate):,}",
            "share they explain": _share(found.mass_found),
            "unexplained": _share(found.mass_unexplained),
        }),
        svg.intervals(
            values, *numbers, detected=[bool(d) for d in columns["detected"][:rows]],
            threshold=found.detection_threshold, truth=_truth(values, truth, found.question),
        ),
        _p(
            f"A value that at least {svg.percent(found.detection_threshold)} of the clients hold "
            f"is detected more often than not. Grey values may be absent: over all values together "
            f"the chance of calling any absent one detected is at most {found.alpha:g}."
        ),
        _influence(survey, found.question, found.reports, found.detection_threshold),
        _details("All values", _table(found)),
    ]  # fmt: skip


def _discovery(found: Discovery, survey: Survey | None, truth: Truth | None) -> list[str]:
    values = list(found.strings[:SHOWN])
    cut = "" if not found.truncation else _p(f"The search was cut short: {found.truncation}.")
    at_end = "" if found.mass_at_end is None else _p(
        "Strings that fill the greatest length, and may have been cut: "
        f"{svg.percent(max(found.mass_at_end.low, 0.0))} to {svg.percent(found.mass_at_end.high)} "
        "of the clients."
    )  # fmt: skip
    return [
        _title(f"{found.question}: strings that nobody listed"),
        _numbers({
            "reports": f"{found.reports:,}",
            "strings found": f"{len(found.strings)}",
            "share they explain": _share(found.mass_found),
            "unexplained": _share(found.mass_unexplained),
        }),
        svg.intervals(
            values, found.estimate[:SHOWN].tolist(), found.low[:SHOWN].tolist(),
            found.high[:SHOWN].tolist(), threshold=found.detection_threshold,
            truth=_truth(values, truth, found.question),
        ) if values else _p("Nothing stood out from the noise."),
        _p(
            f"{found.candidates:,} candidates were looked at ({found.correction}). The chance "
            f"that any of these strings was never reported is at most {found.alpha:g}. Estimates "
            "close to the detection threshold are of strings that happened to come out high."
        ),
        cut, at_end,
        _influence(survey, found.question, found.reports, found.detection_threshold),
        "<h3>How they were found</h3>", svg.stages(found),
        _details("All strings", _table(found)),
    ]  # fmt: skip


def _joint(found: Joint) -> list[str]:
    body = [_title(" and ".join(found.questions) + ": how values go together")]
    facts = {"reports": f"{found.reports:,}"}
    if found.made_from == "counts":
        facts["made from"] = "counts"
    if len(found.questions) == 2:
        test, effect = found.test(), found.cramers_v()
        facts |= {
            "association test": f"p = {test.p_value:.2g}",
            "strength (Cramér's V)": f"{effect.estimate:.2f} "
            f"({effect.low:.2f} to {effect.high:.2f})",
        }
        told = (
            "The questions are associated" if test.p_value < 0.05
            else "No association is shown: the answers are as they would be if the questions had "
            "nothing to do with each other"
        )  # fmt: skip
        body += [
            _numbers(facts),
            _p(
                f"{told} ({test.method} test, statistic {test.statistic:.1f} with "
                f"{test.degrees_of_freedom} degrees of freedom)."
            ),
            svg.heatmap(found),
            _p(
                "Orange cells are more common than independent answers would make them, "
                "blue ones less."
            ),
        ]
    else:
        body.append(_numbers(facts))
    for question, other in zip(found.questions, found.other, strict=True):
        if other:
            body.append(_p(f"“Other” of {question}: {other}."))
    return [*body, _details("All cells", _table(found))]


def _trend(found: Trend[Result]) -> list[str]:
    largest = found.largest(LINES)
    numbers = (getattr(found, name)[:, largest].T.tolist() for name in ("estimate", "low", "high"))
    return [
        _title(f"{found.question}: how common values were, {found.by} by {found.by}"),
        _numbers({"reports": f"{int(found.reports.sum()):,}",
                  f"{found.by}s": f"{len(found.periods)}",
                  "values": f"{len(found.labels):,}"}),
        svg.lines(found.periods, [found.labels[i] for i in largest], *numbers),
        _p(
            f"Bands are 95% intervals of one {found.by} by itself. Where two bands hardly overlap, "
            f"the value has probably changed; looking at many {found.by}s and values, a few will "
            "seem to change by chance."
        ),
        _details("All values and periods", _table(found)),
    ]  # fmt: skip


def _series(found: Trend[Result], survey: Survey | None) -> str:
    """One section a period, and what could not be analysed."""
    parts = [
        f"<h2>{svg.safe(found.by)} of {svg.safe(period)}</h2>{section(part, survey)}"
        for period, part in zip(found.periods, found.parts, strict=True)
    ]
    parts += [_p(f"{period}: {why}") for period, why in found.skipped.items()]
    return "".join(parts)


def _influence(survey: Survey | None, name: str, reports: int, shift: float) -> str:
    if survey is None or name not in {q.name for q in survey.questions}:
        return ""
    needed = clients_to_move(survey.question(name), reports, shift)
    return _p(
        f"About {needed:,} malicious clients ({svg.percent(needed / max(reports, 1))} of them) "
        f"could move one of these numbers by {svg.percent(shift)}, as much as makes a value seem "
        "to exist."
    )


def _truth(values: Sequence[str], truth: Truth | None, question: str) -> list[float | None] | None:
    if truth is None or question not in truth:
        return None
    return [truth[question].get(value, 0.0) for value in values]


def _share(measured: Measured) -> str:
    return f"{svg.percent(measured.estimate)} ± {svg.percent(1.96 * measured.standard_error)}"


def _table(result: Result) -> str:
    return html_table(result.columns(), most=1000, sortable=True)


def _title(words: str) -> str:
    return f"<h2>{svg.safe(words)}</h2>"


def _p(words: str) -> str:
    return f"<p>{svg.safe(words)}</p>"


def _numbers(facts: Mapping[str, str]) -> str:
    items = "".join(f"<li><b>{svg.safe(v)}</b>{svg.safe(k)}</li>" for k, v in facts.items())
    return f'<ul class="numbers">{items}</ul>'


def _details(words: str, body: str) -> str:
    return f"<details><summary>{svg.safe(words)}</summary>{body}</details>"


def _provenance(source: Provenance | None) -> str:
    if source is None:
        return ""
    facts = {
        "survey": f"{source.survey} version {source.version}", "digest": source.digest,
        "questions": ", ".join(source.questions), "reports": f"{source.reports:,}",
        "origin": source.origin or "reports as received",
        "made by": f"deniable {source.library}",
    }  # fmt: skip
    rows = "".join(f"<dt>{svg.safe(k)}</dt><dd>{svg.safe(v)}</dd>" for k, v in facts.items())
    return _details("Where this came from", f"<dl>{rows}</dl>")


def epsilon_in_words(once: float) -> str:
    """What ε means to the person who answered.

    >>> epsilon_in_words(0.0)
    'nothing at all'
    """
    if once <= 0:
        return "nothing at all"
    odds = np.exp(once)
    shown = f"{odds:.2f}" if odds < 10 else f"{odds:,.0f}"
    return (
        f"whatever someone guessed about an answer before, seeing the report changes the odds by "
        f"at most a factor of {shown}"
    )
