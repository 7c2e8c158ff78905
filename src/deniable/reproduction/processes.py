"""Trials in processes of their own: one a processor, results in order."""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from typing import Any, TypeVar

from deniable.compute.progress import report_progress

Result = TypeVar("Result")
MIN_TASKS = 16
"""Fewer tasks run in this process: each new one would first have to load everything."""


def in_processes(
    function: Callable[..., Result], tasks: Sequence[tuple[Any, ...]], stage: str
) -> list[Result]:
    """[function(*task) for every task]; function is one of a module, what it takes and gives small.

    stage : name under which progress is reported
    """
    workers = min(os.cpu_count() or 1, len(tasks))
    results = []
    if workers <= 1 or len(tasks) < MIN_TASKS:
        for task in tasks:
            results.append(function(*task))
            report_progress(stage, len(results) / len(tasks))
        return results
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(workers, mp_context=context) as pool:
        for result in pool.map(function, *zip(*tasks, strict=True)):
            results.append(result)
            report_progress(stage, len(results) / len(tasks))
    return results
