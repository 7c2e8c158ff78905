"""Import reports in bulk, from files and from other stores."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from datetime import date
from itertools import islice
from pathlib import Path

from deniable.arguments import Day, as_day
from deniable.columns import ReportBatch, scan
from deniable.columns.batch import to_bodies
from deniable.errors import StoreError
from deniable.store.base import Store
from deniable.store.uploads import KEY_SIZE, Outcome, Upload
from deniable.survey import SurveyOrPath

REPORTS_PER_UPLOAD = 1 << 12
UPLOADS_PER_TRANSACTION = 64


def import_file(
    store: Store, path: str | Path, day: Day, survey: SurveyOrPath | None = None
) -> tuple[int, int]:
    """Append the reports of a file as if they had arrived on one day.

    The idempotency keys of the uploads are derived from the reports, so importing a file twice
    stores it once, until the store forgets the keys (see `Store.forget`).

    Parameters
    ----------
    store : Store
        Store to append to; it gains the survey of the reports if necessary.
    path : str or Path
        `.parquet` or `.dn` file.
    day : date or str
        Day of the reports.
    survey : Survey, str or Path, optional
        Survey of the reports; required for a `.dn` file.

    Returns
    -------
    read, new : int
        Number of reports in the file, and how many of them were not in the store before.
    """
    return import_batches(store, scan(path, survey=survey), as_day("day", day))


def import_batches(store: Store, batches: Iterable[ReportBatch], day: date) -> tuple[int, int]:
    """Append reports as `import_file` does; return how many there are, and how many are new."""
    parts = _upload_sized(batches)
    read = new = appended = 0
    while chunk := list(islice(parts, UPLOADS_PER_TRANSACTION)):
        for survey in {batch.survey for batch in chunk}:
            store.add_survey(survey)
        uploads = [_upload(batch, index, day) for index, batch in enumerate(chunk, appended)]
        for upload, outcome in zip(uploads, store.append(uploads), strict=True):
            read += upload.reports
            new += upload.reports if outcome is Outcome.STORED else 0
        appended += len(chunk)
    return read, new


def import_store(store: Store, source: Store) -> tuple[int, int]:
    """Append the reports of another store, each on its own day.

    Parameters
    ----------
    store : Store
        Store to append to.
    source : Store
        Store to read.

    Returns
    -------
    read, new : int
        Number of reports read, and how many of them were new.

    Raises
    ------
    StoreError
        If both stores have reports of one survey and day, which might be the same reports.
    """
    read = new = 0
    for survey in source.surveys():
        store.add_survey(survey)
        if shared_days := sorted(store.days(survey).keys() & source.days(survey).keys()):
            raise StoreError(
                f"{store.url} and {source.url} both have reports of {survey} on "
                f"{shared_days[0]}, perhaps the same ones, which would be counted twice: delete "
                "them from one of the two first"
            )
        for day in source.days(survey):
            batches = source.scan(survey, since=day, until=day)
            counts = import_batches(store, batches, day)
            read, new = read + counts[0], new + counts[1]
    return read, new


def _upload_sized(batches: Iterable[ReportBatch]) -> Iterator[ReportBatch]:
    """Yield the same reports in batches of at most `REPORTS_PER_UPLOAD`."""
    for batch in batches:
        for start in range(0, len(batch), REPORTS_PER_UPLOAD):
            yield batch.select(slice(start, start + REPORTS_PER_UPLOAD))


def _upload(batch: ReportBatch, index: int, day: date) -> Upload:
    """Return a batch as an upload.

    index : position of the upload in its import, so that equal batches get different keys
    """
    bodies = to_bodies(batch).tobytes()
    content = batch.survey.digest + index.to_bytes(8, "big") + bodies
    key, fingerprint = (
        hashlib.sha256(b"deniable/import/" + purpose + content).digest()[:KEY_SIZE]
        for purpose in (b"key", b"fingerprint")
    )
    return Upload(key, batch.survey.digest, len(batch), bodies, day, fingerprint)
