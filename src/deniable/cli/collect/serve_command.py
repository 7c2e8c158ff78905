"""`deniable serve`: collect reports over HTTP."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from deniable.cli import options
from deniable.cli.documented import command


def with_settings(command: options.Command) -> options.Command:
    """One option for each setting; what is not given stays with the environment or the file."""
    from dataclasses import fields

    from deniable.collector.settings import Settings

    for item in reversed(fields(Settings)):
        if item.name == "surveys":
            continue
        name = "--" + item.name.replace("_", "-")
        shown = item.metadata["help"] + (f" [{item.default}]" if item.default else "")
        settings: dict[str, Any] = {"type": type(item.default)}
        if isinstance(item.default, bool):
            settings = {"is_flag": True, "default": None}
        command = click.option(name, help=shown, **settings)(command)
    return command


@command(short_help="Collect reports over HTTP.")
@click.argument("surveys", nargs=-1, type=click.Path(exists=True, dir_okay=False))
@options.option("--config", type=options.EXISTING_FILE)
@with_settings
def serve(surveys: tuple[str, ...], config: Path | None, **flags: Any) -> None:
    """Collect reports of the SURVEYS over HTTP, until told to stop (SIGTERM).

    Parameters
    ----------
    config : TOML file of these settings, max_body = 1000000; the environment (DENIABLE_MAX_BODY)
        and flags come first.

    Examples
    --------
    deniable serve survey.json --store sqlite:///reports.db
    deniable serve v1.json v2.json --store postgresql:///reports --keys keys.json --require-key
    DENIABLE_PORT=80 deniable serve --config collector.toml
    """
    from deniable.collector.server import run
    from deniable.collector.settings import Settings

    given = {name: value for name, value in flags.items() if value is not None}
    if surveys:
        given["surveys"] = surveys
    run(Settings.load(given, file=config))
