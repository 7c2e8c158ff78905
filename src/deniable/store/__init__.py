"""Where reports are kept between the collector and the analyst: one interface, several stores."""

from __future__ import annotations

from pathlib import Path

from deniable.errors import InputError, StoreError
from deniable.store.base import Compacted, Outcome, Store, Upload

__all__ = ["Compacted", "Outcome", "Store", "Upload", "is_url", "open"]


def is_url(text: str | Path) -> bool:
    """Return whether this names a store, and not a file of reports."""
    text = str(text)
    return "://" in text or text.partition("?")[0].endswith(".db") or Path(text).is_dir()


def open(url: str | Path, *, create: bool = False) -> Store:
    """Open the store that the URL names; it must exist, unless `create`.

    `sqlite:///FILE.db` or a path that ends in `.db`; `postgresql://…`; else a folder of Parquet
    files, as a path or as a URL that fsspec knows. The first two take `?segments=URL`.
    """
    text = str(url)
    if text.startswith(("postgresql:", "postgres:")):
        try:
            from deniable.store.sql.postgres import PostgresStore
        except ModuleNotFoundError as error:
            raise StoreError(
                f"PostgreSQL needs {error.name}: pip install 'deniable[postgres]'"
            ) from None
        return PostgresStore(text, create=create)
    if text.startswith("sqlite:") or text.partition("?")[0].endswith(".db"):
        from deniable.store.sql.sqlite import SqliteStore

        return SqliteStore(text, create=create)
    if "://" not in text and Path(text).suffix and not Path(text).is_dir():
        raise InputError(f"expected FILE.db, postgresql://… or a folder, no other file; got {text}")
    from deniable.store.parquet.folder_store import FolderStore

    return FolderStore(text, create=create)
