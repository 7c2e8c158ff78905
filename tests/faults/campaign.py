"""Run every fault at full length: python -m tests.faults.campaign [--scale 0.02] [--only kill,slow]

Scale 1 takes about an hour. The program prints how far each fault is, a row per fault, and the
table at the end. With --output FILE.json it also replaces these rows in the data file of
docs/results/reliability.md. The exit code is 1 if any promise was broken.
"""

from __future__ import annotations

import argparse
import math
import shutil
import sys
import tempfile
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tools.markdown import markdown_table

from deniable.compute.progress import listening
from tests import postgres
from tests.faults import (
    campaign_stores,
    spoilt_files,
    test_api,
    test_disk,
    test_durability,
    test_fuzz,
    test_kill,
    test_overload,
    test_postgres,
    test_power_loss,
    test_repeats,
    test_slow,
    test_stop,
    test_two_collectors,
)
from tests.faults.results import Conditions, ProgressLines, write_rows

MIB = 1 << 20
TABLE = "collector"


@dataclass(frozen=True)
class Fault:
    """One fault: what is done, how often, and the function that does it.

    amount : text for the number of times; full, least : number of times at scale 1, and at least
    inflict : takes a folder, the number of times and a seed; returns what was seen
    """

    title: str
    amount: str
    full: int
    inflict: Callable[[Path, int, int], str]
    least: int = 1


def with_database(
    inflict: Callable[[Path, postgres.Server, int, int], str],
) -> Callable[[Path, int, int], str]:
    def run(folder: Path, count: int, seed: int) -> str:
        with campaign_stores.server() as server:
            return inflict(folder, server, count, seed)

    return run


FAULTS: dict[str, Fault] = {
    "kill-sqlite": Fault(
        "collector killed (SIGKILL) under load, SQLite", "{:,} kills", 500, test_kill.inflict,
    ),
    "kill-postgresql": Fault(
        "collector killed (SIGKILL) under load, PostgreSQL", "{:,} kills", 50,
        with_database(
            lambda folder, server, kills, seed: test_kill.inflict(folder, kills, seed, server)
        ),
    ),
    "two-collectors": Fault(
        "two collectors on one store, killed in turn", "{:,} kills", 20,
        lambda folder, kills, _: test_two_collectors.inflict(folder, kills),
    ),
    "sync": Fault(
        "order of sync and acknowledgement, observed with strace", "{:,} uploads", 200,
        lambda folder, uploads, _: test_durability.inflict(folder, uploads),
    ),
    "power": Fault(
        "power lost after each system call, with torn writes", "{:,} torn states per call", 20,
        lambda folder, torn, _: test_power_loss.inflict(folder, torn),
    ),
    "repeats": Fault(
        "uploads sent 1 to 5 times, connections cut", "{:,} uploads", 20_000, test_repeats.inflict,
    ),
    "overload": Fault(
        "three times the sustainable load", "{:,} seconds", 60,
        lambda folder, seconds, _: test_overload.inflict(folder, seconds),
    ),
    "disk": Fault(
        "disk fills up, with a reserve of 16 MiB", "{:,} MiB disk", 256,
        lambda folder, mib, _: test_disk.inflict(folder, mib * MIB, 16 * MIB), least=64,
    ),
    "disk-full": Fault(
        "disk fills up, without a reserve", "{:,} MiB disk", 64,
        lambda folder, mib, _: test_disk.inflict(folder, mib * MIB, 0), least=16,
    ),
    "fuzz-parser": Fault(
        "random bodies passed to the parser", "{:,} bodies", 5_000_000,
        lambda _, count, seed: test_fuzz.parse(count, seed),
    ),
    "fuzz-http": Fault("random HTTP requests", "{:,} requests", 200_000, test_fuzz.inflict),
    "files": Fault(
        "damaged files of every kind", "{:,} per kind", 6000,
        lambda folder, times, _: spoilt_files.inflict(folder, times),
    ),
    "schema": Fault(
        "requests generated from the OpenAPI description by schemathesis",
        "{:,} examples per operation", 500, test_api.inflict,
    ),
    "slow": Fault(
        "clients that send headers or bodies slowly", "{:,} each", 1000,
        lambda folder, slow, _: test_slow.inflict(folder, slow),
    ),
    "sigterm": Fault(
        "SIGTERM under load", "{:,} times", 50,
        lambda folder, stops, _: test_stop.inflict(folder, stops),
    ),
    "postgresql": Fault(
        "PostgreSQL restarted, crashed, connections cut", "{:,} times", 100,
        with_database(test_postgres.inflict),
    ),
}  # fmt: skip


def run(name: str, count: int, seed: int) -> str:
    """Inflict one fault in a folder of its own; return what was seen."""
    folder = Path(tempfile.mkdtemp(prefix=f"deniable-{name}-"))
    try:
        with listening(ProgressLines(name)):
            seen = FAULTS[name].inflict(folder, count, seed)
    except Exception:
        traceback.print_exc()
        return f"**FAILED**, kept in {folder}"
    shutil.rmtree(folder)
    return seen


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--scale", type=float, default=1.0, help="share of the full counts")
    parser.add_argument("--only", default="", help=f"some of {', '.join(FAULTS)}")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--output", type=Path, metavar="FILE", help="write the rows to this file")
    options = parser.parse_args()
    chosen = options.only.split(",") if options.only else list(FAULTS)
    if unknown := set(chosen) - FAULTS.keys():
        parser.error(f"there is no fault {', '.join(sorted(unknown))}: use {', '.join(FAULTS)}")
    rows: dict[str, list[str]] = {}
    for number, name in enumerate(chosen, 1):
        fault = FAULTS[name]
        count = max(fault.least, math.ceil(fault.full * options.scale))
        amount = fault.amount.format(count)
        print(f"[{number}/{len(chosen)}] {name}: {fault.title}, {amount}", flush=True)
        start = time.monotonic()
        rows[name] = [fault.title, amount, run(name, count, options.seed)]
        seconds = round(time.monotonic() - start, 1)
        print(f"{name}: {rows[name][-1]} ({seconds} s)", flush=True)
        if options.output and "FAILED" not in rows[name][-1]:
            conditions = Conditions(seconds, options.seed)
            write_rows(options.output, TABLE, {name: rows[name]}, {name: conditions})
    print(markdown_table(["Fault", "Amount", "Result"], rows.values()))
    sys.exit(any("FAILED" in row[-1] for row in rows.values()))


if __name__ == "__main__":
    main()
