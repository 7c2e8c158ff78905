"""The surveys that a collector accepts, and the validation of uploads."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from datetime import timedelta
from itertools import pairwise

from deniable.collector.api.problems import EXPIRED, MALFORMED, UNKNOWN_SURVEY, Problem
from deniable.columns.batch import from_wire
from deniable.errors import InputError, UnknownSurvey, WireError
from deniable.store import Upload
from deniable.store.clock import Today
from deniable.survey import Survey
from deniable.survey.report import BATCH, BATCH_HEADER_SIZE, HEADER_SIZE, check_bytes

FORM_OFFSET = 3
"""Offset of the byte that distinguishes a report from a batch."""


def versions_of(surveys: Iterable[Survey], name: str, version: int | None = None) -> list[Survey]:
    """Return the surveys of this name, or only one version; raise Problem if there is none."""
    chosen = [s for s in surveys if s.name == name and version in (None, s.version)]
    if not chosen:
        wanted = name if version is None else f"{name} v{version}"
        raise Problem(UNKNOWN_SURVEY, f"this collector has no survey {wanted!r:.80}")
    return chosen


def claimed_reports(data: bytes) -> int:
    """Return how many reports a body claims to have, whether or not it is well formed."""
    if data[FORM_OFFSET : FORM_OFFSET + 1] != bytes([BATCH]):
        return 1
    return int.from_bytes(data[HEADER_SIZE:BATCH_HEADER_SIZE], "little")


class Catalogue:
    """The surveys that a collector accepts, by digest, and by name and version.

    grace : days after the last day of a survey on which its reports are still accepted
    """

    def __init__(self, surveys: Iterable[Survey], grace: int = 1) -> None:
        self.by_digest = {survey.digest: survey for survey in surveys}
        self.grace = timedelta(days=grace)
        for one, two in pairwise(self.all()):
            if (one.name, one.version) == (two.name, two.version):
                raise InputError(
                    f"there are two surveys {one.name!r} of version {one.version}, with digests "
                    f"{one.digest.hex()} and {two.digest.hex()}: "
                    "a changed survey needs a new version"
                )

    def all(self) -> list[Survey]:
        """Return every survey, sorted by name and version."""
        return sorted(self.by_digest.values(), key=lambda s: (s.name, s.version))

    def ended(self, survey: Survey, today: Today) -> bool:
        """Return whether reports of a survey are refused, because it has certainly ended."""
        return not today.doubt and today.day > survey.expires + self.grace

    def find(self, name: str, version: int | None = None) -> Survey:
        """Return the survey of this name: the given version, or the newest."""
        return versions_of(self.all(), name, version)[-1]

    def upload(self, data: bytes, key: bytes, today: Today) -> Upload:
        """Check every report of a body and return it as an upload, or raise Problem."""
        try:
            if data[FORM_OFFSET : FORM_OFFSET + 1] == bytes([BATCH]):
                batch = from_wire(data, self.by_digest)
                survey, reports, start = batch.survey, len(batch), BATCH_HEADER_SIZE
            else:
                survey, reports, start = check_bytes(data, self.by_digest), 1, HEADER_SIZE
        except UnknownSurvey:
            digest = data[4:HEADER_SIZE].hex()
            raise Problem(
                UNKNOWN_SURVEY, f"this collector has no survey with digest {digest}"
            ) from None
        except WireError as error:
            raise Problem(MALFORMED, str(error)) from None
        if self.ended(survey, today):
            raise Problem(
                EXPIRED, f"survey {survey.name!r} v{survey.version} ended on {survey.expires}"
            )
        fingerprint = hashlib.sha256(data).digest()[:16]
        return Upload(key, survey.digest, reports, data[start:], today.day, fingerprint)
