"""`deniable keys`: who may upload, and who may read results."""

from __future__ import annotations

from pathlib import Path

import click

from deniable.cli import options
from deniable.cli.documented import command
from deniable.cli.output import say

keys_option = options.option(
    "--keys",
    "file",
    required=True,
    envvar="DENIABLE_KEYS",
    type=options.FILE,
    help="The file of keys.",
)


@command(make=click.group, short_help="Say who may upload, and who may read results.")
def keys() -> None:
    """Make, list and remove ingest keys and analyst tokens; a running collector notices.

    Examples
    --------
    deniable keys add alice --role analyst --keys keys.json
    """


@command(make=keys.command)
@click.argument("name")
@options.option("--role", required=True, type=click.Choice(["ingest", "analyst"]))
@click.option("--quota", type=click.IntRange(0), default=0)
@keys_option
@options.flag("--json", "as_json")
def add(name: str, role: str, quota: int, file: Path, as_json: bool) -> None:
    """Make a token called NAME and print it: it is shown only now.

    Parameters
    ----------
    role : To upload reports, or to read results.
    quota : Reports an hour; 0 is no limit.
    as_json : Print as JSON.

    Examples
    --------
    deniable keys add phones --role ingest --keys keys.json
    """
    from deniable.collector import keys as kept

    token = kept.add(file, name, role, quota)
    say({"name": name, "role": role, "quota": quota, "token": token}, token, as_json)


@command("list", make=keys.command)
@keys_option
@options.flag("--json", "as_json")
def list_(file: Path, as_json: bool) -> None:
    """List the keys; tokens are not kept, so they cannot be shown.

    Parameters
    ----------
    as_json : Print as JSON.

    Examples
    --------
    deniable keys list --keys keys.json
    """
    from deniable.collector import keys as kept

    rows = [{"name": k.name, "id": k.id, "role": k.role, "quota": k.quota} for k in kept.read(file)]
    text = "\n".join(
        f"{r['name']:20} {r['id']}  {r['role']:8} "
        + (f"{r['quota']:,} reports an hour" if r["quota"] else "no limit")
        for r in rows
    )
    say({"keys": rows}, text or "no keys", as_json)


@command(make=keys.command)
@click.argument("name")
@keys_option
@options.flag("--json", "as_json")
def remove(name: str, file: Path, as_json: bool) -> None:
    """Remove the key called NAME; its token is refused from now on.

    Parameters
    ----------
    as_json : Print as JSON.

    Examples
    --------
    deniable keys remove phones --keys keys.json
    """
    from deniable.collector import keys as kept

    kept.remove(file, name)
    say({"removed": name}, f"removed {name}", as_json)
