"""Compare a Dask cluster of two local workers with two threads, on the same likelihood rows.

Run:   python -m benchmarks.cluster       (about a minute on two cores)

N = 10⁶ reports, 20 × 20 cells. "Overhead" is the time of an exchange with both workers that has
almost nothing to compute, less the same with threads; the target is below 20 ms. "Solve" is a
converged fit, best of five, taken alternately so that both meet the same load, every round printed;
the target is at most 1.3 times the time of the threads. On a busy machine this ratio says little,
so the load is printed. The last line repeats the fit while a worker is killed, and includes the
time to compute its rows again.
"""

import json
import os
import signal
import time
from collections.abc import Callable
from functools import partial

import numpy as np
from deniable.compute.backend import Backend
from deniable.compute.dask.cluster import Dask
from experiments.direct_rows import bloom_rows, dependent_table, draw_cells

from deniable.compute.executors import Threads
from deniable.compute.progress import listening
from deniable.compute.rows import LikelihoodRows
from deniable.inference.joint.evidence import Evidence, evidence_of, gather
from deniable.inference.joint.solver import maximise

REPORTS, SIZE, ROUNDS = 1_000_000, 20, 5


def seconds(work: Callable[[], object]) -> float:
    """Return the wall-clock time of a function."""
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def exchange(evidence: Evidence, times: int = 20) -> float:
    """Return the seconds of a pass over eight reports per shard, on the workers of the shards."""
    kept = evidence.rows.hold(_eight)
    few = evidence_of(kept, evidence.shape, evidence.arrays)
    table = np.full((SIZE, SIZE), 1 / SIZE**2)
    return min(seconds(lambda: few.evaluate(table)) for _ in range(times))


def _eight(piece: LikelihoodRows) -> LikelihoodRows:
    return piece.drawn(8, 1)


def killing(cluster: Dask) -> Callable[[str, float], None]:
    """Return a progress listener that kills one worker, once."""
    left = list(cluster.client.run(os.getpid).values())[:1]

    def kill(stage: str, _: float) -> None:
        if stage == "fitting the table" and left:
            os.kill(left.pop(), signal.SIGKILL)

    return kill


def main() -> None:
    """Print one JSON line for the comparison, and one for the fit with a killed worker."""
    rng = np.random.default_rng(1)
    values = draw_cells(dependent_table(SIZE, SIZE, strength=0.3), REPORTS, rng)
    cohorts = rng.integers(64, size=REPORTS)
    pair = tuple(bloom_rows(v, SIZE, rng=rng, cohorts=cohorts) for v in values)
    with Dask(workers=2) as cluster:
        executors: dict[str, Backend] = {"threads": Threads(2), "dask": cluster}
        evidence = {
            name: gather([pair], (SIZE, SIZE), executor=executor)
            for name, executor in executors.items()
        }
        fits = {name: maximise(e) for name, e in evidence.items()}
        overhead = exchange(evidence["dask"]) - exchange(evidence["threads"])
        rounds = [
            {name: round(seconds(partial(maximise, e)), 3) for name, e in evidence.items()}
            for _ in range(ROUNDS)
        ]
        best = {name: min(each[name] for each in rounds) for name in evidence}
        print(json.dumps({
            "reports": REPORTS, "cells": f"{SIZE}x{SIZE}",
            "overhead_ms": round(1000 * overhead, 2), "overhead_ms_asked": 20,
            "rounds_s": rounds, "load": round(os.getloadavg()[0], 1),
            "ratio": round(best["dask"] / best["threads"], 2), "ratio_asked": 1.3,
            "same_bits": bool(np.array_equal(fits["dask"].table, fits["threads"].table)),
        }))  # fmt: skip
        with listening(killing(cluster)):
            start = time.perf_counter()
            again = maximise(evidence["dask"])
        print(json.dumps({
            "worker_killed_s": round(time.perf_counter() - start, 3),
            "same_bits": bool(np.array_equal(again.table, fits["threads"].table)),
        }))  # fmt: skip


if __name__ == "__main__":
    main()
