"""What the commands about stores share: their options, and how a survey in a store is named."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from deniable.store import Store
    from deniable.survey import Survey

STORES = "STORE is sqlite:///FILE.db, FILE.db, postgresql://…, or a folder of Parquet files."


class Day(click.DateTime):
    """A day as YYYY-MM-DD."""

    def __init__(self) -> None:
        super().__init__(["%Y-%m-%d"])

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        return super().convert(value, param, ctx).date()


DAY = Day()


def chosen(store: Store, name: str) -> Survey:
    """The survey called NAME (its newest version) or NAME@VERSION."""
    from deniable.errors import InputError

    wanted, _, version = name.partition("@")
    found = [s for s in store.surveys() if s.name == wanted and version in ("", str(s.version))]
    if not found:
        known = ", ".join(f"{s.name}@{s.version}" for s in store.surveys()) or "none"
        raise InputError(f"expected one of the surveys in {store.url}: {known}; got {name!r}")
    return found[-1]
