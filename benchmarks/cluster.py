"""Compare a Dask cluster of two local workers with two threads: python -m benchmarks.cluster

`associate`, N = 10⁶ reports in a file, 20 × 20 cells: the best of five, taken alternately so that
both meet the same load, every round printed. "Overhead" is the time of a pass over the cluster that
has almost nothing to compute. The last line repeats `associate` while a worker is killed.
"""

import json
import os
import signal
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
from distributed import Client, LocalCluster
from experiments.direct_rows import dependent_table, draw_cells

from benchmarks.decode import SURVEY
from deniable import associate, simulate
from deniable.columns import write
from deniable.compute.executors import executor_of
from deniable.results import Joint

REPORTS, SIZE, ROUNDS = 1_000_000, 20, 5


def seconds(work: Callable[[], object]) -> float:
    """Return the wall-clock time of a function."""
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def simulated(path: Path) -> dict[str, tuple[str, ...]]:
    """Write the reports, and return the candidates of both questions."""
    rng = np.random.default_rng(1)
    words = {name: tuple(f"{name}{i}" for i in range(SIZE)) for name in "xy"}
    values = draw_cells(dependent_table(SIZE, SIZE, strength=0.3), REPORTS, rng)
    answers = {n: np.array(words[n])[v].tolist() for n, v in zip("xy", values, strict=True)}
    write(path, simulate(SURVEY, answers, rng=rng))
    return words


def killing(client: Client) -> Callable[[str, float], None]:
    """Return a progress listener that kills one worker, once."""
    left = list(client.run(os.getpid).values())[:1]

    def kill(stage: str, _: float) -> None:
        if stage == "fitting the table" and left:
            os.kill(left.pop(), signal.SIGKILL)

    return kill


def main() -> None:
    """Print one JSON line for the comparison, and one for the fit with a killed worker."""
    with (
        tempfile.TemporaryDirectory() as folder,
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as local,
        Client(local) as client,
    ):
        path = Path(folder) / "reports.parquet"
        words = simulated(path)
        ask: partial[Joint] = partial(
            associate, SURVEY, path, ["x", "y"], candidates=words, top=SIZE - 1, fitted=SIZE - 1
        )
        executors = {"threads": "threads:2", "cluster": client}
        tables = {name: ask(executor=executor).table for name, executor in executors.items()}
        held = executor_of(client).hold(abs, range(16))
        overhead = min(seconds(partial(held.sum, abs)) for _ in range(20))
        rounds = [
            {n: round(seconds(partial(ask, executor=e)), 3) for n, e in executors.items()}
            for _ in range(ROUNDS)
        ]
        best = {name: min(each[name] for each in rounds) for name in executors}
        print(json.dumps({
            "reports": REPORTS, "cells": f"{SIZE}x{SIZE}",
            "overhead_ms": round(1000 * overhead, 1),
            "rounds_s": rounds, "load": round(os.getloadavg()[0], 1),
            "ratio": round(best["cluster"] / best["threads"], 2),
            "largest_difference": float(np.abs(tables["cluster"] - tables["threads"]).max()),
        }))  # fmt: skip
        start = time.perf_counter()
        again = ask(executor=client, progress=killing(client))
        print(json.dumps({
            "worker_killed_s": round(time.perf_counter() - start, 3),
            "largest_difference": float(np.abs(again.table - tables["threads"]).max()),
        }))  # fmt: skip


if __name__ == "__main__":
    main()
