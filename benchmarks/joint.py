"""Compare joint fits with a plain compiled loop and plain numpy, in one run on one machine.

Run:   python -m benchmarks.joint [small]       (about 3 minutes; `small` leaves N = 10⁶ out)

The alternatives are EM report by report in numba (until a step is below 1e-6, the usual rule) and
EM with numpy matrix products with the same rule, which stops earlier than ours: the distance of
their log-likelihood from the maximum is printed next to ours. Our time includes checking, layout of
the rows, subsamples and the converged fit. Best of three runs, since other programs only ever add
time. Targets are for two threads.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable

import numpy as np
import numpy.typing as npt
from experiments.direct_rows import bloom_rows, dependent_table, draw_cells
from numba import njit

from deniable.compute.cpu.threads import Threads
from deniable.inference.association.independence import score_test
from deniable.inference.joint.evidence import gather
from deniable.inference.joint.solver import JointFit, maximise
from deniable.inference.joint.uncertainty import covariance

Rows = npt.NDArray[np.float32]
Floats = npt.NDArray[np.float64]

TARGETS = {
    (100_000, 6): 0.03,
    (100_000, 20): 0.3,
    (1_000_000, 20): 0.6,
    (1_000_000, 40): 8.0,
}
_PEER_LIMIT_S = 30.0
_FRESH = """
import time
start = time.perf_counter()
import numpy as np
from deniable.inference.joint.evidence import gather
from deniable.inference.joint.solver import maximise
a = np.random.default_rng(0).random((50000, 4), dtype=np.float32)
a /= a.max(axis=1, keepdims=True)
loaded = time.perf_counter()
maximise(gather([(a, a)], (4, 4)))
print(loaded - start, time.perf_counter() - loaded)
"""


@njit(cache=True, nogil=True)
def loop_step(a, b, table):  # type: ignore[no-untyped-def]
    """One EM step, report by report."""
    m, n = table.shape
    expected = np.zeros((m, n))
    for k in range(len(a)):
        d = 0.0
        for i in range(m):
            for j in range(n):
                d += table[i, j] * a[k, i] * b[k, j]
        for i in range(m):
            for j in range(n):
                expected[i, j] += a[k, i] * b[k, j] / d
    return expected * table / len(a)


def numpy_step(a: Rows, b: Rows, table: Floats) -> Floats:
    """One EM step by matrix products."""
    d = np.einsum("kj,kj->k", a @ table, b)
    stepped: Floats = ((a / d[:, None]).T @ b) * table / len(a)
    return stepped


def em(step: Callable[[Rows, Rows, Floats], Floats], a: Rows, b: Rows) -> tuple[Floats, int, float]:
    """EM until no cell moves by 1e-6, or until the time limit: table, steps, seconds."""
    table = np.full((a.shape[1], b.shape[1]), 1.0 / (a.shape[1] * b.shape[1]))
    step(a[:10], b[:10], table)
    start = time.perf_counter()
    steps, moved = 0, np.inf
    while moved >= 1e-6 and time.perf_counter() - start < _PEER_LIMIT_S:
        following = step(a, b, table)
        moved = float(np.abs(following - table).max())
        table, steps = following, steps + 1
    return table, steps, time.perf_counter() - start


def best_of(runs: int, work: Callable[[], object]) -> float:
    """Shortest time of several runs, in seconds."""
    times = []
    for _ in range(runs):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return min(times)


def simulated(count: int, size: int) -> tuple[Rows, Rows]:
    """Bloom rows, k = 128, h = 2, p = .25, q = .75, Zipf margins, some association."""
    rng = np.random.default_rng([count, size])
    values = draw_cells(dependent_table(size, size, strength=0.3), count, rng)
    cohorts = rng.integers(64, size=count)
    a, b = (bloom_rows(v, size, rng=rng, cohorts=cohorts) for v in values)
    return a, b


def measure(count: int, size: int) -> None:
    """Print one JSON line for one problem size."""
    a, b = simulated(count, size)
    shape, threads = (size, size), Threads(2)

    def fitted() -> JointFit:
        return maximise(gather([(a, b)], shape, executor=threads))

    fit = fitted()
    line: dict[str, object] = {
        "reports": count,
        "cells": f"{size}x{size}",
        "fit_s": best_of(3, fitted),
        "target_s": TARGETS[count, size],
        "passes": fit.passes,
        "gap_nats": fit.gap_nats,
    }
    evidence = gather([(a, b)], shape, executor=threads)
    line["covariance_s"] = best_of(1 if size > 20 else 3, lambda: covariance(evidence, fit.table))
    line["score_test_s"] = best_of(1, lambda: score_test(evidence, shuffles=99))
    line["pass_float32_s"] = best_of(3, lambda: evidence.evaluate(fit.table, precise=False))
    line["pass_float64_s"] = best_of(3, lambda: evidence.evaluate(fit.table))
    if count <= 100_000:
        for name, step in (("numba_loop", loop_step), ("numpy", numpy_step)):
            table, steps, seconds = em(step, a, b)
            gap = evidence.evaluate(table / table.sum()).gap
            line[name] = {"s": round(seconds, 3), "steps": steps, "gap_nats": round(gap, 3)}
    print(json.dumps({k: round(v, 5) if isinstance(v, float) else v for k, v in line.items()}))


def first_call() -> None:
    """Print seconds of import and first fit in a fresh process: with an empty cache, then warm."""
    with tempfile.TemporaryDirectory() as cache:
        for state in ("new cache", "warm cache"):
            done = subprocess.run(
                [sys.executable, "-c", _FRESH],
                capture_output=True,
                text=True,
                check=True,
                env={**os.environ, "NUMBA_CACHE_DIR": cache},
            )
            imported, fitted = (round(float(part), 3) for part in done.stdout.split())
            print(json.dumps({"state": state, "import_s": imported, "first_fit_s": fitted}))


if __name__ == "__main__":
    warnings.simplefilter("error")
    first_call()
    for reports, categories in TARGETS:
        if reports <= 100_000 or "small" not in sys.argv[1:]:
            measure(reports, categories)
