"""The key file: ingest and gateway keys for uploads, and analyst keys for reading results.

An ingest key is part of an app or a page, so it is public: like no key at all, it allows one report
per upload. Only a gateway key, which stays on a server, allows batches.

A token has 32 random bytes and is shown once; the file holds its SHA-256. 256 random bits cannot be
guessed, so neither a salt nor a slow hash is needed. A public id in the token names its entry.
"""

from __future__ import annotations

import hashlib
import json
import secrets
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from deniable.client.files import locked, replace_private
from deniable.errors import InputError, did_you_mean
from deniable.text_files import parse_json

FORMAT = "deniable-keys/1"
INGEST = "ingest"
GATEWAY = "gateway"
ANALYST = "analyst"
ROLES = (INGEST, GATEWAY, ANALYST)
GATEWAY_BATCH = 10_000
GATEWAY_QUOTA = 1_000_000
"""Defaults of a gateway key: reports per upload and per hour."""
TOKEN_PREFIX = "dn_"  # noqa: S105
ID_SIZE = 4
SECRET_SIZE = 32
"""Bytes of the public id and of the secret part of a token."""


@dataclass(frozen=True)
class Key:
    """One entry of the key file.

    id : public part of the token; name : chosen by the operator; role : one of `ROLES`;
    sha256 : hash of the token; quota : reports per hour, 0 for no limit;
    max_batch : reports per upload
    """

    id: str
    name: str
    role: str
    sha256: str
    quota: int = 0
    max_batch: int = 1

    def __post_init__(self) -> None:
        if self.role not in ROLES:
            hint = did_you_mean(self.role, ROLES)
            raise InputError(f"expected role {', '.join(ROLES)}; got {self.role!r}.{hint}")
        if type(self.quota) is not int or self.quota < 0:
            raise InputError(f"expected a quota of 0 or more reports per hour, got {self.quota!r}")
        if type(self.max_batch) is not int or self.max_batch < 1:
            raise InputError(
                f"expected a batch of at least 1 report per upload, got {self.max_batch!r}"
            )
        if self.max_batch > 1 and self.role != GATEWAY:
            raise InputError(
                f"only a {GATEWAY} key allows several reports per upload, not the {self.role} key "
                f"{self.name!r}"
            )
        if 0 < self.quota < self.max_batch:
            raise InputError(
                f"an upload of {self.max_batch} reports would never fit the quota of {self.quota} "
                "per hour: choose a smaller batch or a larger quota"
            )
        if not self.name or not self.name.isprintable() or len(self.name) > 64:
            raise InputError(f"expected a printable name of 1 to 64 characters, got {self.name!r}")
        if len(self.id) != 2 * ID_SIZE or len(self.sha256) != 64:
            raise InputError(f"key {self.name!r} has a damaged id or hash: remove and add it again")


def read(path: Path) -> list[Key]:
    """Return the keys in a file, or none if the file does not exist."""
    try:
        raw = parse_json(path.read_bytes(), f"the key file {path}")
        if raw["format"] != FORMAT:
            raise InputError(f"{path}: expected format {FORMAT!r}, got {raw['format']!r}")
        return [Key(**entry) for entry in raw["keys"]]
    except FileNotFoundError:
        return []
    except (KeyError, TypeError, AttributeError):
        raise InputError(f"{path} is not a key file, or one of its entries is damaged") from None


def check_exists(path: Path) -> None:
    """Raise InputError if there is no key file."""
    if not path.exists():
        raise InputError(f"there is no key file {path}: create it with `deniable keys add`")


def _write(path: Path, keys: Sequence[Key]) -> None:
    """Replace the content of the key file."""
    content = {"format": FORMAT, "keys": [asdict(key) for key in keys]}
    replace_private(path, json.dumps(content, indent=1).encode() + b"\n")


def add(
    path: Path, name: str, role: str, quota: int | None = None, max_batch: int | None = None
) -> str:
    """Create a token, add its hash to the file, and return the token, which is stored nowhere.

    quota, max_batch : as in `Key`; None for the defaults of the role
    """
    if quota and role == ANALYST:
        raise InputError("a quota limits uploads, and an analyst key does not allow any: omit it")
    if quota is None:
        quota = GATEWAY_QUOTA if role == GATEWAY else 0
    if max_batch is None:
        max_batch = min(GATEWAY_BATCH, quota or GATEWAY_BATCH) if role == GATEWAY else 1
    id, secret = secrets.token_hex(ID_SIZE), secrets.token_urlsafe(SECRET_SIZE)
    token = f"{TOKEN_PREFIX}{id}_{secret}"
    key = Key(id, name, role, hash_of(token), quota, max_batch)
    if not path.parent.is_dir():
        raise InputError(f"there is no folder {path.parent} for the key file: create it")
    read(path)  # a file of another kind gets no lock file next to it
    with locked(path):
        keys = read(path)
        if any(other.name == name for other in keys):
            raise InputError(f"{path} already has a key {name!r}: choose another name")
        _write(path, [*keys, key])
    return token


def remove(path: Path, name: str) -> None:
    """Remove a key from the file; a running collector reads the change."""
    check_exists(path)
    with locked(path):
        keys = read(path)
        names = [key.name for key in keys]
        if name not in names:
            hint = did_you_mean(name, names) or f" It has {', '.join(names) or 'no keys'}."
            raise InputError(f"{path} has no key {name!r}.{hint}")
        _write(path, [key for key in keys if key.name != name])


def id_of(token: str) -> str:
    """Return the public id in a token, which names its entry."""
    return token[len(TOKEN_PREFIX) : len(TOKEN_PREFIX) + 2 * ID_SIZE]


def hash_of(token: str) -> str:
    """Return the hash of a token that the key file holds."""
    return hashlib.sha256(token.encode("utf-8", "surrogateescape")).hexdigest()
