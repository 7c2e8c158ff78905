"""Stores keep reports between the collector and the analyst: one interface, several databases."""

from __future__ import annotations

from pathlib import Path

from deniable.errors import InputError
from deniable.extras import needs_packages

with needs_packages("deniable.store"):
    from deniable.store.base import Compacted, Outcome, Store, Upload

__all__ = ["Compacted", "Outcome", "Store", "Upload", "is_url", "open"]


def is_url(text: str | Path) -> bool:
    """Return whether a string names a store rather than a file of reports.

    Parameters
    ----------
    text : str or Path
        URL, path of a `.db` file, path of a folder, or path of a file of reports.

    Returns
    -------
    bool
        True for URLs, `.db` files and existing folders.

    Examples
    --------
    >>> is_url("sqlite:///reports.db"), is_url("reports.db"), is_url("reports.parquet")
    (True, True, False)
    """
    text = str(text)
    return "://" in text or text.partition("?")[0].endswith(".db") or Path(text).is_dir()


def is_database(url: str) -> bool:
    """Return whether a URL or path names a store in SQLite or PostgreSQL, which a collector needs.

    Parameters
    ----------
    url : str
        URL or path of a store.

    Returns
    -------
    bool
        False for folders.

    Examples
    --------
    >>> is_database("reports.db"), is_database("postgresql:///reports"), is_database("s3://reports")
    (True, True, False)
    """
    return _is_postgres(url) or _is_sqlite(url)


def _is_postgres(url: str) -> bool:
    return url.startswith(("postgresql:", "postgres:"))


def _is_sqlite(url: str) -> bool:
    return url.startswith("sqlite:") or url.partition("?")[0].endswith(".db")


def open(url: str | Path, *, create: bool = False, compacted_only: bool = False) -> Store:
    """Open a store.

    Parameters
    ----------
    url : str or Path
        `sqlite:///FILE.db` or a path that ends in `.db` for SQLite, `postgresql://…` for
        PostgreSQL; anything else is a folder of Parquet files, as a path or as a URL that fsspec
        supports. The first two accept `?segments=URL`, the folder for segments.
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
        If the URL names a file that is not a store.
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


def _opened(text: str, create: bool) -> Store:
    """Open the store at a URL or path."""
    if _is_postgres(text):
        with needs_packages("PostgreSQL", extra="postgres"):
            from deniable.store.sql.postgres import PostgresStore
        return PostgresStore(text, create=create)
    if _is_sqlite(text):
        from deniable.store.sql.sqlite import SqliteStore

        return SqliteStore(text, create=create)
    if "://" not in text and Path(text).suffix and not Path(text).is_dir():
        raise InputError(
            f"{text} is not a store: expected FILE.db, postgresql://… or a folder of Parquet files"
        )
    from deniable.store.parquet.folder_store import FolderStore

    return FolderStore(text, create=create)
