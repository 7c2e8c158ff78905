"""Files that only their owner can read, and that are replaced atomically."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from deniable.errors import InputError, LedgerError, check_path

if TYPE_CHECKING:
    from pathlib import Path

PRIVATE_MODE = 0o600
"""File mode: readable and writable by the owner only."""
PRIVATE_FOLDER_MODE = 0o700


def expanded(folder: str | Path) -> Path:
    """Return the path with ~ replaced by the home directory; raise InputError if there is none."""
    from pathlib import Path

    check_path("folder", folder)
    try:
        return Path(folder).expanduser()
    except RuntimeError:
        raise InputError(
            f"this user has no home directory for {folder}: name a folder by its whole path"
        ) from None


def sync_folder(folder: Path) -> None:
    """Make renames in this folder survive a power failure, where the system supports it."""
    if os.name != "posix":
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def make_private_folder(folder: Path) -> None:
    """Create a folder, and folders above it, durably; only their owner can use them."""
    missing = [each for each in (folder, *folder.parents) if not each.exists()]
    for each in reversed(missing):
        each.mkdir(PRIVATE_FOLDER_MODE, exist_ok=True)
        sync_folder(each.parent)


def check_unshared(path: Path) -> None:
    """Raise LedgerError if others can change the file, or everybody can replace it."""
    if os.name != "posix":
        return
    for each, forbidden, mode in ((path.parent, 0o002, "700"), (path, 0o022, "600")):
        found = each.stat().st_mode
        if found & forbidden and not (each is not path and found & stat.S_ISVTX):
            raise LedgerError(
                f"other users can change {each} (mode bits {found & 0o777:03o}), so the spent "
                f"privacy loss is uncertain: run chmod {mode} {each}"
            )


def write_private(path: Path, data: bytes) -> None:
    """Write and sync a new file with mode 0600; delete any file of that name first."""
    with suppress(FileNotFoundError):
        path.unlink()
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, PRIVATE_MODE)
    with os.fdopen(descriptor, "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def replace_private(path: Path, data: bytes) -> None:
    """Replace a file atomically: a reader sees the old bytes or the new ones.

    Call it under `locked`: the name of the temporary file is fixed, so that killed processes leave
    at most one behind.
    """
    temporary = path.with_name(path.name + ".tmp")
    write_private(temporary, data)
    os.replace(temporary, path)
    sync_folder(path.parent)


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold the lock file of this file; the system releases it if the process is killed."""
    lock = path.with_name(path.name + ".lock")
    descriptor = os.open(lock, os.O_RDWR | os.O_CREAT, PRIVATE_MODE)
    try:
        _wait_for_lock(descriptor)
        yield
    finally:
        os.close(descriptor)


if os.name == "posix":
    import fcntl

    def _wait_for_lock(descriptor: int) -> None:
        """Wait until this process holds the lock."""
        fcntl.flock(descriptor, fcntl.LOCK_EX)

else:  # pragma: no cover - Windows
    import msvcrt
    import time

    def _wait_for_lock(descriptor: int) -> None:
        """Wait until this process holds the lock."""
        while True:
            with suppress(OSError):
                msvcrt.locking(descriptor, msvcrt.LK_LOCK, 1)  # type: ignore[attr-defined]
                return
            time.sleep(0.05)
