"""Uploads whose reports all differ: 16 random bytes each, so that any can be searched for."""

from __future__ import annotations

import hashlib
import os
from collections import Counter
from collections.abc import Iterable
from dataclasses import asdict
from datetime import date, timedelta

from deniable.columns.batch import to_bodies
from deniable.store import Store, Upload
from deniable.survey import Survey
from tests.surveys import make_survey

DAY = date(2025, 3, 9)
NEXT = DAY + timedelta(days=1)


QUESTION = """
[questions.mark]
kind = "string"
p = 0.25
q = 0.75
bits = 128
hashes = 2
cohorts = 1
"""


def survey(version: int = 1, name: str = "marks", description: str = "any 16 bytes") -> Survey:
    """A survey of which any 16 bytes are a report."""
    return make_survey(QUESTION, name=name, version=version, description=description)


MARKS = survey()


def upload(reports: int = 1, day: date = DAY, of: Survey = MARKS, key: bytes = b"") -> Upload:
    """So many new reports under a new key, or a given one."""
    return again(Upload(key or os.urandom(16), of.digest, reports, os.urandom(16 * reports), day,
                        bytes(16)))  # fmt: skip


def again(first: Upload, **changed: object) -> Upload:
    """The upload with some of it changed, and the fingerprint that it then has."""
    parts = {**asdict(first), **changed}
    content = parts["digest"] + parts["bodies"]
    return Upload(**{**parts, "fingerprint": hashlib.sha256(content).digest()[:16]})


def reports_of(uploads: Iterable[Upload]) -> Counter[bytes]:
    """Every report of these uploads."""
    return Counter(
        u.bodies[i : i + 16] for u in uploads for i in range(0, len(u.bodies), 16)
    )  # fmt: skip


def kept(store: Store, of: Survey = MARKS, **days: date) -> Counter[bytes]:
    """Every report that the store has."""
    return Counter(row.tobytes() for b in store.scan(of, **days, rows=1000) for row in to_bodies(b))
