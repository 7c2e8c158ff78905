"""Fill the disk: uploads get 507 in time, acknowledged ones are kept, the collector recovers."""

from __future__ import annotations

import asyncio
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.faults.crowd import Crowd, differences
from tests.faults.server import Server
from tests.faults.traffic import Connection, TrafficCounts, request

MIB = 1 << 20


@contextmanager
def small_disk(folder: Path, mib: int) -> Iterator[Path]:
    """Mount a small file system."""
    place = folder / "disk"
    place.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={mib}m", "tmpfs", str(place)], check=True)
    try:
        yield place
    finally:
        subprocess.run(["umount", str(place)], check=True)


def can_mount() -> bool:
    """Return whether this process may mount file systems, which root in a container may not."""
    if os.geteuid() != 0:
        return False
    probe = ["unshare", "-m", "mount", "-t", "tmpfs", "tmpfs", "/tmp"]
    return subprocess.run(probe, capture_output=True).returncode == 0


needs_mount = pytest.mark.skipif(
    not can_mount(), reason="mounting a small disk needs root: sudo make test"
)


async def _until(port: int, crowd: Crowd, seen: TrafficCounts, wanted: int, most: int) -> None:
    """Upload until the answer has this status."""
    line = Connection(port)
    for _ in range(most):
        one = crowd.upload()
        status, _ = await line.send(request(one.body, one.key))
        seen.answers[status] += 1
        one.acknowledged = status == 202
        if status == wanted:
            line.close()
            return
        await asyncio.sleep(0.05 if status == 507 else 0)
    raise AssertionError(f"never answered {wanted}: {seen.answers}")


def inflict(folder: Path, size: int, reserve: int) -> str:
    """Fill the disk, free some space, and continue. Without a reserve the disk fills completely."""
    crowd, seen = Crowd(5000), TrafficCounts()
    with small_disk(folder, size // MIB) as place:
        filler = place / "filler"
        filler.write_bytes(bytes(size // 4))
        with Server(place, "--reserve", str(reserve)) as server:
            most = max(1000, size // (32 << 10))
            asyncio.run(_until(server.port, crowd, seen, 507, most))
            taken = crowd.acknowledged()
            left = os.statvfs(place).f_bavail * os.statvfs(place).f_frsize
            assert server.get("/healthz")[0] == 200
            if reserve:
                assert server.get("/readyz")[0] == 503
                assert left > 0, "the reserve was used up"
            filler.unlink()
            asyncio.run(_until(server.port, crowd, seen, 202, 100))
            server.stop()
        assert set(seen.answers) == {202, 507}, seen.answers
        assert not (wrong := differences(server.url, crowd)), wrong
    return (
        f"refused with 507 after {taken:,} uploads with {left / MIB:.1f} MiB left, none lost; "
        "accepted again when space returned"
    )


@needs_mount
@pytest.mark.parametrize("reserve", [6 * MIB, 0])
def test_disk(reserve: int, tmp_path: Path) -> None:
    print(inflict(tmp_path, 16 * MIB, reserve))
