"""The command's root: its subcommands, its exit codes, and no traceback for a user's mistake.

Each command is a module of its own in the folder of its section, imported when it is asked for.
"""

from __future__ import annotations

import warnings
from difflib import get_close_matches
from importlib import import_module
from keyword import iskeyword
from typing import Any

import click

from deniable.cli.codes import INTERRUPTED, LATER, MISTAKE, REFUSED
from deniable.errors import (
    BudgetExceeded,
    DeniableError,
    LedgerError,
    SecretError,
    StoreUnavailable,
    SurveyExpired,
)
from deniable.version import __version__

SECTIONS = {
    "Ask": ("init", "plan", "check", "simulate"),
    "Answer": ("answer", "send"),
    "Collect": ("serve", "keys", "store", "import", "export", "compact"),
    "Learn": ("decode", "associate", "discover", "count", "report"),
    "More": ("reproduce", "rappor", "conformance", "completion"),
}
REFUSALS = (BudgetExceeded, SurveyExpired, SecretError, LedgerError)
EXTRAS = {
    "granian": "collector",
    "matplotlib": "plots",
    "psycopg": "postgres",
    "starlette": "collector",
}


class App(click.Group):
    """Commands by section, imported late, whose errors are one message and an exit code."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return [name for names in SECTIONS.values() for name in names]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in self.list_commands(ctx):
            return None
        function = cmd_name + "_" * iskeyword(cmd_name)
        found = getattr(import_module(_module_of(cmd_name)), function)
        assert isinstance(found, click.Command)
        return found

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        known = ctx.resilient_parsing or not args or args[0].startswith("-")
        if not known and self.get_command(ctx, args[0]) is None:
            close = get_close_matches(args[0], self.list_commands(ctx), 1)
            hint = f" Did you mean {close[0]}?" if close else " See deniable --help."
            ctx.fail(f"there is no command {args[0]!r}.{hint}")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        for section, names in SECTIONS.items():
            commands = [(name, self.get_command(ctx, name)) for name in names]
            with formatter.section(section):
                formatter.write_dl(
                    [(name, c.get_short_help_str(limit=70)) for name, c in commands if c]
                )

    def invoke(self, ctx: click.Context) -> Any:
        try:
            with warnings.catch_warnings():
                warnings.showwarning = _warn
                return super().invoke(ctx)
        except BrokenPipeError:
            raise  # whoever read our output has seen enough; click ends quietly
        except REFUSALS as error:
            _end(ctx, f"refused: {error}", REFUSED)
        except StoreUnavailable as error:
            _end(ctx, f"error: {error}", LATER)
        except (DeniableError, OSError) as error:
            _end(ctx, f"error: {error}", MISTAKE)
        except ModuleNotFoundError as error:
            extra = EXTRAS.get(error.name or "", "analysis")
            text = f"this command needs {error.name}: pip install 'deniable[{extra}]'"
            _end(ctx, f"error: {text}", MISTAKE)
        except KeyboardInterrupt:
            _end(ctx, "interrupted", INTERRUPTED)


def _module_of(name: str) -> str:
    """Return the module that holds this command."""
    if name == "rappor":
        return "deniable.rappor.commands"
    section = next(section for section, names in SECTIONS.items() if name in names)
    return f"deniable.cli.{section.lower()}.{name}_command"


def _end(ctx: click.Context, message: str, code: int) -> None:
    click.echo(message, err=True)
    ctx.exit(code)


def _warn(message: Warning | str, *_: object, **__: object) -> None:
    click.echo(f"warning: {message}", err=True)


@click.group(cls=App, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="deniable")
def app() -> None:
    """Learn what a crowd says without learning what anyone said."""
