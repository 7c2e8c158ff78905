"""`deniable conformance`: test a client in any language against the published test vectors."""

from __future__ import annotations

from collections import Counter

import click

from deniable.cli import options
from deniable.cli.options import command
from deniable.cli.output import console, print_outcome, print_table
from deniable.conformance import FILES, REQUIRED, CaseResult, cases, replay
from deniable.errors import did_you_mean
from deniable.formatting import TextTable

MAX_FAILURES_PER_FILE = 10
MAX_DETAIL = 400
"""Characters of a failure that are printed."""
VERDICTS = ("passed", "failed", "unsupported")


@command()
@click.argument("command", nargs=-1, required=True, metavar="-- CMD...")
@options.option("--vectors", "chosen", multiple=True, metavar="NAME")
@options.option("--timeout", type=options.POSITIVE_FLOAT, default=10.0, metavar="SECONDS")
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
    """Let the program CMD replay every test vector, and compare its output.

    CMD reads and writes one JSON object per line, as docs/how-to/other-languages.md describes. The
    exit code is 0 if no vector failed and CMD supports the vectors of whole reports and of ledgers.

    Parameters
    ----------
    chosen
        Test only the vectors of this file, such as reports. May be repeated.
    timeout
        Maximum time per vector.
    well_formed
        Skip vectors whose text is not valid Unicode (lone surrogates), which the strings of some
        languages cannot hold.
    verbose
        List every vector, not only those that failed.

    Examples
    --------
    deniable conformance -- python examples/conformance/python_client.py
    deniable conformance --vectors reports --timeout 60 -- ./my-client --replay
    """
    for name in chosen:
        if name not in FILES:
            hint = did_you_mean(name, FILES)
            raise click.UsageError(f"there are vectors {', '.join(FILES)}; not {name}.{hint}")
    selected = [
        case
        for case in cases()
        if (not chosen or case.file in chosen) and (case.well_formed or not well_formed)
    ]
    findings = sorted(
        replay(command, selected, timeout=timeout),
        key=lambda f: (list(FILES).index(f.case.file), f.case.number),
    )
    counts: dict[str, Counter[str]] = {}
    for finding in findings:
        counts.setdefault(finding.case.file, Counter())[finding.verdict] += 1
    conforms = not any(
        count["failed"] or (file in REQUIRED and count["unsupported"])
        for file, count in counts.items()
    )
    if as_json:
        data = {
            "conforms": conforms,
            "summary": {file: dict(count) for file, count in counts.items()},
            "vectors": [
                {"vector": f.case.name, "verdict": f.verdict, "detail": f.detail} for f in findings
            ],
        }
        print_outcome(data, "", as_json)
    else:
        _show(findings, counts, conforms, verbose)
    click.get_current_context().exit(0 if conforms else 1)


def _show(
    findings: list[CaseResult], counts: dict[str, Counter[str]], conforms: bool, verbose: bool
) -> None:
    """Print the first failures of each file, or every vector, and a table of counts."""
    out = console()
    failures: Counter[str] = Counter()
    for finding in findings:
        file, failed = finding.case.file, finding.verdict == "failed"
        failures[file] += failed
        if verbose or (failed and failures[file] <= MAX_FAILURES_PER_FILE):
            detail = f": {finding.detail[:MAX_DETAIL]}" if finding.detail else ""
            line = f"{finding.verdict} {finding.case.name}{detail}"
            out.print(line, markup=False, soft_wrap=True)
    rows = [[file, *(str(count[v]) for v in VERDICTS)] for file, count in counts.items()]
    print_table(TextTable(["vectors", *VERDICTS], rows), out)
    out.print("The client conforms." if conforms else "The client does not conform.")
