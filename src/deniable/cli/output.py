"""What commands print and write: outcomes, tables, progress bars, and files of results.

`--json` prints a result or an outcome as JSON; otherwise people get a table or a sentence. `-o`
writes a result in the format that the extension of the file names.

Names in files, cells and decoded strings may be hostile: an escape sequence in them could change
what a terminal shows. All that commands print therefore passes through `echo`, `echo_json`
or `console`, which let no control character through.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from deniable.compute.progress import listening
from deniable.formatting import TextTable, printable, visible

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, ConsoleRenderable
    from rich.progress import Progress, TaskID
    from rich.segment import Segment

    from deniable.results import Result
    from deniable.survey import Survey

T = TypeVar("T")
PIPE_WIDTH = 200
"""Columns of text where standard output is not a terminal: enough for any table."""


# --- on standard output --------------------------------------------------------------------------


def echo(text: str, *, err: bool = False) -> None:
    """Print text on standard output or standard error, without control characters."""
    click.echo(printable(text), err=err)


def echo_json(text: str) -> None:
    """Print JSON; characters that could control a terminal are escaped, which keeps its meaning."""
    click.echo("".join(c if c.isprintable() or c == "\n" else json.dumps(c)[1:-1] for c in text))


def print_outcome(data: Mapping[str, object], text: str, as_json: bool) -> None:
    """Print what a command did: its data as JSON, or a sentence for people."""
    if as_json:
        echo_json(json.dumps(data, indent=2))
    else:
        echo(text)


def console() -> Console:
    """Return standard output; text that it prints has no control characters."""
    from rich.console import Console

    out = Console(highlight=False, width=None if sys.stdout.isatty() else PIPE_WIDTH)
    out.push_render_hook(_PrintableText())  # type: ignore[arg-type]  # its base would load rich
    return out


class _PrintableText:
    """Replaces control characters in all text of a console; colours are added afterwards."""

    def process_renderables(self, renderables: Sequence[ConsoleRenderable]) -> list[_Printable]:
        return [_Printable(item) for item in renderables]


@dataclass(frozen=True)
class _Printable:
    """Something to print, with printable text."""

    item: ConsoleRenderable

    def __rich_console__(self, out: Console, options: ConsoleOptions) -> Iterator[Segment]:
        for segment in out.render(self.item, options):
            # A control segment is one of rich itself, such as a movement of the cursor.
            text = segment.text if segment.control else printable(segment.text)
            yield segment._replace(text=text)


def print_result(result: Result, as_json: bool, **notes: Any) -> None:
    """Print a result as JSON, or its heading, its table, and these notes of its view."""
    from deniable.render.view import view_of
    from deniable.results.base import TEST_DATA_NOTE
    from deniable.results.fit_check import SUSPICIOUS

    if as_json:
        echo_json(result.to_json())
        if result.warning:
            echo(result.warning, err=True)
        return
    view, out = view_of(result), console()
    table, notes_below = view.table(), view.notes(**notes)
    if result.limitation:
        notes_below.insert(0, f"Warning: {result.limitation}")
    if table.left_out:
        notes_below.insert(0, f"… and {table.left_out:,} more rows; -o FILE.csv writes all of them")
    if result.is_test_data:
        out.print(TEST_DATA_NOTE, style="bold", markup=False)
    if result.warning:
        out.print(visible(result.warning), style="bold", markup=False, soft_wrap=True)
    out.print(visible(result.heading()), markup=False, soft_wrap=True)
    if table.rows:
        print_table(table, out)
    for note in notes_below:
        out.print(visible(note), markup=False, soft_wrap=True)
    if result.warning:
        out.print(f"{SUSPICIOUS}: see the warning above.", style="bold", markup=False)


def print_table(table: TextTable, out: Console) -> None:
    """Print a table with lines around it."""
    from rich.table import Table
    from rich.text import Text

    drawn = Table(title=table.title or None)
    for name, right in zip(table.names, table.right or [False] * len(table.names), strict=True):
        drawn.add_column(Text(visible(name)), justify="right" if right else "left")
    for row in table.rows:
        drawn.add_row(*(Text(visible(text)) for text in row))
    out.print(drawn)


# --- progress on standard error, if that is a terminal -------------------------------------------


def track(items: Iterable[T], total: int, label: str, size: Callable[[T], int]) -> Iterator[T]:
    """Yield the items while a bar advances by the size of each."""
    with _progress() as bars:
        task = bars.add_task(label, total=total)
        for item in items:
            yield item
            bars.advance(task, size(item))


@contextmanager
def progress_bars() -> Iterator[None]:
    """Show one bar per stage of the work inside; they disappear when it ends."""
    with _progress() as bars:
        tasks: dict[str, TaskID] = {}

        def listen(stage: str, done: float) -> None:
            if stage not in tasks:
                for task in tasks.values():
                    bars.update(task, completed=1.0)
                tasks[stage] = bars.add_task(stage, total=1.0)
            bars.update(tasks[stage], completed=done)

        with listening(listen):
            yield


def _progress() -> Progress:
    from rich.console import Console
    from rich.progress import Progress, SpinnerColumn, TimeElapsedColumn, TimeRemainingColumn

    console = Console(stderr=True)
    columns = [SpinnerColumn(), *Progress.get_default_columns()[:-1]]
    columns += [TimeRemainingColumn(), TimeElapsedColumn()]
    return Progress(*columns, console=console, disable=not console.is_terminal, transient=True)


# --- to files ------------------------------------------------------------------------------------


def write_result(result: Result, paths: Sequence[Path], survey: Survey | None = None) -> None:
    """Write a result to each file, in the format of its extension; name the files on stderr."""
    for path in paths:
        if path.suffix == ".csv":
            from deniable.columns.spreadsheet import write_rows

            columns = result.columns()
            write_rows(path, [list(columns), *map(list, zip(*columns.values(), strict=True))])
        elif path.suffix == ".parquet":
            import pyarrow.parquet as pq

            pq.write_table(result.to_arrow(), path)
        elif path.suffix == ".json":
            result.save(path)
        elif path.suffix == ".html":
            from deniable.render.html import report

            path.write_text(report([result], survey=survey), encoding="utf-8")
        else:
            _write_figure(result, path)
        echo(f"Wrote {path}.", err=True)


def _write_figure(result: Result, path: Path) -> None:
    import matplotlib

    matplotlib.use("Agg")  # draws without a display
    from matplotlib import pyplot as plt

    figure = result.plot().get_figure(root=True)
    assert figure is not None
    metadata = {"Date": None} if path.suffix == ".svg" else {}
    figure.savefig(path, dpi=150, metadata=metadata, bbox_inches="tight")
    plt.close(figure)
