"""The file of keys: ingest keys for uploads, analyst tokens for whatever reads results.

A token is 32 random bytes, shown once; the file holds its SHA-256. With 256 random bits there is
nothing to guess, so no salt and no slow hash is needed. A token names its entry by a public id.
"""

from __future__ import annotations

import hashlib
import json
import secrets
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from deniable.client.files import locked, replace_private
from deniable.errors import InputError

FORMAT = "deniable-keys/1"
ROLES = ("ingest", "analyst")
PREFIX = "dn_"
ID_SIZE = 4
TOKEN_SIZE = 32


@dataclass(frozen=True)
class Key:
    """One entry of the file. `quota` is in reports an hour; 0 is no limit."""

    id: str
    name: str
    role: str
    sha256: str
    quota: int = 0

    def __post_init__(self) -> None:
        if self.role not in ROLES:
            raise InputError(f"expected role {' or '.join(ROLES)}, got {self.role!r}")
        if type(self.quota) is not int or self.quota < 0:
            raise InputError(f"expected a quota of 0 or more reports an hour, got {self.quota!r}")
        if not self.name or not self.name.isprintable() or len(self.name) > 64:
            raise InputError(f"expected a printable name of 1 to 64 letters, got {self.name!r}")
        if len(self.id) != 2 * ID_SIZE or len(self.sha256) != 64:
            raise InputError(f"key {self.name!r} has a damaged id or hash: remove it and add it")


def read(path: Path) -> list[Key]:
    """The keys in the file; none if there is no file."""
    try:
        raw = json.loads(path.read_bytes())
        if raw["format"] != FORMAT:
            raise InputError(f"{path}: expected format {FORMAT!r}, got {raw['format']!r}")
        return [Key(**entry) for entry in raw["keys"]]
    except FileNotFoundError:
        return []
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise InputError(f"{path} is not a file of keys: {error}") from None


def _write(path: Path, keys: Sequence[Key]) -> None:
    content = {"format": FORMAT, "keys": [asdict(key) for key in keys]}
    replace_private(path, json.dumps(content, indent=1).encode() + b"\n")


def add(path: Path, name: str, role: str, quota: int = 0) -> str:
    """Make a token and add its hash to the file; returns the token, which is kept nowhere."""
    id, secret = secrets.token_hex(ID_SIZE), secrets.token_urlsafe(TOKEN_SIZE)
    token = f"{PREFIX}{id}_{secret}"
    key = Key(id, name, role, hash_of(token), quota)
    with locked(path):
        keys = read(path)
        if any(other.name == name for other in keys):
            raise InputError(f"{path} has a key {name!r} already: choose another name")
        _write(path, [*keys, key])
    return token


def remove(path: Path, name: str) -> None:
    """Take the key out of the file; a running collector notices."""
    with locked(path):
        keys = read(path)
        if all(key.name != name for key in keys):
            raise InputError(f"{path} has no key {name!r}; see `deniable keys list`")
        _write(path, [key for key in keys if key.name != name])


def id_of(token: str) -> str:
    """The public part of a token, which names its entry."""
    return token[len(PREFIX) : len(PREFIX) + 2 * ID_SIZE]


def hash_of(token: str) -> str:
    """What the file keeps of a token."""
    return hashlib.sha256(token.encode("utf-8", "surrogateescape")).hexdigest()
