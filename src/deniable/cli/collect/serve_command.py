"""`deniable serve`: collect reports over HTTP."""

from __future__ import annotations

from typing import Any

import click

EXAMPLE = """\b
Examples:
  deniable serve survey.json --store sqlite:///reports.db
  deniable serve v1.json v2.json --store postgresql:///reports --keys keys.json --require-key
  DENIABLE_PORT=80 deniable serve --config collector.toml
"""


def with_settings(command: Any) -> Any:
    """One option for each setting; what is not given stays with the environment or the file."""
    from dataclasses import fields

    from deniable.collector.settings import Settings

    for item in reversed(fields(Settings)):
        if item.name == "surveys":
            continue
        flag = "--" + item.name.replace("_", "-")
        shown = item.metadata["help"] + (f" [{item.default}]" if item.default else "")
        if isinstance(item.default, bool):
            option = click.option(flag, is_flag=True, default=None, help=shown)
        else:
            option = click.option(flag, type=type(item.default), help=shown)
        command = option(command)
    return command


@click.command(epilog=EXAMPLE, short_help="Collect reports over HTTP.")
@click.argument("surveys", nargs=-1, type=click.Path(exists=True, dir_okay=False))
@click.option(
    "--config", type=click.Path(exists=True, dir_okay=False),
    help="TOML file of these settings, max_body = 1000000; the environment (DENIABLE_MAX_BODY) "
    "and flags come first.",
)  # fmt: skip
@with_settings
def serve(surveys: tuple[str, ...], config: str | None, **flags: Any) -> None:
    """Collect reports of the SURVEYS over HTTP, until told to stop (SIGTERM)."""
    from deniable.collector.server import run
    from deniable.collector.settings import Settings

    given = {name: value for name, value in flags.items() if value is not None}
    if surveys:
        given["surveys"] = surveys
    run(Settings.load(given, file=config))
