"""`deniable check`: is the survey right, and what does it promise and cost?"""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import click

from deniable.cli import options
from deniable.cli.documented import command
from deniable.cli.output import say
from deniable.cli.tables import console, print_table
from deniable.errors import InputError

if TYPE_CHECKING:
    from rich.console import Console

    from deniable.protocols import Prefixes, Protocol
    from deniable.survey import Question, Survey

CLIENTS = (10**4, 10**5, 10**6, 10**7, 10**8)
SOON = 30
Findings = dict[str, Any]
"""What `check` says, as JSON has it."""
THRESHOLDS = {
    "detectable": "Smallest detectable frequency, value on the analyst's list (1,000 for strings)",
    "discoverable": "Smallest frequency of a string that nobody listed but discovery finds (by "
    "prefixes, half as long as may be)",
}
UNSAID = "those who are asked should know"


@command()
@click.argument("file", type=options.EXISTING_FILE)
@options.option("-o", "--output", type=options.OutputPath(".json"))
@options.option("--clients", "sizes", multiple=True, type=options.a_count, metavar="N")
@options.json_option("the findings")
def check(file: Path, output: Path | None, sizes: tuple[int, ...], as_json: bool) -> None:
    """Say what a survey promises and costs, and name its mistakes.

    FILE is TOML, or a published survey's JSON.

    Parameters
    ----------
    output : Publish: write the canonical JSON that clients load.
    sizes : Say what this many show; may be given again. [10 thousand to 100 million]

    Examples
    --------
    deniable check survey.toml -o survey.json
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


def describe(survey: Survey, sizes: Sequence[int] = CLIENTS) -> Findings:
    """Return everything `check` prints, as plain data. An infinite ε is None."""
    from deniable.privacy import NANO

    return {
        "name": survey.name,
        "version": survey.version,
        "digest": survey.digest.hex(),
        "collect": survey.collect,
        "expires": survey.expires.isoformat(),
        "budget": survey.budget / NANO,
        "once": survey.loss.once,
        "forever": _finite(survey.loss.forever),
        "report_bytes": 20 + survey.body_size,
        "batched_report_bytes": survey.body_size,
        "groups": survey.groups,
        "smallest_group": survey.smallest_group,
        "questions": [_describe_question(question, sizes) for question in survey.questions],
        "notes": _notes(survey),
    }


def _describe_question(question: Question, sizes: Sequence[int]) -> Findings:
    from deniable import planning

    unknown = question.protocol.name in ("ngrams", "prefixes")
    return {
        "name": question.name,
        "kind": question.kind,
        "protocol": question.protocol.name,
        "once": question.loss.once,
        "forever": _finite(question.loss.forever),
        "bytes": question.size,
        "detectable": {str(n): planning.detectable(question, n) for n in sizes},
        "discoverable": {str(n): planning.discoverable(question, n) for n in sizes}
        if unknown
        else None,
        "levels": levels_in_words(question.protocol),
    }


def _finite(x: float) -> float | None:
    return x if math.isfinite(x) else None


def _notes(survey: Survey) -> list[str]:
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


def levels_in_words(protocol: Protocol) -> str | None:
    """Which prefixes clients report, and why; None for other protocols."""
    from deniable.protocols.alphabet import count_strings
    from deniable.survey.defaults import MOST_WHOLE

    if protocol.name != "prefixes":
        return None
    protocol = cast("Prefixes", protocol)
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


def _show(findings: Findings) -> None:
    from deniable.formatting import TextTable

    out = console()
    out.print(
        f"[bold]{findings['name']}[/] version {findings['version']}, "
        f"collected {findings['collect']}, until {findings['expires']}"
    )
    out.print(f"digest {findings['digest']}\n")
    whole = {"name": "whole survey", "kind": "", "protocol": ""}
    whole |= {"bytes": findings["batched_report_bytes"]}
    rows = [
        [
            *(row[name] for name in ("name", "kind", "protocol")),
            f"{row['once']:.6g}",
            "no limit" if row["forever"] is None else f"{row['forever']:.6g}",
            _odds(row["once"]),
            str(row["bytes"]),
        ]
        for row in [*findings["questions"], findings | whole]
    ]
    names = ("question", "kind", "protocol", "ε once", "ε for ever", "surer by", "bytes")
    print_table(TextTable(names, rows), out)
    out.print(in_words(findings["once"], "One report"))
    out.print(in_words(findings["forever"], "All reports about values that do not change"))
    out.print(
        f"Budget of one person over all versions: ε = {findings['budget']:.6g}.\n"
        f"On the wire: {findings['report_bytes']} bytes alone, "
        f"{findings['batched_report_bytes']} in a batch, whatever the answer.\n"
        f"Sent in the clear, the cohort and drawn positions make {findings['groups']:,} groups; "
        f"of a million clients the smallest has about {1e6 * findings['smallest_group']:,.0f}.\n"
    )
    for question in findings["questions"]:
        if question["levels"]:
            out.print(f"Clients report of {question['name']}: {question['levels']}.\n")
    for which, title in THRESHOLDS.items():
        _show_thresholds(out, findings, which, title)
    for note in findings["notes"]:
        out.print(f"Note: {note}.", markup=False)
    if "published" in findings:
        out.print(f"published: {findings['published']}", markup=False)


def _show_thresholds(out: Console, findings: Findings, which: str, title: str) -> None:
    from deniable.formatting import TextTable, percent

    questions = [q for q in findings["questions"] if q[which] is not None]
    if not questions:
        return
    rows = []
    for clients in questions[0][which]:
        shares = [question[which][clients] for question in questions]
        rows.append([f"{int(clients):,}", *("none" if x >= 1 else percent(x) for x in shares)])
    out.print(f"{title}:")
    print_table(TextTable(["clients", *(q["name"] for q in questions)], rows), out)
