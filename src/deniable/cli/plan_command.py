"""`deniable plan`: recommend parameters and predict accuracy, before anyone is asked."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from deniable.cli import options
from deniable.cli.options import command
from deniable.cli.output import console, echo, echo_json, print_table, write_result
from deniable.errors import InputError
from deniable.formatting import TextTable, epsilon_text, percent

if TYPE_CHECKING:
    from deniable.results.survey_plan import Plan


@command()
@options.option("--clients", type=options.parse_count, metavar="N")
@options.option("--epsilon", type=float, metavar="NUMBER")
@options.option("--detect", type=options.parse_share, metavar="SHARE")
@options.option(
    "--kind", type=click.Choice(["string", "choice", "boolean", "number"]), default="string"
)
@options.option("--options", type=options.WholeNumber(2), default=4, metavar="COUNT")
@options.flag("--unknown")
@options.option("--candidates", type=options.POSITIVE_INT, default=1000, metavar="COUNT")
@options.option("--max-length", type=options.WholeNumber(1, 255), default=20, metavar="LENGTH")
@options.option("--alphabet", default="a-z0-9._-")
@options.option("--length", type=options.POSITIVE_FLOAT, metavar="LENGTH")
@options.flag("--random")
@options.collect_option
@options.alpha_option
@options.option("--write", "survey_file", type=options.OutputPath(".toml"), metavar="FILE")
@options.flag("--force")
@options.output_option
@options.json_option()
def plan(
    survey_file: Path | None,
    force: bool,
    outputs: tuple[Path, ...],
    as_json: bool,
    **asked: Any,
) -> None:
    """Recommend parameters for a question and predict what it will be able to detect.

    Give two of --clients, --epsilon and --detect; the third is computed.

    Parameters
    ----------
    clients
        Number of clients that will answer.
    epsilon
        Privacy loss ε that the question may use: per report if collected once, in total if
        collected repeatedly.
    detect
        Detection threshold: smallest share of clients to detect, such as 0.001 or 0.1%.
    kind
        Kind of the question.
    options
        Number of options of a choice question, or of bins of a number question.
    unknown
        Nobody lists the strings in advance: deniable discover finds them.
    candidates
        Number of candidate strings that the analyst will list.
    max_length
        Maximum length of unknown strings.
    alphabet
        Characters of unknown strings, or "bytes" for any text.
    length
        Length of a typical unknown string; by default half the maximum.
    random
        Unknown strings have no pattern, like identifiers and unlike words.
    survey_file
        Write a survey file with the recommended parameters to FILE.
    force
        Let --write overwrite a file.

    Examples
    --------
    deniable plan --clients 1000000 --epsilon 4
    deniable plan --clients 1000000 --detect 0.1% --unknown --write survey.toml
    deniable plan --epsilon 1 --detect 0.01 --kind boolean
    deniable plan --clients 1e6 --epsilon 4.4 --unknown --max-length 20 -o plan.svg
    """
    from deniable.planning.recommend import plan as make_plan

    given = [f"--{name}" for name in ("clients", "epsilon", "detect") if asked[name] is not None]
    if len(given) != 2:
        got = " and ".join(given) or "none"
        raise click.UsageError(f"give two of --clients, --epsilon and --detect; got {got}")
    if survey_file is not None and survey_file.exists() and not force:
        raise InputError(
            f"{survey_file} already exists: choose another name, or overwrite with --force"
        )
    planned = make_plan(**asked)
    if as_json:
        echo_json(planned.to_json())
    else:
        _show(planned)
    if survey_file is not None:
        survey_file.write_text(planned.survey_file(survey_file.name), encoding="utf-8")
        echo(f"Wrote {survey_file}. Next: deniable check {survey_file}", err=True)
    write_result(planned, outputs)


def _promise(planned: Plan) -> str:
    """Say what the best design detects."""
    from deniable.planning.in_words import threshold_text

    if not planned.tested:
        return planned.limitation
    share = threshold_text(planned.threshold, planned.clients)
    values = f"A value that {share} of the clients have"
    if share == "none":
        values = "Not even a value that all clients have"
    return (
        f"{values} is detected half of the time; the probability of any false detection is at most "
        f"{planned.alpha:g}."
    )


def _show(planned: Plan) -> None:
    """Print the designs, how many strings they find, and thresholds at other ε and sizes."""
    from deniable.observers import amplified
    from deniable.planning.in_words import (
        WEAK_EPSILON,
        shuffled_meaning,
        threshold_text,
        weak_epsilon,
    )
    from deniable.survey import Survey
    from deniable.survey.detection import NOT_TESTED

    out, once, best = console(), planned.collect == "once", planned.best
    aim = (
        "" if planned.wanted is None else f", to detect what {percent(planned.wanted)} of them have"
    )
    total = "per report" if once else "in total"
    out.print(
        f"[bold]{planned.question}[/]: {planned.clients:,} clients{aim}; ε = "
        f"{epsilon_text(planned.epsilon)} {total}\n"
    )
    names = ["design", "detection threshold", "standard error", "bytes per report", "ε per report"]
    rows = [
        [
            design.name,
            threshold_text(design.threshold, planned.clients),
            percent(design.noise_sd),
            str(design.bytes),
            epsilon_text(design.once),
            *([] if once else [epsilon_text(design.forever)]),
        ]
        for design in planned.designs
    ]
    names += [] if once else ["ε in total"]
    print_table(TextTable(names, rows, title="Designs, best first"), out)
    out.print(f"{_promise(planned)}\n")
    if best.found and planned.tested:
        shapes = list(dict.fromkeys(name.split(" ", 1)[1] for name in planned.populations))
        rows = [
            [count, *(f"{best.found[f'{count} {shape}']:.0f}" for shape in shapes)]
            for count in ("100", "1,000")
        ]
        title = "Strings detected on average, by their number and distribution"
        print_table(TextTable(["strings", *shapes], rows, title=title), out)
    if once:
        shuffled = amplified(Survey.from_toml(planned.survey_file()), planned.clients)
        out.print(shuffled_meaning(shuffled) + "\n", markup=False)
    rows = [
        [f"{size:,}", *(threshold_text(float(t), size) for t in thresholds)]
        for size, thresholds in zip(planned.sizes, planned.thresholds.T, strict=True)
    ]
    names = ["clients", *(f"ε = {epsilon:g}" for epsilon in planned.epsilons)]
    title = f"Detection threshold by ε and number of clients ({best.name})"
    print_table(TextTable(names, rows, title=title), out)
    if planned.tested and any("–" in row for row in rows):
        out.print(f"–: {NOT_TESTED}.\n")
    out.print("The question in a survey file:\n")
    out.print(best.toml, markup=False)

    if planned.epsilon >= WEAK_EPSILON:
        out.print(f"Warning: {weak_epsilon(planned.epsilon, total)}.", style="bold red")
