"""Reports in bulk: from files and other stores into a store."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from datetime import date
from itertools import islice
from pathlib import Path

from deniable.columns import ReportBatch, scan
from deniable.columns.batch import records
from deniable.errors import StoreError
from deniable.store.base import KEY_SIZE, Outcome, Store, Upload
from deniable.survey import Survey

REPORTS_PER_UPLOAD = 1 << 12
UPLOADS_PER_TRANSACTION = 64


def import_file(
    store: Store, path: str | Path, day: date, survey: Survey | None = None
) -> tuple[int, int]:
    """Append a file's reports as if they came on that day; says how many, and how many were new.

    Keys are made from the reports themselves: the same file counts once, while the store remembers
    its keys. A `.dn` file needs the survey.
    """
    return _append(store, _pieces(scan(path, survey=survey)), day)


def import_store(store: Store, source: Store) -> tuple[int, int]:
    """Append another store's reports, each on its day, where this one has none of that day."""
    read = new = 0
    for survey in source.surveys():
        store.add_survey(survey)
        if both := sorted(store.days(survey).keys() & source.days(survey).keys()):
            raise StoreError(
                f"{store.url} has reports of {survey!r} on {both[0]} already: expected none, since "
                "they might be the same; delete them first"
            )
        for day in source.days(survey):
            batches = source.scan(survey, since=day, until=day)
            counts = _append(store, _pieces(batches), day)
            read, new = read + counts[0], new + counts[1]
    return read, new


def _pieces(batches: Iterable[ReportBatch]) -> Iterator[ReportBatch]:
    for batch in batches:
        for start in range(0, len(batch), REPORTS_PER_UPLOAD):
            yield batch.select(slice(start, start + REPORTS_PER_UPLOAD))


def _append(store: Store, pieces: Iterator[ReportBatch], day: date) -> tuple[int, int]:
    read = new = number = 0
    while group := list(islice(pieces, UPLOADS_PER_TRANSACTION)):
        for survey in {piece.survey for piece in group}:
            store.add_survey(survey)
        uploads = [_upload(piece, number + i, day) for i, piece in enumerate(group)]
        for upload, outcome in zip(uploads, store.append(uploads), strict=True):
            read += upload.reports
            new += upload.reports if outcome is Outcome.STORED else 0
        number += len(group)
    return read, new


def _upload(piece: ReportBatch, number: int, day: date) -> Upload:
    bodies = records(piece).tobytes()
    content = piece.survey.digest + number.to_bytes(8, "big") + bodies
    key, fingerprint = (
        hashlib.sha256(b"deniable/import/" + use + content).digest()[:KEY_SIZE]
        for use in (b"key", b"fingerprint")
    )
    return Upload(key, piece.survey.digest, len(piece), bodies, day, fingerprint)
