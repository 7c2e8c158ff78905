"""Which mechanism measures a number best: bins by bits or by subsets, or square wave reporting.

    python -m experiments.number_mechanisms [--crowds 20] [--clients 20000] [--bins 32]

Clients hold numbers from 0 to 1 of five shapes. They report them at ε = 1, 2 and 4 by

bits      one bit per bin, each randomised (optimised unary encoding): what a survey file gives
subset    a random subset of the bins that is likely to hold the own one (subset selection)
wave      square wave reporting (Li et al., SIGMOD 2020): a number near the own one, estimated by
          expectation maximisation (EM), with or without smoothing in every step (EMS)

Estimates from bins are unbiased ("raw"), or the nearest shares that are not negative and sum to 1
("consistent"), or these smoothed by the weights 1, 2, 1 ("smooth"). The
tables have thousandths of the range, averages over all crowds: the Wasserstein distance from the
crowd's own distribution over the bins, and the absolute errors of its mean and of its quantiles .1,
.25, .5, .75 and .9. Square waves are fitted on a finer grid of 256 cells, as in their paper.
Quantiles of raw estimates are those of `results.Histogram`.
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np

from deniable.kernels.array_types import Floats, Indices

EPSILONS = (1.0, 2.0, 4.0)
QUANTILES = (0.1, 0.25, 0.5, 0.75, 0.9)
CELLS = 256
"""Cells of the grid on which square waves are fitted, a multiple of the number of bins."""
KERNEL = np.array([0.25, 0.5, 0.25])
SPIKES = np.array([0.1, 0.2, 0.5, 0.6, 0.9])
Rng = np.random.Generator

SHAPES: dict[str, Callable[[int, Rng], Floats]] = {
    "uniform": lambda n, rng: rng.random(n),
    "normal": lambda n, rng: rng.normal(0.5, 0.12, n),
    "skewed": lambda n, rng: np.exp(rng.normal(-2.0, 0.8, n)),
    "bimodal": lambda n, rng: rng.normal(np.where(rng.random(n) < 0.4, 0.25, 0.7), 0.07),
    "spiky": lambda n, rng: np.where(
        rng.random(n) < 0.7, rng.choice(SPIKES, n) + 0.005, rng.random(n)
    ),
}
"""Numbers of n clients; those outside 0 to 1 are moved to the nearest end."""


@dataclass(frozen=True)
class Crowd:
    """Clients with numbers from 0 to 1; number : float64[n]; bins : number of bins."""

    number: Floats
    bins: int

    @property
    def bin(self) -> Indices:
        """Bin of each client."""
        return np.asarray(np.minimum((self.number * self.bins).astype(np.intp), self.bins - 1))

    @property
    def shares(self) -> Floats:
        """Share of the clients in each bin."""
        return np.bincount(self.bin, minlength=self.bins) / len(self.number)


def bits(crowd: Crowd, epsilon: float, rng: Rng) -> Floats:
    """Return the unbiased estimates of optimised unary encoding."""
    p, q, n = 1 / (np.exp(epsilon) + 1), 0.5, len(crowd.number)
    own = np.bincount(crowd.bin, minlength=crowd.bins)
    ones = rng.binomial(own, q) + rng.binomial(n - own, p)
    return np.asarray((ones / n - p) / (q - p))


def subsets(crowd: Crowd, epsilon: float, rng: Rng) -> Floats:
    """Return the unbiased estimates of subset selection."""
    d, n, e = crowd.bins, len(crowd.number), np.exp(epsilon)
    w = max(1, round(d / (e + 1)))
    p = w * e / (w * e + d - w)
    q = p * (w - 1) / (d - 1) + (1 - p) * w / (d - 1)
    order = rng.random((n, d))
    # The own bin comes first or last, so that it is among the w smallest or not.
    order[np.arange(n), crowd.bin] = np.where(rng.random(n) < p, -1.0, 2.0)
    chosen = np.argpartition(order, w - 1, axis=1)[:, :w]
    counts = np.bincount(chosen.ravel(), minlength=d)
    return np.asarray((counts / n - q) / (p - q))


def square_wave(crowd: Crowd, epsilon: float, rng: Rng, smooth: bool) -> Floats:
    """Return the estimates of square wave reporting by EM; smooth : in every step (EMS)."""
    e, n, d = np.exp(epsilon), len(crowd.number), CELLS
    b = (epsilon * e - e + 1) / (2 * e * (e - 1 - epsilon))
    near = 2 * b * e / (2 * b * e + 1)  # probability of a number within b of the own one
    close = crowd.number + rng.uniform(-b, b, n)
    far = rng.random(n)  # the rest of [−b, 1 + b] has the length 1
    far = np.where(far < crowd.number, far - b, far + b)
    report = np.where(rng.random(n) < near, close, far)
    outputs = np.linspace(-b, 1 + b, d + 1)
    counts = np.histogram(report, outputs)[0]
    # P(output bin | bin), for numbers that are uniform within a bin.
    middle = (np.arange(4 * d) + 0.5) / (4 * d)
    overlap = np.minimum(outputs[1:, None], middle + b) - np.maximum(outputs[:-1, None], middle - b)
    width = outputs[1] - outputs[0]
    overlap = np.maximum(overlap, 0.0)
    channel = near / (2 * b) * overlap + (1 - near) * (width - overlap)
    channel = channel.reshape(d, d, 4).mean(axis=2)
    share, last = np.full(d, 1 / d), -np.inf
    for _ in range(10_000):
        mixture = channel @ share
        share = share * (channel.T @ (counts / mixture))
        if smooth:
            share = smoothed(share)
        share /= share.sum()
        likelihood = float(counts @ np.log(channel @ share))
        if likelihood - last < (1e-3 if smooth else 1e-3 * e):
            break
        last = likelihood
    return np.asarray(share.reshape(crowd.bins, -1).sum(axis=1))


def smoothed(share: Floats) -> Floats:
    """Return shares averaged with their neighbours; the ends keep what would leave the range."""
    padded = np.concatenate([share[:1], share, share[-1:]])
    return np.convolve(padded, KERNEL, "valid")


def consistent(estimate: Floats) -> Floats:
    """Return the nearest shares that are at least 0 and sum to 1."""
    ordered = np.sort(estimate)[::-1]
    excess = (np.cumsum(ordered) - 1.0) / np.arange(1, len(ordered) + 1)
    shares = np.maximum(estimate - max(excess[ordered > excess][-1], 0.0), 0.0)
    return np.asarray(shares / shares.sum())


METHODS: dict[str, Callable[[Crowd, float, Rng], Floats]] = {
    "bits, raw": bits,
    "bits, consistent": lambda *given: consistent(bits(*given)),
    "bits, smooth": lambda *given: smoothed(consistent(bits(*given))),
    "subset, raw": subsets,
    "subset, consistent": lambda *given: consistent(subsets(*given)),
    "subset, smooth": lambda *given: smoothed(consistent(subsets(*given))),
    "wave, EM": partial(square_wave, smooth=False),
    "wave, EMS": partial(square_wave, smooth=True),
}


def errors(crowd: Crowd, estimate: Floats) -> tuple[float, float, float]:
    """Return the Wasserstein distance, and the errors of the mean and of the quantiles."""
    edges = np.linspace(0, 1, crowd.bins + 1)
    share = estimate / estimate.sum()
    below, true = (np.concatenate([[0.0], np.cumsum(s)]) for s in (share, crowd.shares))
    mean = float(share @ (edges[1:] + edges[:-1]) / 2)
    above = np.maximum.accumulate(below)
    rising = (above + np.minimum.accumulate(below[::-1])[::-1]) / 2
    quantiles = np.interp(QUANTILES, rising, edges) - np.quantile(crowd.number, QUANTILES)
    wasserstein = float(np.abs(below - true).mean())
    return wasserstein, abs(mean - crowd.number.mean()), float(np.abs(quantiles).mean())


def measure(
    crowds: int, clients: int, bins: int, seed: int
) -> dict[tuple[float, str, str], Floats]:
    """Return the average errors by ε, method and shape."""
    rng, sums = (
        np.random.default_rng(seed),
        defaultdict[tuple[float, str, str], Floats](lambda: np.zeros(3)),
    )
    for _ in range(crowds):
        for shape, draw in SHAPES.items():
            crowd = Crowd(np.clip(draw(clients, rng), 0.0, 1.0), bins)
            for epsilon in EPSILONS:
                for name, method in METHODS.items():
                    found = errors(crowd, method(crowd, epsilon, rng))
                    sums[epsilon, name, shape] += np.array(found) / crowds
    return dict(sums)


def main() -> None:
    """Print one table per kind of error and ε."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    for name, usual in (("crowds", 20), ("clients", 20_000), ("bins", 32), ("seed", 1)):
        parser.add_argument(f"--{name}", type=int, default=usual)
    given = parser.parse_args()
    found = measure(**vars(given))
    print(f"{given.clients:,} clients, {given.bins} bins, {given.crowds} crowds, seed {given.seed}")
    for kind, title in enumerate(("Wasserstein distance", "error of the mean", "of quantiles")):
        for epsilon in EPSILONS:
            print(f"\n{title}, ε = {epsilon:g}, thousandths of the range")
            print(f"{'':20}" + "".join(f"{shape:>10}" for shape in (*SHAPES, "average")))
            for name in METHODS:
                row = [1000 * found[epsilon, name, shape][kind] for shape in SHAPES]
                numbers = "".join(f"{x:10.2f}" for x in (*row, np.mean(row)))
                print(f"{name:20}{numbers}")


if __name__ == "__main__":
    main()
