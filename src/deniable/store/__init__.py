"""Stores keep reports between the collector and the analyst, in SQLite or PostgreSQL.

Names are imported on first use, so that the help of commands needs no NumPy.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from deniable.errors import InputError
from deniable.extras import needs_packages
from deniable.lazy import lazy_exports
from deniable.store.locations import is_object_url, without_password

if TYPE_CHECKING:
    from deniable.store.base import Store
    from deniable.store.compaction import Compacted
    from deniable.store.uploads import Outcome, Upload

__all__ = ["Compacted", "Outcome", "Store", "Upload", "is_url", "open"]

_LATER = {
    "deniable.store.base": ["Store"],
    "deniable.store.compaction": ["Compacted"],
    "deniable.store.uploads": ["Outcome", "Upload"],
}
__getattr__ = lazy_exports(__name__, _LATER)


def is_url(text: str | Path) -> bool:
    """Return whether a string names a store rather than files of reports.

    Parameters
    ----------
    text : str or Path
        URL, path of a `.db` file, or path of a file or folder of reports.

    Returns
    -------
    bool
        True for `.db` files, and for URLs except those of object storage.

    Examples
    --------
    >>> is_url("sqlite:///reports.db"), is_url("reports.db"), is_url("s3://reports/march.parquet")
    (True, True, False)
    """
    text = str(text)
    return _is_sqlite(text) or ("://" in text and not is_object_url(text))


def _is_sqlite(url: str) -> bool:
    return url.startswith("sqlite:") or url.partition("?")[0].endswith(".db")


def open(url: str | Path, *, create: bool = False, compacted_only: bool = False) -> Store:
    """Open a store.

    Parameters
    ----------
    url : str or Path
        `sqlite:///FILE.db` or a path that ends in `.db` for SQLite, `postgresql://…` for
        PostgreSQL; both accept `?segments=URL`, the folder for segments.
    create : bool, default False
        Create the store if it does not exist.
    compacted_only : bool, default False
        Read only shuffled reports, as analysts of a collector do, not those that are still staged.

    Returns
    -------
    Store
        The store; close it, or use it in a `with` statement.

    Raises
    ------
    StoreError
        If the store does not exist and `create` is False, or cannot be opened.
    InputError
        If the URL names something that is not a store.
    MissingPackage
        If the URL is of PostgreSQL and its driver is not installed.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with open(f"{folder}/reports.db", create=True) as store:
    ...         type(store).__name__
    'SqliteStore'
    """
    store = _opened(str(url), create)
    store.compacted_only = compacted_only
    return store


def _opened(url: str, create: bool) -> Store:
    """Open the store at a URL or path."""
    if _is_sqlite(url):
        from deniable.store.sqlite import SqliteStore

        return SqliteStore(url, create=create)
    if url.startswith(("postgresql:", "postgres:")):
        with needs_packages("PostgreSQL", extra="postgres"):
            from deniable.store.postgres import PostgresStore
        return PostgresStore(url, create=create)
    raise InputError(
        f"{without_password(url)} is not a store: expected FILE.db, sqlite:///FILE.db or "
        "postgresql://… (only Parquet files can be at s3://… or gs://…)"
    )
