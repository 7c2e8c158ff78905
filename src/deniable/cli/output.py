"""What every command prints and writes: one way for all.

A command's result is a `results.Result`, or plain data where there is no such noun. `--json` prints
it as JSON, else it is a table. `-o` writes it in the form that the file's ending names: `WRITERS`
has one function of (result, path, survey or None) for each.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from deniable.render.view import NoteOptions
    from deniable.results import Result
    from deniable.survey import Survey


def say(data: Mapping[str, object], text: str, as_json: bool) -> None:
    """Print what a command did: as JSON if asked for, else as a line for people."""
    click.echo(json.dumps(data, indent=2) if as_json else text)


def finished(
    result: Result,
    paths: Sequence[Path],
    as_json: bool,
    survey: Survey | None,
    notes: NoteOptions | None = None,
) -> None:
    """Print the result of an analysis and write it to the files."""
    from deniable.cli.tables import show

    if as_json:
        click.echo(result.to_json())
    else:
        show(result, notes)
    written(result, paths, survey)


def written(result: Result, paths: Sequence[Path], survey: Survey | None = None) -> None:
    """Write the result to each of the files, and say so."""
    for path in paths:
        WRITERS[path.suffix](result, path, survey)
        click.echo(f"written: {path}", err=True)


# --- by ending -----------------------------------------------------------------------------------


def _csv(result: Result, path: Path, survey: Survey | None) -> None:
    from deniable.columns.spreadsheet import write_rows

    columns = result.columns()
    write_rows(path, [list(columns), *map(list, zip(*columns.values(), strict=True))])


def _parquet(result: Result, path: Path, survey: Survey | None) -> None:
    import pyarrow.parquet as pq

    pq.write_table(result.to_arrow(), path)


def _json(result: Result, path: Path, survey: Survey | None) -> None:
    result.save(path)


def _picture(result: Result, path: Path, survey: Survey | None) -> None:
    import matplotlib

    matplotlib.use("Agg")  # draws without a screen
    from matplotlib import pyplot as plt

    figure = result.plot().get_figure(root=True)
    assert figure is not None
    dated = {"Date": None} if path.suffix == ".svg" else {}
    figure.savefig(path, dpi=150, metadata=dated)
    plt.close(figure)


def _html(result: Result, path: Path, survey: Survey | None) -> None:
    from deniable.render.html import report

    path.write_text(report([result], survey=survey), encoding="utf-8")


WRITERS: dict[str, Callable[[Result, Path, Survey | None], None]] = {
    ".csv": _csv,
    ".parquet": _parquet,
    ".json": _json,
    ".png": _picture,
    ".svg": _picture,
    ".html": _html,
}
