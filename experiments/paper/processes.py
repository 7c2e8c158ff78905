"""Trials in parallel processes."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from itertools import islice, starmap
from multiprocessing.queues import SimpleQueue
from typing import Any, TypeVar

from deniable.compute.progress import report_progress

Case = TypeVar("Case", bound=Hashable)
Outcome = TypeVar("Outcome")
Tasks = Sequence[tuple[Any, ...]]
MIN_TASKS = 16
"""Fewer tasks run in this process: starting others takes longer than it saves."""


def in_processes(function: Callable[..., Outcome], tasks: Tasks, stage: str) -> list[Outcome]:
    """Return function(*task) for every task, in order, with one process per processor.

    function : a function of a module, so that processes can import it
    stage : name under which progress is reported
    """
    workers = min(os.cpu_count() or 1, len(tasks))
    outcomes = []

    def collect(results: Any) -> list[Outcome]:
        for outcome in results:
            outcomes.append(outcome)
            report_progress(stage, len(outcomes) / len(tasks))
        return outcomes

    if workers <= 1 or len(tasks) < MIN_TASKS:
        return collect(starmap(function, tasks))
    others = set(multiprocessing.active_children())
    pool = process_pool(workers)
    try:
        with _interrupts_ignored():  # by the processes that start here, not by this one
            futures = [pool.submit(function, *task) for task in tasks]
        return collect(future.result() for future in futures)
    except BaseException:
        for process in set(multiprocessing.active_children()) - others:
            process.terminate()
        raise
    finally:
        pool.shutdown(cancel_futures=True)


def process_pool(workers: int) -> ProcessPoolExecutor:
    """Return a pool of processes with one processor each, so that threads do not compete."""
    context = multiprocessing.get_context("spawn")
    processors = context.SimpleQueue()
    allowed = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else []
    for i in range(workers if allowed else 0):
        processors.put(allowed[i % len(allowed)])
    start = (_use_one_processor, (processors,)) if allowed else (None, ())
    return ProcessPoolExecutor(workers, context, *start)


def _use_one_processor(processors: SimpleQueue[int]) -> None:
    """Keep this process on one of the processors."""
    os.sched_setaffinity(0, {processors.get()})


@contextmanager
def _interrupts_ignored() -> Iterator[None]:
    """Let processes that start meanwhile ignore Ctrl-C: this one ends them, without a traceback."""
    if threading.current_thread() is not threading.main_thread():
        yield  # only the main thread may change this
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def trials_by_case(
    function: Callable[..., Outcome], cases: Mapping[Case, Tasks], stage: str
) -> dict[Case, list[Outcome]]:
    """Run all trials of all cases in processes; return the outcomes of each case."""
    tasks = [task for trials in cases.values() for task in trials]
    outcomes = iter(in_processes(function, tasks, stage))
    return {case: list(islice(outcomes, len(trials))) for case, trials in cases.items()}
