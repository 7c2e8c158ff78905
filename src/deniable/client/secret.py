"""The client's secret: 32 random bytes in a file that only its owner can read.

Permanent noise, the cohort and all clear fields are derived from it. It never leaves the device. A
lost secret cannot be restored. A new secret draws new permanent noise for the same value, so its
privacy loss adds to the loss so far. The ledger (`ledger.py`) is a separate file and counts both.
"""

from __future__ import annotations

import os
from contextlib import suppress
from typing import TYPE_CHECKING

from deniable.client.files import make_private_folder, sync_folder, write_private
from deniable.errors import SecretError

if TYPE_CHECKING:
    from pathlib import Path

SECRET_SIZE = 32


def new_secret() -> bytes:
    """Return a new secret from the operating system's random number generator.

    Returns
    -------
    bytes
        32 random bytes. Keep them private, and never lose or replace them.

    Examples
    --------
    >>> len(new_secret())
    32
    """
    return os.urandom(SECRET_SIZE)


def load_secret(path: str | Path) -> bytes:
    """Read a secret from a file.

    Parameters
    ----------
    path : str or Path
        File that only its owner can read.

    Returns
    -------
    bytes
        The secret, 32 bytes.

    Raises
    ------
    SecretError
        If the file cannot be read, if other users can read it, or if its size is wrong.

    Examples
    --------
    >>> load_secret("/no/such/file")
    Traceback (most recent call last):
    deniable.errors.SecretError: cannot read the secret /no/such/file: ...
    """
    from pathlib import Path

    path = Path(path)
    try:
        if os.name == "posix" and (mode := path.stat().st_mode & 0o077):
            raise SecretError(
                f"other users can read or write the secret {path} (mode bits {mode:03o}): "
                f"run chmod 600 {path}, and assume that they know the secret"
            )
        data = path.read_bytes()
    except OSError as error:
        raise SecretError(f"cannot read the secret {path}: {error.strerror}") from None
    if len(data) != SECRET_SIZE:
        raise SecretError(
            f"the secret {path} must have {SECRET_SIZE} bytes, not {len(data)}: restore it from a "
            "backup; a new secret would spend privacy again"
        )
    return data


def load_or_create_secret(path: str | Path) -> bytes:
    """Read a secret from a file, and create the file on first use.

    Two processes that create it at the same time get the same secret.

    Parameters
    ----------
    path : str or Path
        File that only its owner can read; its folder is created if necessary.

    Returns
    -------
    bytes
        The secret, 32 bytes.

    Raises
    ------
    SecretError
        If the file cannot be read or created, if other users can read it, or if its size is wrong.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     first = load_or_create_secret(folder + "/secret")
    ...     first == load_or_create_secret(folder + "/secret")
    True
    """
    from pathlib import Path

    path = Path(path)
    if path.exists():
        return load_secret(path)
    temporary = path.with_name(f"{path.name}.{os.urandom(8).hex()}.tmp")
    try:
        make_private_folder(path.parent)
        write_private(temporary, new_secret())
        # Linking is atomic, and fails if another process was first.
        with suppress(FileExistsError):
            os.link(temporary, path)
        sync_folder(path.parent)
        sync_folder(path.parent.parent)
    except OSError as error:
        raise SecretError(
            f"cannot create the secret {path}: {error.strerror}; choose a folder "
            "that this user may write"
        ) from None
    finally:
        with suppress(OSError):
            temporary.unlink()
    return load_secret(path)
