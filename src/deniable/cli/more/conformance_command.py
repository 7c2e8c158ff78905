"""`deniable conformance`: does a client in any language do what docs/reference/wire.md says?"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import click

from deniable.cli import options
from deniable.cli.documented import command
from deniable.cli.output import say
from deniable.cli.tables import console, print_table

if TYPE_CHECKING:
    from deniable.conformance import Finding

SHOWN = 10


@command(short_help="Compare a client in any language with the vectors.")
@click.argument("command", nargs=-1, required=True, metavar="-- CMD...")
@options.option("--vectors", "chosen", multiple=True, metavar="NAME")
@options.option("--timeout", type=options.POSITIVE, default=10.0, metavar="SECONDS")
@options.flag("--well-formed")
@options.flag("-v", "--verbose")
@options.json_option("the findings")
def conformance(
    command: tuple[str, ...],
    chosen: tuple[str, ...],
    timeout: float,
    well_formed: bool,
    verbose: bool,
    as_json: bool,
) -> None:
    """Ask the program CMD to replay every vector, and compare.

    It reads and writes one JSON object per line, as docs/how-to/other-languages.md describes.
    Exits with 0 if nothing failed and no whole report or ledger was left out.

    Parameters
    ----------
    chosen : Only these, such as reports; may be given again.
    timeout : For one answer.
    well_formed : Leave out text with lone surrogates: some languages have none.
    verbose : Name every vector, not only the failed.

    Examples
    --------
    deniable conformance -- python examples/conformance/python_client.py
    deniable conformance --vectors reports --timeout 60 -- ./my-client --replay
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
    from deniable.formatting import TextTable

    out = console()
    shown: Counter[str] = Counter()
    for finding in found:
        file, failed = finding.case.file, finding.verdict == "failed"
        shown[file] += failed
        if verbose or (failed and shown[file] <= SHOWN):
            detail = f": {finding.detail[:400]}" if finding.detail else ""
            words = f"{finding.verdict} {finding.case.name}{detail}"
            out.print(words, markup=False, soft_wrap=True)
    verdicts = ("passed", "failed", "unsupported")
    rows = [
        [file, *(str(count[verdict]) for verdict in verdicts)]
        for file, count in _counts(found).items()
    ]
    print_table(TextTable(["vectors", *verdicts], rows), out)
    out.print("conforms" if fine else "does not conform")
