"""Commands that are described once, in their docstrings.

The help of a command is the beginning of its docstring. The help of its options stands under
`Parameters`, a line "name : text" each, and its examples under `Examples`, as in any docstring of
this package. An option that is shared by several commands brings its own help.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from inspect import cleandoc
from typing import Any

import click

SECTION = re.compile(r"\n\n(Parameters|Examples)\n-+\n")


def command(
    *names: str, make: Callable[..., Any] = click.command, note: str = "", **settings: Any
) -> Callable[[Callable[..., None]], Any]:
    """Return a decorator that makes a command of a function.

    make : click.command, click.group, or the `command` of a group; note : ends the help;
    settings : others of click's
    """

    def decorate(function: Callable[..., None]) -> Any:
        about, *sections = SECTION.split(cleandoc(function.__doc__ or ""))
        parts = dict(zip(sections[::2], sections[1::2], strict=True))
        text = f"{about}\n\n{note}" if note else about
        epilog = _epilog(parts.get("Examples", ""))
        made: click.Command = make(*names, help=text, epilog=epilog, **settings)(function)
        helps = _entries(parts.get("Parameters", ""))
        for parameter in made.params:
            if isinstance(parameter, click.Option) and parameter.help is None:
                parameter.help = helps.pop(str(parameter.name))
        if helps:
            raise TypeError(f"{made.name} has no option {', '.join(helps)}")
        return made

    return decorate


def _entries(text: str) -> dict[str, str]:
    """Return the entries "name : text" of a section; further lines of a text are indented."""
    lines = re.sub(r"\n +", " ", text).splitlines()
    return {name: help for name, _, help in (line.partition(" : ") for line in lines)}


def _epilog(examples: str) -> str:
    """Return the examples as they stand below the help."""
    if "\n" not in examples:
        return f"Example: {examples}"
    return "\b\nExamples:\n" + "".join(f"  {line}\n" for line in examples.splitlines())
