"""A private folder for compiled kernels, where Numba finds no place for its cache.

Numba caches next to the source files or in the user's home directory. A service account may be
able to write to neither. Compiled code is loaded and run, so the folder must be one that no other
user can write to or replace.
"""

from __future__ import annotations

import os
import stat
import tempfile
from pathlib import Path

PRIVATE_MODE = 0o700
OTHERS_MAY_WRITE = stat.S_IWGRP | stat.S_IWOTH


def private_cache_folder() -> Path | None:
    """Return a folder for temporary files that belongs to this user alone; None if impossible.

    All processes of the user share it, so that each kernel is compiled once.
    """
    try:
        parent = Path(tempfile.gettempdir()).resolve(strict=True)
    except OSError:
        return None
    folder = parent / (f"deniable-{os.geteuid()}" if os.name == "posix" else "deniable")
    return folder if make_private(folder) else None


def make_private(folder: Path) -> bool:
    """Create the folder if it does not exist; return whether it belongs to this user alone.

    Ask before each use: the system may delete old temporary files while a program runs, and then
    anyone can create a folder of this name.
    """
    try:
        folder.mkdir(mode=PRIVATE_MODE, exist_ok=True)
        return _is_private(folder)
    except OSError:
        return False


def _is_private(folder: Path) -> bool:
    """Return whether only this user can write to the folder, or put another in its place.

    The path must have no symbolic links.
    """
    if os.name != "posix":
        return True  # the folder for temporary files is in the user's profile
    found, user = folder.lstat(), os.geteuid()
    return (
        stat.S_ISDIR(found.st_mode)
        and found.st_uid == user
        and not found.st_mode & (stat.S_IRWXG | stat.S_IRWXO)
        and all(_keeps_names(parent.lstat(), user) for parent in folder.parents)
    )


def _keeps_names(folder: os.stat_result, user: int) -> bool:
    """Return whether no other user but root can rename or delete this user's files in a folder."""
    sticky = bool(folder.st_mode & stat.S_ISVTX)
    return folder.st_uid in (0, user) and (sticky or not folder.st_mode & OTHERS_MAY_WRITE)
