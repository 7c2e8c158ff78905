"""The command line of the mutation tests; see the package."""

from __future__ import annotations

import argparse
import sys

from tools.mutants.catalogue import Mutant, mutants
from tools.mutants.record import write_record
from tools.mutants.runner import (
    Limits,
    NoTests,
    Outcome,
    copies,
    limits_of,
    run,
    stop_on_signals,
    warm,
)

PROCESSES = 2


def main() -> int:
    """Run or list mutants, and return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m tools.mutants", description=__doc__)
    parser.add_argument("action", nargs="?", choices=["run", "list"], default="run")
    parser.add_argument("--only", default="", help="mutants whose name contains this")
    parser.add_argument("--area", default="", help="mutants of this area")
    parser.add_argument("--trust", action="store_true", help="do not run the tests without mutants")
    parser.add_argument("--write", action="store_true", help="write docs/results/data/mutants.json")
    options = parser.parse_args()
    try:
        found = mutants()
    except LookupError as error:
        print(error.args[0], file=sys.stderr)
        return 2
    chosen = [m for m in found if options.only in m.name and options.area in m.area]
    if options.action == "list":
        for mutant in chosen:
            print(f"[{mutant.area}] {mutant.name}{' (equivalent)' * bool(mutant.equivalent)}")
        return 0
    try:
        outcomes = _run(chosen, options.trust)
    except NoTests as error:
        print(error, file=sys.stderr)
        return 2
    if options.write:
        write_record(found, outcomes)
    survivors = [outcome for outcome in outcomes if not outcome.caught]
    for outcome in survivors:
        print(f"SURVIVED {outcome.mutant.name}\n  tests: {' '.join(outcome.mutant.tests)}")
    print(f"{len(outcomes) - len(survivors)} of {len(outcomes)} mutants caught")
    return int(bool(survivors))


def _run(chosen: list[Mutant], trust: bool) -> list[Outcome]:
    """Run the mutants that are not equivalent, and print each outcome."""
    tried = [mutant for mutant in chosen if not mutant.equivalent]
    done = 0

    def progress(outcome: Outcome) -> None:
        nonlocal done
        done += 1
        how = f"caught by {outcome.by}" if outcome.caught else "SURVIVED"
        print(f"[{done}/{len(tried)}] {outcome.mutant.name}", flush=True)
        print(f"    {how} ({outcome.seconds:.0f} s)", flush=True)

    stop_on_signals()
    with copies(PROCESSES) as folders:
        print("compiling kernels in copies of the repository ...", flush=True)
        warm(folders)
        limits: Limits = {}
        if not trust:
            print("running the tests without mutants ...", flush=True)
            limits = limits_of(tried, folders)
        return run(tried, folders, limits, progress)


if __name__ == "__main__":
    sys.exit(main())
