"""Run every fault at once on one collector: python -m tests.faults.soak [--minutes 60] [--seed 1]

Devices, a gateway, retries, cut connections, slow clients and mistakes load the collector, while it
is killed and stopped, its clock jumps, and its store is compacted, analysed, exported, backed up
and checked. Nothing acknowledged may be lost, nothing counted twice, no answer may be undocumented,
and memory and open files of the process must not grow. All traffic stays on 127.0.0.1.

With --output FILE.json the run writes its data there; `python -m tests.faults.soak.plot` draws it.
The exit code is 1 if any promise was broken; the store and the log are then kept.
"""

from __future__ import annotations

import argparse
import asyncio
import shutil
import sys
import tempfile
from pathlib import Path

from tests.faults.results import write_json
from tests.faults.soak.collector import Plan, SoakedCollector
from tests.faults.soak.report import results
from tests.faults.soak.run import soak
from tests.faults.soak.verdict import judge


def show(line: str) -> None:
    print(line, flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--minutes", type=float, default=60.0, help="length of the run")
    parser.add_argument("--seed", type=int, default=1, help="seed of the schedule")
    parser.add_argument("--rate", type=float, default=Plan.rate, help="requests per second")
    parser.add_argument("--output", type=Path, metavar="FILE", help="write the data to this file")
    given = parser.parse_args()
    plan = Plan(60 * given.minutes, given.seed, given.rate)
    folder = Path(tempfile.mkdtemp(prefix="deniable-soak-"))
    run = SoakedCollector(folder, plan)
    asyncio.run(soak(run, show))
    judge(run)
    data = results(run)
    for row in data["tables"]["soak"]["rows"].values():
        show(f"{row[0]}: {row[1]}")
    if given.output:
        write_json(given.output, data)
        show(f"wrote {given.output}")
    for fault in run.seen.faults:
        show(f"FAULT {fault}")
    if run.seen.faults:
        sys.exit(f"{len(run.seen.faults)} faults; kept in {folder}")
    shutil.rmtree(folder)
    show("no faults")


if __name__ == "__main__":
    main()
