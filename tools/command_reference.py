"""Write the reference of the commands, docs/reference/commands.md.

    python -m tools.command_reference > docs/reference/commands.md

A test compares the page with the output of this program, so that the page always lists every
command and every option.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from inspect import cleandoc

import click

from deniable.cli.app import SECTIONS, app
from deniable.cli.exit_codes import EXIT_CODES

HEAD = """\
# Commands

`deniable COMMAND --help` shows the same text.

* `--json` prints the result, and nothing else, to standard output as JSON.
* `-o FILE` writes the result to a file; the format follows its extension: `.csv` (safe to open in a
  spreadsheet), `.parquet`, `.json` (which `deniable report` and `--candidates` can read), `.png`,
  `.svg` or `.html`.
* Warnings, progress and the names of written files go to standard error. Progress bars are shown
  only on a terminal.

`make reference` generates this page from the commands.
"""
DEFAULT = re.compile(r" *\[default: (.*)\]$")


def page() -> str:
    """Return the whole page."""
    root = click.Context(app, info_name="deniable")
    entries: dict[str, list[tuple[str, click.Command]]] = {}
    for section, names in SECTIONS.items():
        entries[section] = []
        for name in names:
            command = app.get_command(root, name)
            assert command is not None
            entries[section] += commands(f"deniable {name}", command)
    lines = [HEAD, "| Section | Commands |", "| --- | --- |"]
    for section, described in entries.items():
        links = (f"[{path[9:]}](#{path.replace(' ', '-')})" for path, _ in described)
        lines.append(f"| {section} | {', '.join(links)} |")
    for section, described in entries.items():
        lines += ["", f"## {section}"]
        for path, command in described:
            lines += _entry(path, command)
    lines += ["", "## Exit codes", "", "| Code | Meaning |", "| --- | --- |"]
    lines += [f"| {code} | {text} |" for code, text in EXIT_CODES.items()]
    return "\n".join(lines) + "\n"


def commands(path: str, command: click.Command) -> Iterator[tuple[str, click.Command]]:
    """Yield a command and the subcommands of a group, each with the words that call it."""
    yield path, command
    if isinstance(command, click.Group):
        for name, inner in command.commands.items():
            yield from commands(f"{path} {name}", inner)


def _entry(path: str, command: click.Command) -> list[str]:
    """Return the lines about one command: usage, description, options, examples (not run)."""
    usage = " ".join(command.collect_usage_pieces(click.Context(command, info_name=path)))
    about = cleandoc((command.help or "").replace("\b\n", ""))
    lines = ["", f"### {path}", "", "```text", f"{path} {usage}", "```", "", about]
    options = [p for p in command.params if isinstance(p, click.Option) and not p.hidden]
    if options:
        lines += ["", "| Option | Default | Description |", "| --- | --- | --- |"]
        lines += map(_row, options)
    _, _, examples = (command.epilog or "").replace("\b\n", "").strip().partition(":")
    title = "Examples:" if examples.count("deniable ") > 1 else "Example:"
    return [*lines, "", title, "", "```bash", *cleandoc(examples).split("\n"), "```"]


def _row(option: click.Option) -> str:
    """Return one row of the table of options."""
    names = ", ".join(f"`{name}`" for name in (*option.opts, *option.secondary_opts))
    if not option.is_flag:
        names += f" {_value(option)}"
    text = " ".join((option.help or "").split()).replace("|", "\\|")
    stated = DEFAULT.search(text)
    default = ""
    if option.required:
        default = "required"
    elif stated:
        default, text = stated[1], text[: stated.start()]
    elif isinstance(option.show_default, str):
        default = option.show_default
    elif option.show_default and not option.is_flag and option.default is not None:
        default = str(option.default)
    shown = f"`{default}`" if default and default != "required" else default
    return f"| {names} | {shown} | {text} |"


def _value(option: click.Option) -> str:
    """Return what the value of an option looks like."""
    if isinstance(option.type, click.Choice):
        return " \\| ".join(f"`{choice}`" for choice in option.type.choices)
    return option.metavar or option.type.name.upper().replace(" RANGE", "")


if __name__ == "__main__":
    click.echo(page(), nl=False)
