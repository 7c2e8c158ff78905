"""`deniable keys`: who may upload, and who may read results."""

from __future__ import annotations

from pathlib import Path

import click

from deniable.cli.output import say

FILE = click.option(
    "--keys", "file", required=True, envvar="DENIABLE_KEYS",
    type=click.Path(dir_okay=False, path_type=Path), help="The file of keys.",
)  # fmt: skip
JSON = click.option("--json", "as_json", is_flag=True, help="Print as JSON.")


@click.group(
    epilog="Example: deniable keys add alice --role analyst --keys keys.json",
    short_help="Say who may upload, and who may read results.",
)
def keys() -> None:
    """Make, list and remove ingest keys and analyst tokens; a running collector notices."""


@keys.command(epilog="Example: deniable keys add phones --role ingest --keys keys.json")
@click.argument("name")
@click.option("--role", required=True, type=click.Choice(["ingest", "analyst"]),
              help="To upload reports, or to read results.")  # fmt: skip
@click.option("--quota", type=click.IntRange(0), default=0, help="Reports an hour; 0 is no limit.")
@FILE
@JSON
def add(name: str, role: str, quota: int, file: Path, as_json: bool) -> None:
    """Make a token called NAME and print it: it is shown only now."""
    from deniable.collector import keys as kept

    token = kept.add(file, name, role, quota)
    say({"name": name, "role": role, "quota": quota, "token": token}, token, as_json)


@keys.command("list", epilog="Example: deniable keys list --keys keys.json")
@FILE
@JSON
def list_(file: Path, as_json: bool) -> None:
    """List the keys; tokens are not kept, so they cannot be shown."""
    from deniable.collector import keys as kept

    rows = [{"name": k.name, "id": k.id, "role": k.role, "quota": k.quota} for k in kept.read(file)]
    text = "\n".join(
        f"{r['name']:20} {r['id']}  {r['role']:8} "
        + (f"{r['quota']:,} reports an hour" if r["quota"] else "no limit")
        for r in rows
    )
    say({"keys": rows}, text or "no keys", as_json)


@keys.command(epilog="Example: deniable keys remove phones --keys keys.json")
@click.argument("name")
@FILE
@JSON
def remove(name: str, file: Path, as_json: bool) -> None:
    """Remove the key called NAME; its token is refused from now on."""
    from deniable.collector import keys as kept

    kept.remove(file, name)
    say({"removed": name}, f"removed {name}", as_json)
