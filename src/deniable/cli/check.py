"""`deniable check`: is the survey right, and what does it promise and cost?"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import click

from deniable.cli.output import say

CLIENTS = (10**4, 10**5, 10**6, 10**7, 10**8)


@click.command(epilog="Example: deniable check survey.toml -o survey.json")
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option(
    "-o", "--output", type=click.Path(dir_okay=False, path_type=Path),
    help="Publish: write the canonical JSON that clients load.",
)  # fmt: skip
@click.option("--json", "as_json", is_flag=True, help="Print the findings as JSON.")
def check(file: Path, output: Path | None, as_json: bool) -> None:
    """Validate the survey FILE (TOML, or published JSON) and say what it promises and costs."""
    from deniable.survey import Survey

    survey = Survey.load(file)
    findings = describe(survey)
    if output:
        survey.publish(output)
        findings["published"] = str(output)
    if as_json:
        say(findings, "", as_json)
    else:
        _show(findings)


def describe(survey: Any) -> dict[str, Any]:
    """Everything `check` prints, as plain data. An infinite ε is None."""
    from deniable import planning
    from deniable.privacy import NANO

    def finite(x: float) -> float | None:
        return x if math.isfinite(x) else None

    questions = [
        {
            "name": q.name, "kind": q.kind, "protocol": q.protocol.name,
            "once": q.loss.once, "forever": finite(q.loss.forever), "bytes": q.size,
            "detectable": {str(n): planning.detectable(q, n) for n in CLIENTS},
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
        "questions": questions,
    }  # fmt: skip


def in_words(epsilon: float | None, what: str) -> str:
    """ε for people who have never met it."""
    if epsilon is None:
        return f"{what}: no limit; every further report tells more"
    factor = math.exp(epsilon)
    odds = f"{factor:,.0f}" if factor >= 10 else f"{factor:.2f}"
    return (
        f"{what}: ε = {epsilon:.4g}. Whoever sees it can become at most {odds} times surer "
        "of any guess about the answer"
    )


def _show(found: dict[str, Any]) -> None:
    from rich.console import Console
    from rich.table import Table

    console = Console(highlight=False)
    console.print(
        f"[bold]{found['name']}[/] version {found['version']}, "
        f"collected {found['collect']}, until {found['expires']}"
    )
    console.print(f"digest {found['digest']}\n")
    table = Table("question", "kind", "protocol", "ε once", "ε for ever", "bytes")
    for q in [*found["questions"], None]:
        row = found if q is None else q
        forever = "no limit" if row["forever"] is None else f"{row['forever']:.6g}"
        names = ["whole survey", "", ""] if q is None else [q["name"], q["kind"], q["protocol"]]
        size = found["batched_report_bytes"] if q is None else q["bytes"]
        table.add_row(*names, f"{row['once']:.6g}", forever, str(size), end_section=q is None)
    console.print(table)
    console.print(in_words(found["once"], "One report"))
    console.print(in_words(found["forever"], "All reports about values that do not change"))
    console.print(
        f"Budget of one person over all versions: ε = {found['budget']:.6g}.\n"
        f"On the wire: {found['report_bytes']} bytes alone, "
        f"{found['batched_report_bytes']} in a batch, whatever the answer.\n"
        f"Sent in the clear, the cohort and drawn positions make {found['groups']:,} groups; "
        f"of a million clients the smallest has about {1e6 * found['smallest_group']:,.0f}.\n"
    )
    small = Table(
        "clients", *(q["name"] for q in found["questions"]),
        title="Smallest detectable frequency, value on the analyst's list (1,000 for strings)",
    )  # fmt: skip
    for n in CLIENTS:
        cells = [q["detectable"][str(n)] for q in found["questions"]]
        small.add_row(f"{n:,}", *("none" if x >= 1 else f"{100 * x:.3g}%" for x in cells))
    console.print(small)
    if "published" in found:
        console.print(f"published: {found['published']}")
