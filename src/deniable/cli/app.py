"""The root command: its sections, its exit codes, and one message instead of a traceback.

The module of a command is imported when the command is used.
"""

from __future__ import annotations

import os
import warnings
from importlib import import_module
from keyword import iskeyword
from typing import Any

import click

from deniable.cli.exit_codes import ERROR, INTERRUPTED, REFUSED, UNAVAILABLE
from deniable.cli.suggesting_group import SuggestingGroup
from deniable.errors import (
    BudgetExceeded,
    DeniableError,
    LedgerError,
    SecretError,
    StoreUnavailable,
    SurveyExpired,
    SurveyRefused,
)
from deniable.extras import missing_package
from deniable.version import __version__

SECTIONS = {
    "Design a survey": {
        "init": ("cli.init_command", "Write a first survey file, with comments."),
        "plan": ("cli.plan_command", "Recommend parameters, predict what can be detected."),
        "check": ("cli.check_command", "Validate a survey, show its privacy and accuracy."),
        "simulate": ("cli.simulate_command", "Simulate the reports of a crowd."),
    },
    "Answer a survey": {
        "answer": ("cli.client_commands", "Answer a survey and queue the report."),
        "send": ("cli.client_commands", "Send queued reports to a collector."),
        "ledger": ("cli.client_commands", "Show how much ε a device has spent."),
    },
    "Collect reports": {
        "serve": ("cli.collector_commands", "Collect reports over HTTP."),
        "keys": ("cli.collector_commands", "Manage the access keys of a collector."),
        "store": ("cli.store_commands", "Inspect, check, copy and clean up a store."),
        "import": ("cli.store_commands", "Add the reports in files or stores to a store."),
        "export": ("cli.store_commands", "Write the reports of a survey to a file."),
        "compact": ("cli.store_commands", "Shuffle uploads, so that none can be traced."),
    },
    "Analyse reports": {
        "decode": ("cli.analysis_commands", "Estimate how common each value is."),
        "associate": ("cli.analysis_commands", "Estimate the joint distribution of questions."),
        "discover": ("cli.analysis_commands", "Find strings that nobody listed in advance."),
        "count": ("cli.analysis_commands", "Count pairs of bits of two questions, for associate."),
        "report": ("cli.report_command", "Make a self-contained HTML page from saved results."),
    },
    "Other commands": {
        "rappor": ("rappor.commands", "Move from google/rappor: import its reports."),
        "conformance": ("cli.conformance_command", "Test a client against the test vectors."),
        "completion": ("cli.app", "Print a shell completion script."),
    },
}
"""Sections of the help: their commands, each with its module and a summary of one line.

The summaries stand here so that `deniable --help` need not import every command.
"""
MODULES = {name: entry[0] for section in SECTIONS.values() for name, entry in section.items()}
REFUSALS = (BudgetExceeded, SurveyRefused, SurveyExpired, SecretError, LedgerError)


class App(SuggestingGroup):
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

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the list of commands, section by section."""
        for section, commands in SECTIONS.items():
            with formatter.section(section):
                formatter.write_dl([(name, summary) for name, (_, summary) in commands.items()])

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command that is called; warn of variables that are not settings."""
        found = super().resolve_command(ctx, args)
        # `serve` refuses them: a collector must not run for months with a setting that is ignored.
        if found[0] != "serve" and any(name.startswith("DENIABLE_") for name in os.environ):
            from deniable.collector.settings import unknown_variables

            for sentence in unknown_variables():
                warnings.warn(sentence, stacklevel=2)
        return found

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
        except ModuleNotFoundError as error:
            collects = ctx.invoked_subcommand in SECTIONS["Collect reports"]
            missing = missing_package(error, "this command", "collector" if collects else "")
            if missing is None:
                raise
            _exit(ctx, f"error: {missing}", ERROR)
        except DeniableError as error:
            _exit(ctx, f"error: {error}", ERROR)
        except OSError as error:
            _exit(ctx, f"error: {_describe(error)}", ERROR)
        except MemoryError as error:
            _exit(ctx, f"error: not enough memory. {error}".strip(), ERROR)
        except KeyboardInterrupt:
            _exit(ctx, "interrupted", INTERRUPTED)
        except click.Abort as error:
            _exit(ctx, *_aborted(error))
        except click.UsageError as error:  # click prints it, after the usage of the command
            from deniable.formatting import printable

            raise click.UsageError(printable(error.format_message()), error.ctx) from None


def _describe(error: OSError) -> str:
    """Return what is wrong with which file, without the number of the error."""
    if error.filename is None or error.strerror is None:
        return error.strerror or str(error)
    if isinstance(error, FileNotFoundError):
        return f"there is no file or folder {error.filename}: check its name and its folder"
    return f"cannot use {error.filename}: {error.strerror}"


def _aborted(error: click.Abort) -> tuple[str, int]:
    """Return why a question of a command was not answered, and the exit code."""
    if isinstance(error.__context__, KeyboardInterrupt):
        return "interrupted", INTERRUPTED
    if isinstance(error.__context__, EOFError):
        return "error: the input ended before the question was answered", ERROR
    return "error: not confirmed, so nothing was changed", ERROR


def _exit(ctx: click.Context, message: str, code: int) -> None:
    _print_error(message)
    ctx.exit(code)


def _print_warning(message: Warning | str, *_: object, **__: object) -> None:
    _print_error(f"warning: {message}")


def _print_error(text: str) -> None:
    from deniable.cli.output import echo

    echo(text, err=True)


@click.group(cls=App, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="deniable")
def app() -> None:
    """Collect statistics under local differential privacy.

    Every client adds noise to its answers before it sends them, so that nobody learns what one
    person answered. The commands below design a survey, answer it, collect the noisy reports, and
    estimate what the crowd answered, including strings that nobody listed in advance.
    """


@click.command(
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
