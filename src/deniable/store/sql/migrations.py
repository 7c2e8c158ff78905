"""The tables, version by version: an older store is brought up to date when it is opened.

Every version's statements stay as they were released; a change of the tables is a new version.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from deniable.errors import StoreError
from deniable.store.sql.sessions import Session

VERSIONS: tuple[tuple[str, ...], ...] = (
    # 1: uploads are staged
    (
        "CREATE TABLE survey (digest {blob} PRIMARY KEY, canonical {blob} NOT NULL){sorted}",
        "CREATE TABLE upload ("
        "name {blob} PRIMARY KEY, seal {blob} NOT NULL, day TEXT NOT NULL){sorted}",
        "CREATE TABLE staged ("
        "id {serial} PRIMARY KEY, survey {blob} NOT NULL REFERENCES survey, day TEXT NOT NULL, "
        "reports INTEGER NOT NULL, bodies {blob} NOT NULL)",
    ),
    # 2: and compacted
    (
        "CREATE INDEX staged_days ON staged (survey, day, reports)",
        "CREATE TABLE segment ("
        "name TEXT PRIMARY KEY, survey {blob} NOT NULL REFERENCES survey, day TEXT NOT NULL, "
        "reports INTEGER NOT NULL, size INTEGER NOT NULL, sha256 {blob} NOT NULL){sorted}",
        "CREATE TABLE loose (name TEXT PRIMARY KEY){sorted}",
        "CREATE TABLE setting (name TEXT PRIMARY KEY, value TEXT NOT NULL){sorted}",
    ),
)


@dataclass(frozen=True)
class Dialect:
    """What differs between databases.

    words : types named in the statements; `sorted` makes a table stand in the order of its key, so
        that it says nothing of arrival
    also : statements of this database alone, by version
    version, note : read the version of the tables, 0 where there are none, and write it
    """

    words: Mapping[str, str]
    also: Mapping[int, tuple[str, ...]]
    version: Callable[[Session], int]
    note: Callable[[Session, int], None]


def migrate(db: Session, dialect: Dialect, url: str, *, create: bool = True) -> None:
    """Bring the tables up to the newest version, from none if `create`."""
    version, newest = dialect.version(db), len(VERSIONS)
    if version > newest:
        raise StoreError(
            f"{url} has tables of version {version}, this release knows {newest}: update deniable"
        )
    if version == 0 and not create:
        raise StoreError(f"there is no store in {url}: collect or import into it")
    if version == newest:
        return
    for number in range(version + 1, newest + 1):
        for statement in (*VERSIONS[number - 1], *dialect.also.get(number, ())):
            db.run(statement.format(**dialect.words))
    dialect.note(db, newest)
