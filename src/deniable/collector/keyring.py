"""The keys in force: whose token is this, may it do that, and what is left of its quota."""

from __future__ import annotations

import hmac
import logging
import math
import os
import time
from pathlib import Path

from deniable.collector.api.problems import FORBIDDEN, QUOTA, UNAUTHORISED, Problem
from deniable.collector.keys import Key, hash_of, id_of, read
from deniable.errors import InputError

RELOAD = 1.0
"""Seconds after which a changed file is noticed."""
HOUR = 3600

log = logging.getLogger("deniable.collector")


class Bucket:
    """A quota of reports an hour: an hour's worth may come at once, then as it refills.

    The last upload may overdraw it, so that one larger than the quota passes too, rarely.
    """

    def __init__(self, quota: int) -> None:
        self.quota, self._level, self._at = quota, float(quota), time.monotonic()

    def check(self) -> None:
        """Raise Problem if not one report is left."""
        if self.quota == 0:
            return
        now = time.monotonic()
        self._level = min(self.quota, self._level + (now - self._at) * self.quota / HOUR)
        self._at = now
        if self._level < 1:
            wait = math.ceil((1 - self._level) * HOUR / self.quota)
            told = {"retry-after": str(wait)}
            raise Problem(QUOTA, f"the key may send {self.quota} reports an hour", told)

    def take(self, reports: int) -> None:
        """Count these reports, or raise Problem."""
        self.check()
        self._level -= reports

    def give_back(self, reports: int) -> None:
        """They were not stored, or had been before."""
        self._level += reports


class Keyring:
    """Reads the file of keys again when it changes: no restart to add or remove one."""

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._keys: dict[str, Key] = {}
        self._buckets: dict[Key, Bucket] = {}
        self._stamp: tuple[int, int] | None = None
        self._looked = time.monotonic()
        if path is not None:
            if not path.exists():
                raise InputError(f"there is no file {path}: make it with `deniable keys add`")
            self._load(path)

    def _load(self, path: Path) -> None:
        """Read the file, if it is not the one that was read before."""
        status = os.stat(path)
        stamp = status.st_mtime_ns, status.st_ino
        if stamp == self._stamp:
            return
        self._stamp = stamp
        keys = read(path)
        self._keys = {key.id: key for key in keys}
        self._buckets = {key: self._buckets.get(key) or Bucket(key.quota) for key in keys}

    def _refresh(self) -> None:
        now = time.monotonic()
        if self._path is None or now < self._looked + RELOAD:
            return
        self._looked = now
        try:
            self._load(self._path)
        except (InputError, OSError):
            # A file spoilt by hand must not lock everybody out, nor let anybody in.
            log.error("the file of keys cannot be read: the keys read before stay in force")

    def find(self, token: str) -> Key | None:
        """The key that this token is of; hashes are compared in constant time."""
        self._refresh()
        key = self._keys.get(id_of(token))
        same = hmac.compare_digest(hash_of(token), key.sha256 if key else "0" * 64)
        return key if same else None

    def bucket(self, key: Key) -> Bucket:
        """What is left of the key's quota."""
        return self._buckets[key]

    def demand(self, token: str | None, role: str) -> Key:
        """The key of this token, if it has the role; else raises Problem."""
        if token is None:
            raise Problem(UNAUTHORISED, f"expected `Authorization: Bearer` with an {role} token")
        key = self.find(token)
        if key is None:
            raise Problem(UNAUTHORISED, "this token is not known here, or was removed")
        if key.role != role:
            raise Problem(FORBIDDEN, f"expected an {role} token, got one for {key.role}")
        return key
