"""A private folder for compiled kernels, where Numba finds no place for its cache.

Numba caches next to the source files or in the user's home directory. A service account may be
able to write to neither. Compiled code is loaded and run, so the folder must be one that no other
user can write to or replace.
"""

from __future__ import annotations

import os
import stat
import tempfile
from functools import cache
from pathlib import Path

PRIVATE_MODE = 0o700


@cache
def private_cache_folder() -> Path | None:
    """Return a folder for temporary files that belongs to this user alone; None if impossible.

    All processes of the user share it, so that each kernel is compiled once.
    """
    try:
        parent = Path(tempfile.gettempdir())
        folder = parent / f"deniable-{os.getuid()}" if os.name == "posix" else parent / "deniable"
        folder.mkdir(mode=PRIVATE_MODE, exist_ok=True)
        return folder if _is_private(folder) else None
    except OSError:
        return None


def _is_private(folder: Path) -> bool:
    """Return whether only this user can write to the folder, or put another in its place."""
    if os.name != "posix":
        return True  # the folder for temporary files is in the user's profile
    found, parent = folder.lstat(), folder.parent.stat()
    others_may_write = parent.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
    return (
        stat.S_ISDIR(found.st_mode)
        and found.st_uid == os.getuid()
        and stat.S_IMODE(found.st_mode) == PRIVATE_MODE
        and (not others_may_write or bool(parent.st_mode & stat.S_ISVTX))
        and parent.st_uid in (0, os.getuid())
    )
