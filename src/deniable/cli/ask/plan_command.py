"""`deniable plan`: parameters and predictions, before anyone is asked."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from deniable.cli import options
from deniable.cli.documented import command
from deniable.cli.output import written
from deniable.cli.tables import console, print_table
from deniable.errors import InputError

if TYPE_CHECKING:
    from deniable.results.survey_plan import Plan


@command()
@options.option("--clients", type=options.a_count, metavar="N")
@options.option("--epsilon", type=float)
@options.option("--detect", type=options.a_share, metavar="SHARE")
@options.option("--kind", type=click.Choice(["string", "choice", "boolean"]), default="string")
@options.option("--options", type=click.IntRange(2), default=4)
@options.flag("--unknown")
@options.option("--candidates", type=options.AT_LEAST_ONE, default=1000)
@options.option("--max-length", type=click.IntRange(1, 255), default=20)
@options.option("--alphabet", default="a-z0-9._-")
@options.option("--length", type=options.POSITIVE)
@options.flag("--random")
@options.collect_option()
@options.alpha_option
@options.option("--write", "survey_file", type=options.OutputPath(".toml"))
@options.flag("--force")
@options.output_option
@options.json_option()
def plan(
    survey_file: Path | None, force: bool, outputs: tuple[Path, ...], as_json: bool, **asked: Any
) -> None:
    """Recommend parameters and predict what they will show.

    Give two of --clients, --epsilon and --detect; the third follows.

    Parameters
    ----------
    clients : How many will answer.
    epsilon : What may be spent, in nats.
    detect : A share of the clients that is to be found: 0.001 or 0.1%.
    kind : What is asked.
    options : Options of a choice.
    unknown : Nobody lists the strings: they are discovered.
    candidates : Strings on the analyst's list.
    max_length : Longest unknown string.
    alphabet : Characters of unknown strings, or "bytes".
    length : Of a typical unknown string; half of the longest if not given.
    random : Strings follow no pattern: identifiers, not words.
    collect : One report a client, or any number.
    survey_file : Write a survey file that asks as recommended.
    force : Let --write replace a file that is there.

    Examples
    --------
    deniable plan --clients 1000000 --epsilon 4
    deniable plan --clients 1000000 --detect 0.1% --unknown --write survey.toml
    deniable plan --epsilon 1 --detect 0.01 --kind boolean
    deniable plan --clients 1e6 --epsilon 4.4 --unknown --max-length 20 -o plan.svg
    """
    from deniable.planning.recommend import plan as make

    given = [name for name in ("clients", "epsilon", "detect") if asked[name] is not None]
    if len(given) != 2:
        named = " and ".join(f"--{name}" for name in given) or "none"
        raise click.UsageError(f"give two of --clients, --epsilon and --detect; got {named}")
    if survey_file is not None and survey_file.exists() and not force:
        raise InputError(f"{survey_file} is there already: choose another name, or --force")
    planned = make(**asked)
    if as_json:
        click.echo(planned.to_json())
    else:
        _show(planned)
    if survey_file is not None:
        survey_file.write_text(planned.survey_file(survey_file.name), encoding="utf-8")
        click.echo(f"written: {survey_file}; next: deniable check {survey_file}", err=True)
    written(planned, outputs)


def _show(planned: Plan) -> None:
    from deniable.formatting import TextTable, percent

    out, once, best = console(), planned.collect == "once", planned.best
    aim = "" if planned.wanted is None else f" (to find {percent(planned.wanted)} of them)"
    lasting = "" if once else " for ever"
    clients = f"{planned.clients:,} clients{aim}"
    out.print(f"[bold]{planned.question}[/], {clients}, ε = {planned.epsilon:.4g}{lasting}\n")
    names = ["ask by", "found from", "noise (sd)", "bytes a report", "ε of a report", "ε for ever"]
    rows = [
        [
            design.name,
            _threshold(design.threshold),
            percent(design.noise_sd),
            str(design.bytes),
            f"{design.once:.4g}",
            f"{design.forever:.4g}",
        ]
        for design in planned.designs
    ]
    if once:
        names, rows = names[:-1], [row[:-1] for row in rows]
    print_table(TextTable(names, rows, title="Ways to ask, best first"), out)
    out.print(
        f"A value that {_threshold(best.threshold)} of the clients hold is found half the time; "
        f"the chance of any false one is at most {planned.alpha:g}.\n"
    )
    if best.found:
        shapes = list(dict.fromkeys(name.split(" ", 1)[1] for name in planned.populations))
        rows = [
            [count, *(f"{best.found[f'{count} {shape}']:.0f}" for shape in shapes)]
            for count in ("100", "1,000")
        ]
        title = "Strings found on average, by how common they are"
        print_table(TextTable(["strings", *shapes], rows, title=title), out)
    rows = [
        [f"{size:,}", *(_threshold(float(t)) for t in thresholds)]
        for size, thresholds in zip(planned.sizes, planned.thresholds.T, strict=True)
    ]
    names = ["clients", *(f"ε = {epsilon:g}" for epsilon in planned.epsilons)]
    title = f"Found from, by ε and number of clients ({best.name})"
    print_table(TextTable(names, rows, title=title), out)
    out.print("As a survey's question:\n")
    out.print(best.toml, markup=False)


def _threshold(share: float) -> str:
    from deniable.formatting import percent

    return percent(share) if share < 1 else "nothing"
