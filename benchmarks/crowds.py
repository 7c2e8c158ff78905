"""Compare the compiled kernels with plain Python and numpy, in one run.

    python -m benchmarks.crowds            about two minutes on two cores
    python -m benchmarks.crowds --quick    a tenth of the reports

Each alternative runs in the same process, best of several runs, so ratios are more reliable than
rates on a busy machine; the load average is printed. First calls run in new processes, with an
empty and with a full cache of compiled code.
"""

import argparse
import hashlib
import os
import subprocess
import sys
import tempfile
import time
import tracemalloc
from collections.abc import Callable
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from deniable.kernels.hashing.positions import bloom_positions, hash_pairs
from deniable.kernels.noise.noisy_rows import BitPositions, encode_rows
from deniable.kernels.noise.sampler import CERTAIN, Response

K, COHORTS, VALUES, HASHES = 128, 64, 100, 2
FIRST_CALL = """
import time
import numpy as np
from deniable.kernels.hashing.positions import bloom_positions, hash_pairs
from deniable.kernels.noise.noisy_rows import BitPositions, encode_rows
from deniable.kernels.noise.sampler import Response
began, used = time.perf_counter(), time.process_time()
{hashing}
places = BitPositions(np.zeros(9, np.int32), np.zeros(9, np.uint16), table)
both = Response(1 << 30, 3 << 30).after_permanent(1 << 30)
encode_rows(places, 128, both, np.random.default_rng(1))
print(time.perf_counter() - began, time.process_time() - used)
"""
NO_HASHING = "table = np.zeros((1, 1, 2), np.int32)"
HASHING = """x, y = hash_pairs(bytes(32), np.zeros(9, np.uint8), np.array([0, 9]))
table = bloom_positions(x, y, 1, 2, 128)"""


def best(work: Callable[[], object], repeats: int = 5) -> float:
    """Return the shortest of several runs in seconds, after one that warms up."""
    work()
    times = []
    for _ in range(repeats):
        began = time.perf_counter()
        work()
        times.append(time.perf_counter() - began)
    return min(times)


def line(name: str, count: float, seconds: float, peer: float = 0.0, unit: str = "M/s") -> None:
    """Print a rate in millions per second and the ratio to another rate, if given."""
    rate = count / seconds / 1e6
    ratio = f"  {rate / peer:7.1f}x" if peer else ""
    print(f"{name:56} {rate:9.2f} {unit}{ratio}", flush=True)


def crowd(rows: int) -> tuple[NDArray[np.int32], NDArray[np.uint16], NDArray[np.int32]]:
    """Draw values and cohorts, and a table of Bloom positions."""
    rng = np.random.default_rng(1)
    value = rng.integers(-1, VALUES, rows).astype(np.int32)
    cohort = rng.integers(0, COHORTS, rows).astype(np.uint16)
    return value, cohort, rng.integers(0, K, (COHORTS, VALUES, HASHES)).astype(np.int32)


def plain_numpy(
    value: NDArray[np.int32],
    cohort: NDArray[np.uint16],
    positions: NDArray[np.int32],
    p: float,
    q: float,
) -> NDArray[np.uint8]:
    """Encode with one random float per bit, in blocks that fit the cache; p, q may be p*, q*."""
    rng = np.random.default_rng(2)
    rows = len(value)
    out = np.empty((rows, K // 8), dtype=np.uint8)
    for start in range(0, rows, 1024):
        part = slice(start, start + 1024)
        bits = np.zeros((len(value[part]), K), dtype=bool)
        answered = np.flatnonzero(value[part] >= 0)
        places = positions[cohort[part][answered], value[part][answered]]
        bits[answered[:, None], places] = True
        noisy = rng.random(bits.shape) < np.where(bits, q, p)
        out[part] = np.packbits(noisy, axis=1, bitorder="little")
    return out


def encoding(rows: int) -> None:
    """Encode crowds at several probabilities, on one and two threads."""
    value, cohort, positions = crowd(rows)
    small = rows // 10
    seconds = best(lambda: plain_numpy(value[:small], cohort[:small], positions, 0.25, 0.75), 3)
    peer = small / seconds / 1e6
    line("encode 128 bits, plain numpy, a float per bit", small, seconds)
    cases = {
        "p=.25 q=.75": (1 << 30, 3 << 30, 0),
        "p=.25 q=.75 f=.5": (1 << 30, 3 << 30, 1 << 30),
        "p=.3 q=.6": (round(0.3 * CERTAIN), round(0.6 * CERTAIN), 0),
        "p=.3 q=.6 f=.3": (round(0.3 * CERTAIN), round(0.6 * CERTAIN), round(0.15 * CERTAIN)),
    }
    out = np.empty((rows, K // 8), dtype=np.uint8)
    places = BitPositions(value, cohort, positions)
    for name, (if_zero, if_one, phi) in cases.items():
        both = Response(if_zero, if_one).after_permanent(phi)
        for threads in (1, 2):

            def encode(both: Response = both, threads: int = threads) -> None:
                rng = np.random.default_rng(3)
                encode_rows(places, K, both, rng, out=out, threads=threads)

            line(f"encode 128 bits, {name}, {threads} threads", rows, best(encode), peer)
    tracemalloc.start()
    both = Response(1 << 30, 3 << 30).after_permanent(1 << 30)
    fresh = encode_rows(places, K, both, np.random.default_rng(3))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    print(f"encode, peak memory over packed output {peak / fresh.nbytes:.3f}")


def hashing(rows: int) -> None:
    """Hash candidates on one thread; compare with hashlib."""
    rng = np.random.default_rng(5)
    lengths = rng.integers(4, 20, rows)
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    data = rng.integers(97, 123, offsets[-1]).astype(np.uint8)
    header, small = bytes(32), rows // 20
    texts = [data[a:b].tobytes() for a, b in pairwise(offsets[: small + 1])]
    seconds = best(lambda: [hashlib.sha256(header + text).digest() for text in texts], 3)
    line("SHA-256 of 4 to 19 characters, hashlib", small, seconds)
    taken = best(lambda: hash_pairs(header, data, offsets, threads=1), 3)
    line("SHA-256, 1 thread", rows, taken, small / seconds / 1e6)
    x, y = hash_pairs(header, data[: offsets[10_000]], offsets[:10_001])
    taken = best(lambda: bloom_positions(x, y, COHORTS, HASHES, K, threads=1))
    line("Bloom positions, 1 thread", len(x) * COHORTS * HASHES, taken)


def first_calls() -> None:
    """Time first calls in new processes: nothing cached, then everything."""
    for name, part in (("encode", NO_HASHING), ("hash, positions, encode", HASHING)):
        with tempfile.TemporaryDirectory() as cache:
            for state in ("compiled", "cached"):
                answer = subprocess.run(
                    [sys.executable, "-c", FIRST_CALL.format(hashing=part)],
                    env={**os.environ, "NUMBA_CACHE_DIR": cache},
                    check=True,
                    capture_output=True,
                    text=True,
                ).stdout
                wall, used = (float(seconds) for seconds in answer.split())
                print(f"first call, {name}, {state} {wall:.2f} s, {used:.2f} s of processor")


def main() -> None:
    """Run everything and print the load before and after."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    rows = 100_000 if parser.parse_args().quick else 1_000_000
    print(f"load average {os.getloadavg()[0]:.1f}, {os.cpu_count()} processors")
    encoding(rows)
    hashing(rows)
    first_calls()
    print(f"load average {os.getloadavg()[0]:.1f}")


if __name__ == "__main__":
    main()
