"""What every command prints and writes: one way for all.

A command's result is a `results.Result`, or plain data where there is no such noun. `--json` prints
it as JSON, else it is a table. `-o` writes it in the form that the file's ending names: `WRITERS`
has one function of (result, path, survey or None) for each.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from rich.console import Console

    from deniable.results import Result
    from deniable.survey import Survey


class OutputPath(click.Path):
    """A file to write, its form chosen by its ending."""

    def __init__(self, suffixes: Sequence[str]) -> None:
        super().__init__(dir_okay=False, writable=True, path_type=Path)
        self.suffixes = tuple(suffixes)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        path = Path(str(super().convert(value, param, ctx)))
        if path.suffix not in self.suffixes:
            self.fail(f"expected a file ending in {', '.join(self.suffixes)}, got {path}")
        if not path.parent.is_dir():
            self.fail(f"there is no folder {path.parent}")
        return path


def say(data: Mapping[str, Any], text: str, as_json: bool) -> None:
    """The result of a command: JSON if asked for, else a line for people."""
    click.echo(json.dumps(data, indent=2) if as_json else text)


def printable(text: str) -> str:
    """Text that cannot steer a terminal: decoded strings are whatever some client sent."""
    return "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text)


def console() -> Console:
    """Standard output, wide enough for any table where it is not a terminal."""
    from rich.console import Console

    return Console(highlight=False, width=None if sys.stdout.isatty() else 200)


def finished(
    result: Result,
    paths: Sequence[Path],
    as_json: bool,
    survey: Survey | None = None,
    notes: Callable[[Any], Sequence[str]] = lambda _: (),
) -> None:
    """Print the result of an analysis, and write it to the files; notes : what a table cannot say,
    from a result that is no trend."""
    if as_json:
        click.echo(result.to_json())
    else:
        from deniable.cli.tables import show

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

    figure = result.plot().get_figure()
    assert figure is not None
    dated = {"Date": None} if path.suffix == ".svg" else {}
    figure.savefig(path, dpi=150, metadata=dated)  # type: ignore[union-attr]
    plt.close(figure)  # type: ignore[arg-type]


def _html(result: Result, path: Path, survey: Survey | None) -> None:
    from deniable.render.html import report

    path.write_text(report([result], survey=survey), encoding="utf-8")


WRITERS: dict[str, Callable[[Result, Path, Survey | None], None]] = {
    ".csv": _csv, ".parquet": _parquet, ".json": _json, ".png": _picture, ".svg": _picture,
    ".html": _html,
}  # fmt: skip
