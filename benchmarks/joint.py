"""Measure joint fits, and compare them with a plain compiled loop: python -m benchmarks.joint

The alternative is the paper's EM, report by report, compiled by Numba, until a step is below 1e-6
(the usual rule) or for 30 s. It stops earlier than ours: behind its time is how far its
log-likelihood is from the maximum, in nats; ours is within 0.01. Our time includes checking, layout
of the rows, subsamples and the converged fit. The information matrix yields the standard errors;
with the inversion they are `covariance`. Its peer is the same sums as products of dense matrices.
The limit of a fit is the arithmetic of one pass over all reports, on two threads at the rate of
matrix products. About 3 minutes; `small` leaves N = 10⁶ out.
"""

from __future__ import annotations

import sys
import tempfile
import time
import warnings
from collections.abc import Iterator
from functools import partial

import numpy as np
import numpy.typing as npt
from experiments.direct_rows import bloom_rows, dependent_table, draw_cells
from numba import njit

from benchmarks.table import Row, best_of, of_process, seconds, show
from deniable.compute.executors import Threads, one_blas_thread
from deniable.inference.association.independence import score_test
from deniable.inference.joint.evidence import Evidence, gather
from deniable.inference.joint.solver import JointFit, maximise
from deniable.inference.joint.uncertainty import covariance

Rows = npt.NDArray[np.float32]
Floats = npt.NDArray[np.float64]

FIT_TARGETS = {
    (100_000, 6): 0.03,
    (100_000, 20): 0.3,
    (1_000_000, 20): 0.5,
    (1_000_000, 40): 8.0,
}
INFORMATION_TARGETS = {(1_000_000, 40): 2.0}
THREADS = 2
_PEER_LIMIT_S = 30.0
_FRESH = """
import numpy as np
from deniable.inference.joint.evidence import gather
from deniable.inference.joint.solver import maximise
a = np.random.default_rng(0).random((50000, 4), dtype=np.float32)
a /= a.max(axis=1, keepdims=True)
maximise(gather([(a, a)], (4, 4)))
"""


@njit(cache=True, nogil=True)
def em_step(a, b, table):  # type: ignore[no-untyped-def]
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


def em(a: Rows, b: Rows) -> tuple[Floats, float]:
    """EM until no cell moves by 1e-6, or until the time limit: table, seconds."""
    table = np.full((a.shape[1], b.shape[1]), 1.0 / (a.shape[1] * b.shape[1]))
    em_step(a[:10], b[:10], table)
    start, moved = time.perf_counter(), np.inf
    while moved >= 1e-6 and time.perf_counter() - start < _PEER_LIMIT_S:
        following = em_step(a, b, table)
        moved, table = float(np.abs(following - table).max()), following
    return table, time.perf_counter() - start


def simulated(count: int, size: int) -> tuple[Rows, Rows]:
    """Bloom rows, k = 128, h = 2, p = .25, q = .75, Zipf margins, some association."""
    rng = np.random.default_rng([count, size])
    values = draw_cells(dependent_table(size, size, strength=0.3), count, rng)
    cohorts = rng.integers(64, size=count)
    a, b = (bloom_rows(v, size, rng=rng, cohorts=cohorts) for v in values)
    return a, b


def product_rate() -> float:
    """Return the operations per second of float32 matrix products on one thread."""
    x = np.ones((2048, 2048), np.float32)
    with one_blas_thread():
        return 2 * 2048**3 / best_of(lambda: x @ x).processor


def fit_row(count: int, size: int, rate: float) -> tuple[Row, Evidence, JointFit]:
    """Fit one table until converged."""
    a, b = simulated(count, size)
    threads = Threads(THREADS)

    def fitted() -> tuple[Evidence, JointFit]:
        evidence = gather([(a, b)], (size, size), executor=threads)
        return evidence, maximise(evidence)

    evidence, fit = fitted()
    figure, peer = best_of(fitted, 3), ""
    if count <= 100_000:
        table, took = em(a, b)
        gap = evidence.evaluate(table / table.sum()).gap
        peer = f"{seconds(took)}, {gap:.3g} nats"
    limit = 4 * count * size**2 / rate / THREADS
    name = f"joint fit, {count:,} reports, {size} × {size}"
    return Row(name, figure, FIT_TARGETS[count, size], peer, limit), evidence, fit


def information_row(evidence: Evidence, fit: JointFit, rate: float) -> Row:
    """Compute one information matrix."""
    count, size = evidence.count, evidence.shape[0]
    products = 2 * count * (size * (size + 1) // 2) ** 2 / rate / THREADS
    figure = best_of(lambda: evidence.information(fit.table), 1 if size > 20 else 3)
    name = f"information matrix, {count:,} reports, {size} × {size}"
    target = INFORMATION_TARGETS.get((count, size), "")
    return Row(name, figure, target, f"{seconds(products)}: as matrix products")


def rows() -> Iterator[Row]:
    """Yield a converged fit, and an information matrix of a large table."""
    rate = product_rate()
    yield fit_row(1_000_000, 20, rate)[0]
    _, evidence, fit = fit_row(1_000_000, 40, rate)
    yield information_row(evidence, fit, rate)


def all_rows(small: bool) -> Iterator[Row]:
    """Yield fits of all sizes, what follows them, and the first fit in a new process."""
    rate = product_rate()
    for count, size in FIT_TARGETS:
        if small and count > 100_000:
            continue
        row, evidence, fit = fit_row(count, size, rate)
        yield row
        yield information_row(evidence, fit, rate)
        yield Row("  covariance", best_of(partial(covariance, evidence, fit.table), 1))
        yield Row("  score test", best_of(partial(score_test, evidence, shuffles=99), 1))
        for precise in (False, True):
            yield Row(
                f"  one pass in float{64 if precise else 32}",
                best_of(partial(evidence.evaluate, fit.table, precise=precise), 3),
            )
    with tempfile.TemporaryDirectory() as cache:
        for state in ("new", "warm"):
            figure = of_process([sys.executable, "-c", _FRESH], 1, {"NUMBA_CACHE_DIR": cache})
            yield Row(f"Python, imports and a first fit, {state} cache", figure)


if __name__ == "__main__":
    warnings.simplefilter("error")
    show(list(all_rows("small" in sys.argv[1:])))
