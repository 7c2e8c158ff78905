"""The cache of compiled kernels of a user who can write neither to the package nor to a home."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import ClassVar

import pytest

import deniable
from deniable.kernels import cache_folder, compiled
from deniable.kernels.cache_folder import private_cache_folder

PROGRAM = """
import numba  # without it, NumPy would count so few reports
import numpy as np
import deniable
from deniable.kernels.counting.bit_sums import count_ones
print(deniable.__file__)
print(count_ones(np.full((3, 1), 5, np.uint8), 4, np.zeros(3, np.int32), 1)[0].tolist())
"""


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder for temporary files like /tmp: all users may write, nobody may replace."""
    tmp_path.chmod(0o1777)
    monkeypatch.setattr(cache_folder.tempfile, "gettempdir", lambda: str(tmp_path))
    return tmp_path / f"deniable-{os.getuid()}"


def test_the_folder_is_the_users_alone_and_shared_by_processes(temporary: Path) -> None:
    temporary.parent.chmod(0o3777)  # new folders inherit the group, which has no rights
    assert private_cache_folder() == temporary
    assert not temporary.stat().st_mode & 0o077
    assert private_cache_folder() == temporary


@pytest.mark.parametrize("trap", ["link", "file", "writable", "readable"])
def test_what_another_user_may_have_prepared_is_refused(temporary: Path, trap: str) -> None:
    elsewhere = temporary.with_name("elsewhere")
    elsewhere.mkdir(mode=0o700)
    if trap == "link":
        temporary.symlink_to(elsewhere)
    elif trap == "file":
        temporary.touch()
    else:
        temporary.mkdir()
        temporary.chmod(0o777 if trap == "writable" else 0o755)
    assert private_cache_folder() is None


def test_a_folder_of_another_user_is_refused(
    temporary: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    user = os.getuid() + 1
    monkeypatch.setattr(os, "geteuid", lambda: user)
    temporary.with_name(f"deniable-{user}").mkdir(mode=0o700)
    assert private_cache_folder() is None


def test_a_folder_that_others_can_replace_is_refused(temporary: Path) -> None:
    temporary.parent.chmod(0o777)  # without the sticky bit
    assert private_cache_folder() is None


def test_a_folder_further_up_that_others_can_replace_is_refused(
    temporary: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    inner = temporary.with_name("outer") / "inner"
    inner.mkdir(parents=True, mode=0o700)
    monkeypatch.setattr(cache_folder.tempfile, "gettempdir", lambda: str(inner))
    inner.parent.chmod(0o755)
    assert private_cache_folder() == inner / temporary.name
    inner.parent.chmod(0o777)
    assert private_cache_folder() is None


def test_a_link_on_the_way_is_followed_once(
    temporary: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever owns the link could let it point elsewhere later."""
    target, link = temporary.with_name("target"), temporary.with_name("link")
    target.mkdir(mode=0o700)
    link.symlink_to(target)
    monkeypatch.setattr(cache_folder.tempfile, "gettempdir", lambda: str(link))
    assert private_cache_folder() == target / temporary.name


def test_the_cache_is_not_used_once_it_belongs_to_another(temporary: Path) -> None:
    """The system deletes old temporary files, and another user takes the name."""

    class Cache:
        used: ClassVar[list[str]] = []

        def load_overload(self, key: str) -> str:
            self.used.append("load")
            return key

        def save_overload(self, key: str, data: str) -> None:
            self.used.append("save")
            raise OSError(28, "No space left on device")

    folder, cache = private_cache_folder(), Cache()
    assert folder == temporary
    compiled._use_while_private(cache, folder)
    assert cache.load_overload("kernel") == "kernel"
    cache.save_overload("kernel", "code")
    folder.rmdir()
    assert cache.load_overload("kernel") == "kernel", "made again"
    assert not folder.stat().st_mode & 0o077
    folder.chmod(0o777)
    assert cache.load_overload("kernel") is None
    cache.save_overload("kernel", "code")
    assert cache.used == ["load", "save", "load"]


def test_no_folder_for_temporary_files(monkeypatch: pytest.MonkeyPatch) -> None:
    def nowhere() -> str:
        raise FileNotFoundError("No usable temporary directory found")

    monkeypatch.setattr(cache_folder.tempfile, "gettempdir", nowhere)
    assert private_cache_folder() is None


@pytest.mark.slow
@pytest.mark.parametrize("trap", [False, True])
def test_kernels_run_where_numba_finds_no_place(trap: bool, tmp_path: Path) -> None:
    """Files in place of the cache folders: not even root can write there."""
    packages = tmp_path / "packages"
    source = Path(deniable.__file__).parent
    shutil.copytree(source, packages / "deniable", ignore=shutil.ignore_patterns("__pycache__"))
    for folder in [*(packages / "deniable").rglob("*/"), packages / "deniable"]:
        (folder / "__pycache__").touch()
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    cache = temporary / f"deniable-{os.getuid()}"
    if trap:
        cache.mkdir()
        cache.chmod(0o777)
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("NUMBA", "XDG", "PYTHON"))}
    variables = {"HOME": "/dev/null/home", "TMPDIR": str(temporary), "PYTHONPATH": str(packages)}
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", PROGRAM],
        capture_output=True, text=True, env=kept | variables, cwd=tmp_path,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        str(packages / "deniable" / "__init__.py"), "[[3, 0, 3, 0]]",
    ]  # fmt: skip
    assert bool(list(cache.rglob("*.nbi"))) is not trap
