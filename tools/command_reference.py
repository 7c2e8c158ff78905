"""docs/reference/commands.md, made from the commands themselves.

    python -m tools.command_reference > docs/reference/commands.md

A test compares the page with what this prints, so that no command or option goes undocumented.
"""

from __future__ import annotations

from collections.abc import Iterator
from inspect import cleandoc

import click

from deniable.cli.app import SECTIONS, app
from deniable.cli.exit_codes import EXIT_CODES

HEAD = """\
# Commands

`deniable COMMAND --help` says the same. `--json` prints a result as JSON on standard output, and
nothing else there; progress, warnings and what was written go to standard error, and bars only to a
terminal. `-o FILE` writes a result in the form that the file's ending names: `.csv` (safe to open
in a spreadsheet), `.parquet`, `.json` (which `report` and `--candidates` read back), `.png`,
`.svg`, `.html`.

This page is made from the commands by `make reference`.

## Exit codes

| code | meaning |
| --- | --- |
"""


def page() -> str:
    """The whole page."""
    lines = [HEAD + "\n".join(f"| {code} | {text} |" for code, text in EXIT_CODES.items())]
    root = click.Context(app, info_name="deniable")
    for section, names in SECTIONS.items():
        lines.append(f"\n## {section}")
        for name in names:
            command = app.get_command(root, name)
            assert command is not None
            for path, each in commands(f"deniable {name}", command):
                lines += _described(path, each)
    return "\n".join(lines) + "\n"


def commands(path: str, command: click.Command) -> Iterator[tuple[str, click.Command]]:
    """The command, and those of a group, each with what one types."""
    yield path, command
    if isinstance(command, click.Group):
        for name, inner in command.commands.items():
            yield from commands(f"{path} {name}", inner)


def _described(path: str, command: click.Command) -> list[str]:
    about = cleandoc((command.help or "").replace("\b\n", ""))
    usage = " ".join(command.collect_usage_pieces(click.Context(command, info_name=path)))
    lines = ["", f"### {path}", "", about, "", "```text", f"{path} {usage}", "```"]
    options = [p for p in command.params if isinstance(p, click.Option) and not p.hidden]
    if options:
        lines += ["", "| option | meaning |", "| --- | --- |", *map(_row, options)]
    example = (command.epilog or "").replace("\b\n", "").strip()
    if example:
        _, _, body = example.partition(":")
        lines += ["", "```bash", *cleandoc(body).split("\n"), "```"]
    return lines


def _row(option: click.Option) -> str:
    names = ", ".join(f"`{name}`" for name in (*option.opts, *option.secondary_opts))
    if not option.is_flag:
        names += f" {_takes(option)}"
    help_text = (option.help or "").strip()
    if option.required:
        help_text += " Required."
    if isinstance(option.show_default, str):
        help_text += f" [{option.show_default}]"
    elif option.show_default and not option.is_flag and option.default is not None:
        help_text += f" [{option.default}]"
    return f"| {names} | {help_text.replace('|', chr(92) + '|').strip()} |"


def _takes(option: click.Option) -> str:
    if isinstance(option.type, click.Choice):
        return " \\| ".join(map(str, option.type.choices))
    return option.metavar or option.type.name.upper().replace(" RANGE", "")


if __name__ == "__main__":
    click.echo(page(), nl=False)
