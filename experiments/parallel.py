"""Many crowds at once: one process per processor, each with one thread."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

from experiments.paper.processes import process_pool

Task = TypeVar("Task")
Result = TypeVar("Result")
THREADS = ("NUMBA_NUM_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


def in_processes(
    work: Callable[[Task], Result], tasks: Iterable[Task], jobs: int
) -> Iterator[Result]:
    """Yield `work(task)` of every task, in their order.

    `work` is a function of a module, and a task holds all that it needs, its seed included: then
    the results do not depend on the number of processes. One process is this one, for debugging.
    """
    if jobs == 1:
        yield from map(work, tasks)
        return
    os.environ.update(dict.fromkeys(THREADS, "1"))  # inherited by the processes started below
    with process_pool(jobs) as pool:
        yield from pool.map(work, tasks)


def crowd_arguments(description: str, crowds: int, seed: int = 1) -> argparse.Namespace:
    """Return what the command line says: `--crowds`, `--jobs`, `--seed`."""
    parser = argparse.ArgumentParser(description=description.splitlines()[0])
    parser.add_argument("--crowds", type=int, default=crowds, help="crowds per row of the table")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes")
    parser.add_argument("--seed", type=int, default=seed)
    return parser.parse_args()
