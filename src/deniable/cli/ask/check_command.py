"""`deniable check`: is the survey right, and what does it promise and cost?"""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from deniable.cli.numbers import a_count
from deniable.cli.output import OutputPath, console, say
from deniable.errors import InputError

CLIENTS = (10**4, 10**5, 10**6, 10**7, 10**8)
SOON = 30
UNSAID = "those who are asked should know"


@click.command(epilog="Example: deniable check survey.toml -o survey.json")
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option(
    "-o", "--output", type=OutputPath((".json",)),
    help="Publish: write the canonical JSON that clients load.",
)  # fmt: skip
@click.option("--clients", "sizes", multiple=True, type=a_count, metavar="N",
              help="Say what this many show; may be given again. [10 thousand to 100 million]",
              )  # fmt: skip
@click.option("--json", "as_json", is_flag=True, help="Print the findings as JSON.")
def check(file: Path, output: Path | None, sizes: tuple[int, ...], as_json: bool) -> None:
    """Say what a survey promises and costs, and name its mistakes.

    FILE is TOML, or a published survey's JSON.
    """
    from deniable.survey import Survey

    survey = Survey.load(file)
    findings = describe(survey, sizes or CLIENTS)
    if output:
        if unsaid := [note for note in findings["notes"] if note.startswith(UNSAID)]:
            raise InputError("\n".join(unsaid))
        survey.publish(output)
        findings["published"] = str(output)
    if as_json:
        say(findings, "", as_json)
    else:
        _show(findings)


def describe(survey: Any, sizes: Sequence[int] = CLIENTS) -> dict[str, Any]:
    """Everything `check` prints, as plain data. An infinite ε is None."""
    from deniable import planning
    from deniable.privacy import NANO

    def finite(x: float) -> float | None:
        return x if math.isfinite(x) else None

    questions = [
        {
            "name": q.name, "kind": q.kind, "protocol": q.protocol.name,
            "once": q.loss.once, "forever": finite(q.loss.forever), "bytes": q.size,
            "detectable": {str(n): planning.detectable(q, n) for n in sizes},
            "discoverable": {str(n): planning.discoverable(q, n) for n in sizes}
            if q.protocol.name in ("ngrams", "prefixes") else None,
            "levels": levels_in_words(q.protocol),
        }
        for q in survey.questions
    ]  # fmt: skip
    return {
        "name": survey.name, "version": survey.version, "digest": survey.digest.hex(),
        "collect": survey.collect, "expires": survey.expires.isoformat(),
        "budget": survey.budget / NANO,
        "once": survey.loss.once, "forever": finite(survey.loss.forever),
        "report_bytes": 20 + survey.body_size, "batched_report_bytes": survey.body_size,
        "groups": survey.groups, "smallest_group": survey.smallest_group,
        "questions": questions, "notes": _notes(survey),
    }  # fmt: skip


def _notes(survey: Any) -> list[str]:
    """What an author may have overlooked."""
    from datetime import UTC, datetime

    from deniable.survey.draft import DESCRIPTION, OWNER

    notes = []
    if survey.owner == OWNER:
        notes.append(f"{UNSAID} who answers for the survey: change owner")
    if survey.description == DESCRIPTION:
        notes.append(f"{UNSAID} what is asked and why: change description")
    left = (survey.expires - datetime.now(UTC).date()).days
    if left < 0:
        notes.append(f"it ended {-left} days ago: clients refuse to answer")
    elif left < SOON:
        notes.append(f"it ends in {left} days")
    return notes


def in_words(epsilon: float | None, what: str) -> str:
    """ε for people who have never met it."""
    if epsilon is None:
        return f"{what}: no limit; every further report tells more"
    return (
        f"{what}: ε = {epsilon:.4g}. Whoever sees it can become at most {_odds(epsilon)[1:]} times "
        "surer of any guess about the answer"
    )


def levels_in_words(protocol: Any) -> str | None:
    """Which prefixes clients report, and why; None for other protocols."""
    from deniable.protocols.alphabet import count_strings
    from deniable.survey.defaults import MOST_WHOLE

    if protocol.name != "prefixes":
        return None
    strings = count_strings(len(protocol.alphabet.content), protocol.max_length)
    number = f"{strings:,}" if strings < 10**12 else f"10^{math.log10(strings):.0f}"
    lengths = [level.length for level in protocol.levels]
    if len(lengths) == 1:
        return f"whole strings only, since each of the {number} that can be held is looked at"
    what = f"prefixes of {lengths[0]} to {lengths[-1]} symbols, at {len(lengths)} levels"
    if strings > MOST_WHOLE:
        return f"{what}, since {number} strings are too many to look at each"
    return f"{what}; each of {number} strings could be looked at: leave levels out"


def _odds(epsilon: float) -> str:
    """e^ε, the most by which odds can change."""
    if epsilon > 20:
        return f"×10^{epsilon / math.log(10):.0f}"
    factor = math.exp(epsilon)
    return f"×{factor:,.0f}" if factor >= 10 else f"×{factor:.2f}"


def _show(found: dict[str, Any]) -> None:
    from rich.table import Table

    out = console()
    out.print(
        f"[bold]{found['name']}[/] version {found['version']}, "
        f"collected {found['collect']}, until {found['expires']}"
    )
    out.print(f"digest {found['digest']}\n")
    table = Table("question", "kind", "protocol", "ε once", "ε for ever", "surer by", "bytes")
    for q in [*found["questions"], None]:
        row = found if q is None else q
        forever = "no limit" if row["forever"] is None else f"{row['forever']:.6g}"
        names = ["whole survey", "", ""] if q is None else [q["name"], q["kind"], q["protocol"]]
        size = found["batched_report_bytes"] if q is None else q["bytes"]
        table.add_row(*names, f"{row['once']:.6g}", forever, _odds(row["once"]), str(size))
    out.print(table)
    out.print(in_words(found["once"], "One report"))
    out.print(in_words(found["forever"], "All reports about values that do not change"))
    out.print(
        f"Budget of one person over all versions: ε = {found['budget']:.6g}.\n"
        f"On the wire: {found['report_bytes']} bytes alone, "
        f"{found['batched_report_bytes']} in a batch, whatever the answer.\n"
        f"Sent in the clear, the cohort and drawn positions make {found['groups']:,} groups; "
        f"of a million clients the smallest has about {1e6 * found['smallest_group']:,.0f}.\n"
    )
    for q in found["questions"]:
        if q["levels"]:
            out.print(f"Clients report of {q['name']}: {q['levels']}.\n")
    _show_thresholds(
        out, found, "detectable",
        "Smallest detectable frequency, value on the analyst's list (1,000 for strings)",
    )  # fmt: skip
    _show_thresholds(
        out, found, "discoverable",
        "Smallest frequency of a string that nobody listed but discovery finds (by prefixes, "
        "half as long as may be)",
    )  # fmt: skip
    for note in found["notes"]:
        out.print(f"Note: {note}.", markup=False)
    if "published" in found:
        out.print(f"published: {found['published']}", markup=False)


def _show_thresholds(out: Any, found: dict[str, Any], which: str, title: str) -> None:
    from rich.table import Table

    questions = [q for q in found["questions"] if q[which] is not None]
    if not questions:
        return
    out.print(f"{title}:")
    table = Table("clients", *(q["name"] for q in questions))
    for n in questions[0][which]:
        cells = [q[which][n] for q in questions]
        table.add_row(f"{int(n):,}", *("none" if x >= 1 else f"{100 * x:.3g}%" for x in cells))
    out.print(table)
