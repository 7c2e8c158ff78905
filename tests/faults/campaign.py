"""Run every fault at full length: python -m tests.faults.campaign [--scale 0.02] [--only kill,slow]

Scale 1 takes about an hour. The program prints a row per fault, and the whole table at the end;
docs/results/reliability.md has the last one. The exit code is 1 if any promise was broken.
"""

from __future__ import annotations

import argparse
import math
import os
import platform
import shutil
import sys
import tempfile
import time
import traceback
from collections.abc import Callable
from pathlib import Path

from tests import postgres
from tests.faults import (
    campaign_stores,
    test_api,
    test_disk,
    test_durability,
    test_fuzz,
    test_kill,
    test_overload,
    test_postgres,
    test_repeats,
    test_slow,
    test_stop,
    test_two_collectors,
)

MIB = 1 << 20


def with_database(fault: Callable[[Path, postgres.Server, int], str]) -> Callable[[Path, int], str]:
    def run(folder: Path, count: int) -> str:
        with campaign_stores.server() as server:
            return fault(folder, server, count)

    return run


def compactor_killed(_: Path, stores: int) -> str:
    """Run on SQLite, in a folder and on PostgreSQL; the full count is shared by all three."""
    seen = [
        f"{store}: {campaign_stores.killed(name, 'compact')}"
        for store, name in list(campaign_stores.STORES.items())[:stores]
    ]
    if stores > len(campaign_stores.STORES):
        seen.append(f"PostgreSQL: {campaign_stores.killed_in_postgresql()}")
    return "; ".join(seen)


FAULTS: dict[str, tuple[str, int, Callable[[Path, int], str]]] = {
    "kill": ("kill −9 under load, SQLite", 500, test_kill.inflict),
    "kill-postgres": (
        "kill −9 under load, PostgreSQL", 50,
        with_database(lambda folder, server, kills: test_kill.inflict(folder, kills, server)),
    ),
    "two": (
        "kill −9 of two collectors on one file", 50,
        lambda folder, kills: test_two_collectors.inflict(folder, kills, f"{folder}/reports.db"),
    ),
    "two-folder": (
        "kill −9 of two collectors on one folder", 20,
        lambda folder, kills: test_two_collectors.inflict(folder, kills, f"{folder}/reports"),
    ),
    "order": ("sync before acknowledgement (strace)", 200, test_durability.inflict),
    "torn": ("SQLite logs cut, and torn", 1000, lambda _, count: campaign_stores.torn(count)),
    "repeats": ("uploads sent 1–5 times, connections cut", 20_000, test_repeats.inflict),
    "overload": ("3× overload, seconds", 60, test_overload.inflict),
    "disk": (
        "disk filling up, MiB", 256,
        lambda folder, mib: test_disk.inflict(folder, max(64, mib) * MIB, 16 * MIB),
    ),
    "disk-end": (
        "disk full to the last byte, MiB", 64,
        lambda folder, mib: test_disk.inflict(folder, max(16, mib) * MIB, 0),
    ),
    "parser": ("fuzzed bodies, parser", 5_000_000, lambda _, count: test_fuzz.parse(count)),
    "http": ("fuzzed requests, HTTP", 200_000, test_fuzz.inflict),
    "api": ("schemathesis, examples an operation", 500, test_api.inflict),
    "slow": ("slow headers, and slow bodies", 1000, test_slow.inflict),
    "stop": ("SIGTERM under load", 50, test_stop.inflict),
    "compactor": ("compactor killed at every step, stores", 3, compactor_killed),
    "postgres": (
        "PostgreSQL restarts, crashes, cuts", 100, with_database(test_postgres.inflict),
    ),
}  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scale", type=float, default=1.0, help="share of the full counts")
    parser.add_argument("--only", default="", help=f"some of {', '.join(FAULTS)}")
    options = parser.parse_args()
    chosen = options.only.split(",") if options.only else list(FAULTS)
    rows = ["| fault | count | seen | seconds |", "| --- | --- | --- | --- |"]
    failed = 0
    for name in chosen:
        title, full, fault = FAULTS[name]
        count = max(1, math.ceil(full * options.scale))
        folder = Path(tempfile.mkdtemp(prefix=f"deniable-{name}-"))
        start = time.monotonic()
        try:
            seen = fault(folder, count)
            shutil.rmtree(folder)
        except Exception:
            traceback.print_exc()
            failed += 1
            seen = f"**FAILED**, kept in {folder}"
        rows.append(f"| {title} | {count:,} | {seen} | {time.monotonic() - start:.0f} |")
        print(rows[-1], flush=True)
    print(
        f"\nPython {platform.python_version()}, {os.cpu_count()} processors, scale {options.scale}"
    )
    print("\n".join(rows))
    sys.exit(bool(failed))


if __name__ == "__main__":
    main()
