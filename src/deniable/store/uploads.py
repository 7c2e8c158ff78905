"""Uploads: the reports of one request, and what a store does with them."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date
from enum import Enum
from functools import cached_property

from deniable.errors import InputError
from deniable.survey.survey import DIGEST_SIZE

KEY_SIZE = 16
"""Bytes of an idempotency key, and of the fingerprint, name and seal of an upload."""


@dataclass(frozen=True)
class Upload:
    """The reports of one request, after validation.

    Parameters
    ----------
    key : bytes
        Idempotency key: 16 random bytes, the same when the client retries the upload.
    digest : bytes
        Digest of the survey that the reports answer.
    reports : int
        Number of reports, at least 1.
    bodies : bytes
        Bodies of the reports, one after another, all of the same length.
    day : date
        Day of arrival, in UTC.
    fingerprint : bytes
        First 16 bytes of the SHA-256 of the request's body.

    Raises
    ------
    InputError
        If a field has the wrong length or there are no reports.

    Examples
    --------
    >>> from datetime import date
    >>> upload = Upload(bytes(16), bytes(16), 2, b"abcdef", date(2024, 5, 1), bytes(16))
    >>> upload.reports
    2
    """

    key: bytes
    digest: bytes
    reports: int
    bodies: bytes
    day: date
    fingerprint: bytes

    def __post_init__(self) -> None:
        for name, value, size in (
            ("key", self.key, KEY_SIZE),
            ("digest", self.digest, DIGEST_SIZE),
            ("fingerprint", self.fingerprint, KEY_SIZE),
        ):
            if len(value) != size:
                got = f"expected an upload's {name} to have {size} bytes, got {len(value)}"
                raise InputError(got)
        if self.reports < 1 or not self.bodies or len(self.bodies) % self.reports:
            raise InputError(
                f"expected one or more report bodies of equal length, got {self.reports} reports "
                f"in {len(self.bodies)} bytes"
            )

    @cached_property
    def receipt(self) -> tuple[bytes, bytes]:
        """Name and seal, 16 bytes each, by which a store recognises the upload.

        Both are hashes keyed by the idempotency key, which is not kept. A reader of the store
        therefore cannot test which of the shuffled reports make up the batch of a seal.
        """
        name = hashlib.sha256(b"deniable/upload/name" + self.key).digest()
        seal = hashlib.sha256(b"deniable/upload/seal" + self.key + self.digest + self.fingerprint)
        return name[:KEY_SIZE], seal.digest()[:KEY_SIZE]


class Outcome(Enum):
    """What a store did with an upload.

    Attributes
    ----------
    STORED : str
        The upload is new, and its reports are stored.
    REPEATED : str
        The same upload was stored before. Nothing was added, and the client gets the same answer.
    CONFLICT : str
        A different upload was stored under this key. Nothing was added.

    Examples
    --------
    >>> Outcome("repeated") is Outcome.REPEATED
    True
    """

    STORED = "stored"
    REPEATED = "repeated"
    CONFLICT = "conflict"


def classify(
    uploads: Iterable[Upload], stored_seals: dict[bytes, bytes]
) -> tuple[list[Outcome], list[Upload]]:
    """Return the outcome of each upload, and the new uploads.

    `stored_seals` holds the seals in the store, by name.
    """
    seals = dict(stored_seals)
    outcomes, new = [], []
    for upload in uploads:
        name, seal = upload.receipt
        if name not in seals:
            seals[name] = seal
            new.append(upload)
            outcomes.append(Outcome.STORED)
        else:
            outcomes.append(Outcome.REPEATED if seals[name] == seal else Outcome.CONFLICT)
    return outcomes, new
