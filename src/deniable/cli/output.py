"""What every command prints and writes."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click


class OutputPath(click.Path):
    """A file to write, its form chosen by its ending."""

    def __init__(self, suffixes: tuple[str, ...]) -> None:
        super().__init__(dir_okay=False, writable=True, path_type=Path)
        self.suffixes = suffixes

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
