"""The command's root: its subcommands, its exit codes, and no traceback for a user's mistake.

Exit codes: 0 done; 1 the input has mistakes; 2 the command was called wrongly.
"""

from __future__ import annotations

from typing import Any

import click

import deniable
from deniable.cli.answer import answer
from deniable.cli.check import check
from deniable.cli.compact import compact
from deniable.cli.conformance import conformance
from deniable.cli.export import export
from deniable.cli.import_ import import_
from deniable.cli.keys import keys
from deniable.cli.rappor import rappor
from deniable.cli.report import report
from deniable.cli.send import send
from deniable.cli.serve import serve
from deniable.cli.simulate import simulate
from deniable.cli.store import store
from deniable.errors import DeniableError

COLLECTOR = ("granian", "starlette")


class App(click.Group):
    """A group whose commands report our errors, and the system's, as one message."""

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except (DeniableError, OSError) as error:
            click.echo(f"error: {error}", err=True)
            ctx.exit(1)
        except ModuleNotFoundError as error:
            extra = "collector" if error.name in COLLECTOR else "analysis"
            click.echo(
                f"error: this command needs {error.name}: pip install 'deniable[{extra}]'",
                err=True,
            )
            ctx.exit(1)


@click.group(cls=App, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(deniable.__version__, prog_name="deniable")
def app() -> None:
    """Learn what a crowd says without learning what anyone said."""


for command in (
    check, answer, send, simulate, report, serve, keys, import_, export, compact, store, rappor,
    conformance,
):  # fmt: skip
    app.add_command(command)
