"""`deniable discover`: strings that nobody listed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from deniable.cli import options
from deniable.cli.documented import command
from deniable.cli.learn.analysis_run import AnalysisRun, run_options, source_arguments
from deniable.cli.learn.string_lists import read_words
from deniable.cli.surveys import question_of


@command()
@source_arguments
@options.option("--question", shell_complete=options.question_names)
@options.option("--accept", metavar="REGEX")
@options.alpha_option
@options.option("--reading", type=click.Choice(["fused", "paper"]))
@options.option("--delta", type=options.POSITIVE)
@options.option("--words", type=options.EXISTING_FILE)
@options.flag("--stages")
@run_options
def discover(question: str | None, words: Path | None, stages: bool, **given: Any) -> None:
    r"""Find strings that clients reported and nobody listed.

    SURVEY is a file, or a survey's name in a store. REPORTS are files (.parquet, .arrow, .dn),
    folders of such, or a store (sqlite:///FILE.db, FILE.db, a folder, postgresql://…). The
    question must have been asked with a dictionary.

    Parameters
    ----------
    question : Which; needed if several are asked with a dictionary.
    accept : Only strings that match as a whole; others are neither tested nor paid for.
    reading : Of n-grams: ours (fused, the default), or the paper's.
    delta : Pair threshold of the paper's reading.
    words : Of prefixes: strings that may be held and words they may be made of, a line each, a CSV
        of value,weight, or what discover found in earlier reports. They need not be there.
    stages : Also show what each step kept and dropped.

    Examples
    --------
    deniable discover survey.toml reports.parquet -o found.csv -o found.png
    deniable discover survey.json sqlite:///reports.db --question homepage --since 2027-01-01
    deniable discover survey.toml reports.parquet --accept '[a-z0-9-]+\.(com|org)' --words words.txt
    """
    from deniable.discovery import discover as verb
    from deniable.render.view import NoteOptions

    settings = {name: given.pop(name) for name in ("accept", "alpha", "reading", "delta")}
    settings["words"] = read_words(words) if words else {}
    run = AnalysisRun(**given)
    asked = [q.name for q in run.survey.questions if q.protocol.name in ("ngrams", "prefixes")]
    name = asked[0] if question is None and len(asked) == 1 else question_of(run.survey, question)
    run.perform(
        lambda reports, executor: verb(run.survey, reports, name, executor=executor, **settings),
        notes=NoteOptions(stages=stages),
    )
