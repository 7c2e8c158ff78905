"""The root command: its sections, its exit codes, and one message instead of a traceback.

The module of a command is imported when the command is used.
"""

from __future__ import annotations

import warnings
from importlib import import_module
from keyword import iskeyword
from typing import Any

import click

from deniable.cli.exit_codes import ERROR, INTERRUPTED, REFUSED, UNAVAILABLE
from deniable.errors import (
    BudgetExceeded,
    DeniableError,
    LedgerError,
    SecretError,
    StoreUnavailable,
    SurveyExpired,
    did_you_mean,
)
from deniable.version import __version__

SECTIONS = {
    "Design a survey": {
        "init": "cli.init_command",
        "plan": "cli.plan_command",
        "check": "cli.check_command",
        "simulate": "cli.simulate_command",
    },
    "Answer a survey": dict.fromkeys(("answer", "send"), "cli.client_commands"),
    "Collect reports": {
        **dict.fromkeys(("serve", "keys"), "cli.collector_commands"),
        **dict.fromkeys(("store", "import", "export", "compact"), "cli.store_commands"),
    },
    "Analyse reports": {
        **dict.fromkeys(("decode", "associate", "discover", "count"), "cli.analysis_commands"),
        "report": "cli.report_command",
    },
    "Other commands": {
        "reproduce": "cli.reproduce_command",
        "rappor": "rappor.commands",
        "conformance": "cli.conformance_command",
        "completion": "cli.app",
    },
}
"""Sections of the help: their commands, each with the module that defines it."""
MODULES = {name: module for section in SECTIONS.values() for name, module in section.items()}
REFUSALS = (BudgetExceeded, SurveyExpired, SecretError, LedgerError)
EXTRAS = {
    "granian": "collector",
    "matplotlib": "plots",
    "psycopg": "postgres",
    "starlette": "collector",
}
"""Packages that are not part of the `analysis` extra, each with the extra that installs it."""


class App(click.Group):
    """Commands by section; an error becomes one message and an exit code."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of all commands, section by section."""
        return list(MODULES)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import and return a command, or None if there is none of this name."""
        if cmd_name not in MODULES:
            return None
        module = import_module(f"deniable.{MODULES[cmd_name]}")
        command = getattr(module, cmd_name + "_" * iskeyword(cmd_name))
        assert isinstance(command, click.Command)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command that is called; suggest a name if there is no such command."""
        known = ctx.resilient_parsing or not args or args[0].startswith("-")
        if not known and self.get_command(ctx, args[0]) is None:
            hint = did_you_mean(args[0], MODULES) or " See deniable --help."
            ctx.fail(f"there is no command {args[0]!r}.{hint}")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the list of commands, section by section."""
        for section, names in SECTIONS.items():
            commands = [(name, self.get_command(ctx, name)) for name in names]
            with formatter.section(section):
                formatter.write_dl(
                    [(name, c.get_short_help_str(limit=70)) for name, c in commands if c]
                )

    def invoke(self, ctx: click.Context) -> Any:
        """Run a command; print one message for an error that the user can mend."""
        try:
            with warnings.catch_warnings():
                warnings.showwarning = _print_warning
                return super().invoke(ctx)
        except BrokenPipeError:
            raise  # the reader of our output has closed it; click exits quietly
        except REFUSALS as error:
            _exit(ctx, f"refused: {error}", REFUSED)
        except StoreUnavailable as error:
            _exit(ctx, f"error: {error}", UNAVAILABLE)
        except (DeniableError, OSError) as error:
            _exit(ctx, f"error: {error}", ERROR)
        except ModuleNotFoundError as error:
            extra = EXTRAS.get(error.name or "", "analysis")
            text = f"this command needs {error.name}: pip install 'deniable[{extra}]'"
            _exit(ctx, f"error: {text}", ERROR)
        except KeyboardInterrupt:
            _exit(ctx, "interrupted", INTERRUPTED)


def _exit(ctx: click.Context, message: str, code: int) -> None:
    click.echo(message, err=True)
    ctx.exit(code)


def _print_warning(message: Warning | str, *_: object, **__: object) -> None:
    click.echo(f"warning: {message}", err=True)


@click.group(cls=App, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="deniable")
def app() -> None:
    """Collect statistics under local differential privacy.

    Every client adds noise to its answers before it sends them, so that nobody learns what one
    person answered. The commands below design a survey, answer it, collect the noisy reports, and
    estimate what the crowd answered, including strings that nobody listed in advance.
    """


@click.command(
    short_help="Print a shell completion script.",
    epilog="\b\nExamples:\n"
    "  deniable completion bash >> ~/.bashrc\n"
    "  deniable completion zsh >> ~/.zshrc\n"
    "  deniable completion fish > ~/.config/fish/completions/deniable.fish",
)
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion(shell: str) -> None:
    """Print a script with which your shell completes commands, options and file names."""
    from click.shell_completion import get_completion_class

    completer = get_completion_class(shell)
    assert completer is not None
    root = click.get_current_context().find_root()
    click.echo(completer(root.command, {}, "deniable", "_DENIABLE_COMPLETE").source())
