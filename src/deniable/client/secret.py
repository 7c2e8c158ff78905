"""The client's secret: 32 bytes from the operating system, in a file that only its owner can read.

Permanent noise, the cohort and every clear field are derived from it. It never leaves the device. A
lost secret cannot be made again, and a new one is a new spend: it draws new noise for the same
value, which adds to what was told before. The ledger (`ledger.py`) outlives the secret and counts
both.
"""

from __future__ import annotations

import os
from contextlib import suppress
from typing import TYPE_CHECKING

from deniable.client.files import sync_folder, write_private
from deniable.errors import SecretError

if TYPE_CHECKING:
    from pathlib import Path

SECRET_SIZE = 32


def new_secret() -> bytes:
    """A fresh secret from the operating system."""
    return os.urandom(SECRET_SIZE)


def load_secret(path: str | Path) -> bytes:
    """The secret in this file; refused if others can read it or its size is wrong."""
    from pathlib import Path

    path = Path(path)
    try:
        if os.name == "posix" and (mode := path.stat().st_mode & 0o077):
            raise SecretError(
                f"{path} can be read or written by others (mode bits {mode:03o}): "
                f"run chmod 600 {path}, and consider the secret known"
            )
        data = path.read_bytes()
    except OSError as error:
        raise SecretError(f"cannot read the secret {path}: {error}") from None
    if len(data) != SECRET_SIZE:
        raise SecretError(
            f"{path} has {len(data)} bytes, a secret has {SECRET_SIZE}: restore it from a backup; "
            "deleting it makes a new secret, which is a new spend"
        )
    return data


def load_or_create_secret(path: str | Path) -> bytes:
    """The secret in this file, made on first use. Two processes at once get the same one."""
    from pathlib import Path

    path = Path(path)
    if path.exists():
        return load_secret(path)
    temporary = path.with_name(f"{path.name}.{os.urandom(8).hex()}.tmp")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_private(temporary, new_secret())
        # A link appears whole or not at all, and fails if another process was first.
        with suppress(FileExistsError):
            os.link(temporary, path)
        sync_folder(path.parent)
        sync_folder(path.parent.parent)
    except OSError as error:
        raise SecretError(f"cannot make the secret {path}: {error}") from None
    finally:
        temporary.unlink(missing_ok=True)
    return load_secret(path)
