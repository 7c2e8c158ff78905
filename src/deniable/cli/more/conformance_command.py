"""`deniable conformance`: does a client in any language do what docs/wire.md says?"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import click

from deniable.cli.output import say

if TYPE_CHECKING:
    from deniable.conformance import Finding

EXAMPLE = """\b
Examples:
  deniable conformance -- python examples/conformance/python_client.py
  deniable conformance --vectors reports --timeout 60 -- ./my-client --replay
"""
SHOWN = 10


@click.command(epilog=EXAMPLE, short_help="Compare a client in any language with the vectors.")
@click.argument("command", nargs=-1, required=True, metavar="-- CMD...")
@click.option("--vectors", "chosen", multiple=True, metavar="NAME",
              help="Only these, such as reports; may be given again.")  # fmt: skip
@click.option("--timeout", type=click.FloatRange(min=0, min_open=True), default=10.0,
              show_default=True, metavar="SECONDS", help="For one answer.")  # fmt: skip
@click.option("--well-formed", is_flag=True,
              help="Leave out text with lone surrogates: some languages have none.")  # fmt: skip
@click.option("-v", "--verbose", is_flag=True, help="Name every vector, not only the failed.")
@click.option("--json", "as_json", is_flag=True, help="Print the findings as JSON.")
def conformance(
    command: tuple[str, ...], chosen: tuple[str, ...], timeout: float, well_formed: bool,
    verbose: bool, as_json: bool,
) -> None:  # fmt: skip
    """Ask the program CMD to replay every vector, and compare.

    It reads and writes one JSON object a line; docs/clients.md describes them. Exits with 0 if
    nothing failed and no whole report or ledger was left out.
    """
    from deniable.conformance import FILES, REQUIRED, cases, judge

    if unknown := sorted(set(chosen) - FILES.keys()):
        raise click.UsageError(f"expected vectors of {', '.join(FILES)}; got {', '.join(unknown)}")
    asked = [
        case
        for case in cases()
        if (not chosen or case.file in chosen) and (case.well_formed or not well_formed)
    ]
    found = sorted(
        judge(command, asked, timeout=timeout),
        key=lambda f: (list(FILES).index(f.case.file), f.case.number),
    )
    fine = not any(
        f.verdict == "failed" or (f.verdict == "unsupported" and f.case.file in REQUIRED)
        for f in found
    )
    if as_json:
        say(_as_data(found, fine), "", as_json)
    else:
        _show(found, fine, verbose)
    click.get_current_context().exit(0 if fine else 1)


def _counts(found: list[Finding]) -> dict[str, Counter[str]]:
    counts: dict[str, Counter[str]] = {}
    for finding in found:
        counts.setdefault(finding.case.file, Counter())[finding.verdict] += 1
    return counts


def _as_data(found: list[Finding], fine: bool) -> dict[str, Any]:
    return {
        "conforms": fine,
        "summary": {file: dict(count) for file, count in _counts(found).items()},
        "vectors": [
            {"vector": f.case.name, "verdict": f.verdict, "detail": f.detail} for f in found
        ],
    }


def _show(found: list[Finding], fine: bool, verbose: bool) -> None:
    from rich.console import Console
    from rich.table import Table

    console = Console(highlight=False)
    shown: Counter[str] = Counter()
    for f in found:
        shown[f.case.file] += f.verdict == "failed"
        if verbose or (f.verdict == "failed" and shown[f.case.file] <= SHOWN):
            detail = f": {f.detail[:400]}" if f.detail else ""
            console.print(f"{f.verdict} {f.case.name}{detail}", markup=False, soft_wrap=True)
    table = Table("vectors", "passed", "failed", "unsupported")
    for file, count in _counts(found).items():
        cells = [str(count[verdict]) for verdict in ("passed", "failed", "unsupported")]
        table.add_row(file, *cells)
    console.print(table)
    console.print("conforms" if fine else "does not conform")
