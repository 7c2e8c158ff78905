"""`deniable serve` and `deniable keys`: run a collector, and say who may use it."""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import fields
from pathlib import Path
from typing import Any

import click

from deniable.cli import options
from deniable.cli.options import command
from deniable.cli.output import print_outcome
from deniable.collector import keys as key_file
from deniable.collector.settings import Settings

METAVARS = {"store": "STORE", "keys": "FILE", "host": "ADDRESS", "cors": "ORIGIN"}
METAVARS |= {"log_format": "FORMAT"}


def settings_options(function: Any) -> Any:
    """Add one option per setting; options that are not given leave it to environment and file."""
    for item in reversed(fields(Settings)):
        if item.name == "surveys":
            continue
        kind: dict[str, Any] = {"type": type(item.default), "metavar": METAVARS.get(item.name)}
        if isinstance(item.default, bool):
            kind = {"is_flag": True, "default": None}
        text = item.metadata["help"] + (f" [default: {item.default}]" if item.default else "")
        function = click.option("--" + item.name.replace("_", "-"), help=text, **kind)(function)
    return function


@command()
@click.argument("surveys", nargs=-1, type=click.Path(exists=True, dir_okay=False))
@options.option("--config", type=options.EXISTING_FILE, metavar="FILE")
@settings_options
def serve(surveys: tuple[str, ...], config: Path | None, **flags: Any) -> None:
    """Collect reports of the SURVEYS over HTTP until the process is stopped (SIGTERM or Ctrl-C).

    Every option can also be set in the environment (DENIABLE_MAX_BODY for --max-body) or in a TOML
    file (max_body). Options take precedence over the environment, and the environment over the
    file.

    Parameters
    ----------
    config
        TOML file of settings.

    Examples
    --------
    deniable serve survey.json --store sqlite:///reports.db
    deniable serve v1.json v2.json --store postgresql:///reports --keys keys.json --require-key
    DENIABLE_PORT=80 deniable serve --config collector.toml
    """
    given = {name: value for name, value in flags.items() if value is not None}
    if surveys:
        given["surveys"] = surveys
    settings = Settings.load(given, file=config)
    with _ended_by_sigterm():
        from deniable.collector.server import run

        run(settings)


@contextmanager
def _ended_by_sigterm() -> Iterator[None]:
    """Let SIGTERM end the process at once until the collector, which finishes uploads, handles it.

    As the first process of a container it would otherwise not notice the signal.
    """
    before = signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


keys_option = options.option(
    "--keys",
    "file",
    required=True,
    envvar="DENIABLE_KEYS",
    type=options.FILE,
    metavar="FILE",
    help="File of keys; by default the environment variable DENIABLE_KEYS names it.",
)


@command(make=options.new_group)
def keys() -> None:
    """Create, list and remove the access keys of a collector; if it runs, it notices changes.

    An ingest key allows uploads of one report, a gateway key uploads of many, and an analyst key
    analyses and their results. The text of a key, which requests send, is its token.

    Examples
    --------
    deniable keys add alice --role analyst --keys keys.json
    """


@command(make=keys.command, short_help="Create a key and print its token.")
@click.argument("name")
@options.option("--role", required=True, type=click.Choice(key_file.ROLES))
@options.option("--quota", type=options.WholeNumber(0), metavar="COUNT")
@options.option("--max-batch", type=options.POSITIVE_INT, metavar="COUNT")
@keys_option
@options.json_option("the key")
def add(
    name: str, role: str, quota: int | None, max_batch: int | None, file: Path, as_json: bool
) -> None:
    """Create a key called NAME and print its token, which is not shown again.

    Parameters
    ----------
    role
        Allow uploads of one report each (ingest), uploads of many reports from a server that
        collects those of many people (gateway), or analyses (analyst). An ingest key may be part of
        an app or a page; keep a gateway key secret.
    quota
        Maximum number of reports per hour; 0 means no limit. The default is 1,000,000 for a gateway
        and no limit otherwise.
    max_batch
        Maximum number of reports per upload of a gateway. The default is 10,000, or the quota if
        that is smaller.

    Examples
    --------
    deniable keys add phones --role ingest --keys keys.json
    deniable keys add relay --role gateway --quota 500000 --max-batch 2000 --keys keys.json
    """
    token = key_file.add(file, name, role, quota, max_batch)
    (key,) = (key for key in key_file.read(file) if key.name == name)
    data = {"name": name, "role": role, "quota": key.quota, "max_batch": key.max_batch}
    print_outcome({**data, "token": token}, token, as_json)


@command("list", make=keys.command, short_help="List the keys with their roles.")
@keys_option
@options.json_option("the keys")
def list_(file: Path, as_json: bool) -> None:
    """List the keys with their roles; the file holds hashes of the tokens, which cannot be shown.

    Examples
    --------
    deniable keys list --keys keys.json
    """
    names = ("name", "id", "role", "quota", "max_batch")
    keys = key_file.read(file)
    rows = [{name: getattr(key, name) for name in names} for key in keys]
    none = "There are no keys." if file.exists() else f"There are no keys: {file} does not exist."
    lines = [f"{key.name:20} {key.id}  {key.role:8} {_limits(key)}".rstrip() for key in keys]
    print_outcome({"keys": rows}, "\n".join(lines) or none, as_json)


def _limits(key: key_file.Key) -> str:
    """Say how many reports a key may send."""
    if key.role == "analyst":
        return ""
    per_hour = f"{key.quota:,} reports per hour" if key.quota else "no limit per hour"
    return f"{per_hour}, {key.max_batch:,} per upload"


@command(make=keys.command)
@click.argument("name")
@keys_option
@options.json_option("the outcome")
def remove(name: str, file: Path, as_json: bool) -> None:
    """Remove the key called NAME; its token is refused from now on.

    Examples
    --------
    deniable keys remove phones --keys keys.json
    """
    key_file.remove(file, name)
    print_outcome({"removed": name}, f"Removed the key {name}.", as_json)
