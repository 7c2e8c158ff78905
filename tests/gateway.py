"""The gateway key of the collectors in tests, with which tests send batches."""

from __future__ import annotations

from pathlib import Path

from deniable.collector import keys

TOKEN = "dn_7e57c0de_" + "A" * 43
HEADERS = {"authorization": f"Bearer {TOKEN}"}


def add_to(file: Path, quota: int = 0, max_batch: int = 10**7) -> None:
    """Add the key to a key file, which is created if it does not exist."""
    key = keys.Key(keys.id_of(TOKEN), "tests", "gateway", keys.hash_of(TOKEN), quota, max_batch)
    keys._write(file, [*(old for old in keys.read(file) if old.name != key.name), key])
