"""`deniable plan`: parameters and predictions, before anyone is asked."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from deniable.cli.numbers import a_count, a_share
from deniable.cli.options import alpha_option, json_option, output_option
from deniable.cli.output import OutputPath, console, written
from deniable.cli.tables import share
from deniable.errors import InputError

if TYPE_CHECKING:
    from deniable.results.survey_plan import Plan

EXAMPLE = """\b
Examples:
  deniable plan --clients 1000000 --epsilon 4
  deniable plan --clients 1000000 --detect 0.1% --unknown --write survey.toml
  deniable plan --epsilon 1 --detect 0.01 --kind boolean
  deniable plan --clients 1e6 --epsilon 4.4 --unknown --max-length 20 -o plan.svg
"""


@click.command(epilog=EXAMPLE)
@click.option("--clients", type=a_count, metavar="N", help="How many will answer.")
@click.option("--epsilon", type=float, help="What may be spent, in nats.")
@click.option("--detect", type=a_share, metavar="SHARE",
              help="A share of the clients that is to be found: 0.001 or 0.1%.")  # fmt: skip
@click.option("--kind", type=click.Choice(["string", "choice", "boolean"]), default="string",
              show_default=True, help="What is asked.")  # fmt: skip
@click.option("--options", type=click.IntRange(2), default=4, show_default=True,
              help="Options of a choice.")  # fmt: skip
@click.option("--unknown", is_flag=True, help="Nobody lists the strings: they are discovered.")
@click.option("--candidates", type=click.IntRange(1), default=1000, show_default=True,
              help="Strings on the analyst's list.")  # fmt: skip
@click.option("--max-length", type=click.IntRange(1, 255), default=20, show_default=True,
              help="Longest unknown string.")  # fmt: skip
@click.option("--alphabet", default="a-z0-9._-", show_default=True,
              help='Characters of unknown strings, or "bytes".')  # fmt: skip
@click.option("--length", type=click.FloatRange(0, min_open=True),
              help="Of a typical unknown string; half of the longest if not given.")  # fmt: skip
@click.option("--random", is_flag=True,
              help="Strings follow no pattern: identifiers, not words.")  # fmt: skip
@click.option("--collect", type=click.Choice(["once", "repeatedly"]), default="once",
              show_default=True, help="One report a client, or any number.")  # fmt: skip
@alpha_option
@click.option("--write", "survey_file", type=OutputPath((".toml",)),
              help="Write a survey file that asks as recommended.")  # fmt: skip
@click.option("--force", is_flag=True, help="Let --write replace a file that is there.")
@output_option
@json_option
def plan(
    survey_file: Path | None, force: bool, outputs: tuple[Path, ...], as_json: bool, **asked: Any
) -> None:
    """Recommend parameters and predict what they will show.

    Give two of --clients, --epsilon and --detect; the third follows.
    """
    from deniable.planning.recommend import plan as make

    given = [name for name in ("clients", "epsilon", "detect") if asked[name] is not None]
    if len(given) != 2:
        told = " and ".join(f"--{name}" for name in given) or "none"
        raise click.UsageError(f"give two of --clients, --epsilon and --detect; got {told}")
    if survey_file is not None and survey_file.exists() and not force:
        raise InputError(f"{survey_file} is there already: choose another name, or --force")
    found = make(**asked)
    if as_json:
        click.echo(found.to_json())
    else:
        _show(found)
    if survey_file is not None:
        survey_file.write_text(found.survey_file(survey_file.name), encoding="utf-8")
        click.echo(f"written: {survey_file}; next: deniable check {survey_file}", err=True)
    written(found, outputs)


def _show(found: Plan) -> None:
    from rich.table import Table

    out = console()
    best = found.best
    once = found.collect == "once"
    lasting = "" if once else " for ever"
    third = "" if found.wanted is None else f" (to find {share(found.wanted)} of them)"
    out.print(f"[bold]{found.question}[/], {found.clients:,} clients{third}, "
              f"ε = {found.epsilon:.4g}{lasting}\n")  # fmt: skip
    spent = ["ε of a report"] if once else ["ε of a report", "ε for ever"]
    table = Table("ask by", "found from", "noise (sd)", "bytes a report", *spent,
                  title="Ways to ask, best first")  # fmt: skip
    for design in found.designs:
        losses = [design.once] if once else [design.once, design.forever]
        table.add_row(design.name, _seen(design.threshold), share(design.noise_sd),
                      str(design.bytes), *(f"{loss:.4g}" for loss in losses))  # fmt: skip
    out.print(table)
    out.print(
        f"A value that {_seen(found.threshold)} of the clients hold is found half the time; the "
        f"chance of any false one is at most {found.alpha:g}.\n"
    )
    if best.found:
        table = Table("strings", *(f"{n}" for n in _shapes(found)),
                      title="Strings found on average, by how common they are")  # fmt: skip
        for count in ("100", "1,000"):
            cells = [best.found[f"{count} {shape}"] for shape in _shapes(found)]
            table.add_row(count, *(f"{x:.0f}" for x in cells))
        out.print(table)
    table = Table("clients", *(f"ε = {e:g}" for e in found.epsilons),
                  title=f"Found from, by ε and number of clients ({best.name})")  # fmt: skip
    for j, size in enumerate(found.sizes):
        table.add_row(f"{size:,}", *(_seen(float(t)) for t in found.thresholds[:, j]))
    out.print(table)
    out.print("As a survey's question:\n")
    out.print(best.toml, markup=False)


def _shapes(found: Plan) -> list[str]:
    return list(dict.fromkeys(name.split(" ", 1)[1] for name in found.populations))


def _seen(threshold: float) -> str:
    return share(threshold) if threshold < 1 else "nothing"
