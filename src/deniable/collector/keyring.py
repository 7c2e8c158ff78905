"""The keys in use: whom a token belongs to, what it allows, and how much quota is left.

A key is an entry of the key file; its token is the secret that a request sends.
"""

from __future__ import annotations

import hmac
import logging
import math
import os
import time
from pathlib import Path

from deniable.collector.api.problems import FORBIDDEN, QUOTA, UNAUTHORISED, Problem
from deniable.collector.keys import Key, check_exists, hash_of, id_of, read
from deniable.collector.logs import log_event
from deniable.errors import InputError

RELOAD_SECONDS = 1.0
"""How often the key file is checked for changes."""
SECONDS_PER_HOUR = 3600


class Bucket:
    """Enforces a quota of reports per hour (the token bucket algorithm); 0 is no limit.

    The bucket fills steadily and holds at most the reports of one hour. No upload has more (`Key`
    sees to it), so no wait is longer than an hour. An upload takes its reports before it is queued,
    or is refused. Only the event loop calls the methods, so uploads that arrive together cannot
    take the same reports.
    """

    def __init__(self, quota: int) -> None:
        self.quota, self._available, self._updated = quota, float(quota), time.monotonic()

    def check(self, reports: int = 1) -> None:
        """Raise Problem unless so many reports are left."""
        if self.quota == 0:
            return
        now = time.monotonic()
        refill = (now - self._updated) * self.quota / SECONDS_PER_HOUR
        self._available = min(self.quota, self._available + refill)
        self._updated = now
        if self._available < reports:
            wait = math.ceil((reports - self._available) * SECONDS_PER_HOUR / self.quota)
            detail = f"the key may send {self.quota} reports per hour: try again in {wait} s"
            raise Problem(QUOTA, detail, {"retry-after": str(wait)})

    def take(self, reports: int) -> None:
        """Use quota for these reports, or raise Problem."""
        self.check(reports)
        self._available -= reports

    def refund(self, reports: int) -> None:
        """Return the quota of reports that were not stored, or had been stored before."""
        self._available = min(self.quota, self._available + reports)


class Keyring:
    """The keys of a file, which is read again when it changes."""

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._keys: dict[str, Key] = {}
        self._buckets: dict[Key, Bucket] = {}
        self._version: tuple[int, int] | None = None
        self._last_check = time.monotonic()
        if path is not None:
            check_exists(path)
            self._load(path)

    def _load(self, path: Path) -> None:
        """Read the file, if it has changed since it was read."""
        status = os.stat(path)
        version = status.st_mtime_ns, status.st_ino
        if version == self._version:
            return
        self._version = version
        keys = read(path)
        self._keys = {key.id: key for key in keys}
        self._buckets = {key: self._buckets.get(key) or Bucket(key.quota) for key in keys}

    def _refresh(self) -> None:
        """Read the file again if it has changed, at most once per `RELOAD_SECONDS`."""
        now = time.monotonic()
        if self._path is None or now < self._last_check + RELOAD_SECONDS:
            return
        self._last_check = now
        try:
            self._load(self._path)
        except (InputError, OSError) as error:
            # A mistake in the file must not lock out everyone, nor let anyone in. Nothing that the
            # file holds is logged.
            what = error.strerror if isinstance(error, OSError) else "it is not a valid key file"
            message = f"cannot read the key file {self._path}: {what}; the keys read before remain "
            message += "valid, and deniable keys list --keys FILE says more"
            log_event("key-file-unreadable", message, logging.ERROR)

    def find(self, token: str) -> Key | None:
        """Return the key of a token, or None; hashes are compared in constant time."""
        self._refresh()
        key = self._keys.get(id_of(token))
        matches = hmac.compare_digest(hash_of(token), key.sha256 if key else "0" * 64)
        return key if matches else None

    def with_quota(self, role: str) -> list[str]:
        """Return the names of the keys of a role that have a quota."""
        return sorted(key.name for key in self._keys.values() if key.role == role and key.quota)

    def bucket(self, key: Key) -> Bucket:
        """Return the bucket that holds the quota of a key."""
        return self._buckets[key]

    def authorise(self, token: str | None, *roles: str) -> Key:
        """Return the key of a token, or raise Problem if it is missing or has none of the roles."""
        wanted = " or ".join(roles)
        if token is None:
            raise Problem(
                UNAUTHORISED, f"send a key of role {wanted} as `Authorization: Bearer TOKEN`"
            )
        key = self.find(token)
        if key is None:
            raise Problem(UNAUTHORISED, "the access key is unknown, or was removed")
        if key.role not in roles:
            detail = f"this request needs a key of role {wanted}; this key has role {key.role}"
            raise Problem(FORBIDDEN, detail)
        return key
