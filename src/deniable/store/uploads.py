"""Uploads: what one request brought, and how a store recognises one that comes again."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from enum import Enum

from deniable.errors import InputError
from deniable.survey.survey import DIGEST_SIZE

KEY_SIZE = 16


@dataclass(frozen=True)
class Upload:
    """What one request brought, already validated.

    key : 16 random bytes, the same when the upload is tried again; digest : of the survey;
    bodies : the reports' bodies one after another; fingerprint : 16 bytes, SHA-256 of the upload
    """

    key: bytes
    digest: bytes
    reports: int
    bodies: bytes
    day: date
    fingerprint: bytes

    def __post_init__(self) -> None:
        sizes = {"key": KEY_SIZE, "digest": DIGEST_SIZE, "fingerprint": KEY_SIZE}
        for name, size in sizes.items():
            if (got := len(vars(self)[name])) != size:
                raise InputError(f"expected a {name} of {size} bytes, got {got}")
        if self.reports < 1 or not self.bodies or len(self.bodies) % self.reports:
            raise InputError(
                f"expected at least one report, bodies of equal length; got {self.reports} reports "
                f"in {len(self.bodies)} bytes"
            )

    @property
    def receipt(self) -> tuple[bytes, bytes]:
        """What is kept to recognise the upload: a name and a seal, 16 bytes each.

        Both are keyed by the idempotency key, which is not kept: whoever reads the store cannot
        try which reports, once shuffled, make up the batch that a seal belongs to.
        """
        name = hashlib.sha256(b"deniable/upload/name" + self.key).digest()
        seal = hashlib.sha256(b"deniable/upload/seal" + self.key + self.digest + self.fingerprint)
        return name[:KEY_SIZE], seal.digest()[:KEY_SIZE]


class Outcome(Enum):
    """What became of an upload."""

    STORED = "stored"
    REPEATED = "repeated"
    """The same upload was stored before: nothing was added, and all is well."""
    CONFLICT = "conflict"
    """Another upload was stored under this key: nothing was added."""


def tell_apart(
    receipts: Sequence[tuple[bytes, bytes]], seals: dict[bytes, bytes]
) -> tuple[list[Outcome], list[int]]:
    """Return the outcome of each upload and the indices of the new ones.

    seals : the seals that the store keeps, by name
    """
    seals = dict(seals)
    outcomes, new = [], []
    for i, (name, seal) in enumerate(receipts):
        if name not in seals:
            seals[name] = seal
            new.append(i)
            outcomes.append(Outcome.STORED)
        else:
            outcomes.append(Outcome.REPEATED if seals[name] == seal else Outcome.CONFLICT)
    return outcomes, new
