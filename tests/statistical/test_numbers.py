"""Intervals of means and medians contain the truth, and the test of a trend has its level.

Each check states how often a right implementation would fail it on a fresh seed, and a plausible
mistake must fail the same check.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from deniable.inference.marginal.bit_counts import BitCounts
from deniable.inference.models.options import OptionModel
from deniable.kernels.array_types import Floats
from deniable.protocols.bins import bin_labels, linear_edges
from deniable.results import Histogram

P, Q = 1 / (np.e + 1), 0.5
"""Noise of bits at ε = 1."""
CROWDS = 800


def bimodal(n: int, rng: np.random.Generator) -> Floats:
    return np.clip(rng.normal(np.where(rng.random(n) < 0.4, 25.0, 60.0), 8.0), 0.0, 100.0)


def skewed(n: int, rng: np.random.Generator) -> Floats:
    return np.clip(np.exp(rng.normal(2.5, 0.8, n)), 0.0, 100.0)


POPULATIONS = {"bimodal": bimodal, "skewed": skewed}


@cache
def truth(population: str) -> tuple[float, float]:
    """Mean and median of the population, from two million clients: errors below 0.05."""
    numbers = POPULATIONS[population](2_000_000, np.random.default_rng(0))
    return float(numbers.mean()), float(np.median(numbers))


@cache
def histograms(population: str, clients: int, bins: int, answered: float) -> list[Histogram]:
    """Histograms of new crowds; a share of the clients answers."""
    rng, edges = np.random.default_rng([clients, bins]), linear_edges(0.0, 100.0, bins)
    model, found = OptionModel(bin_labels(edges), P, Q), []
    for _ in range(CROWDS):
        numbers = POPULATIONS[population](rng.binomial(clients, answered), rng)
        own = np.histogram(numbers, edges)[0]
        ones = rng.binomial(own, Q) + rng.binomial(clients - own, P)
        counts = BitCounts(ones[np.newaxis].astype(np.int64), np.array([clients]))
        marginal = model.marginal(counts, alpha=0.05, correction="holm")
        found.append(Histogram.of(marginal, np.array(edges), model.covariance(marginal), ""))
    return found


def coverage(found: list[Histogram], name: str, true: float) -> float:
    """Share of intervals of the mean or the median that contain the truth."""
    intervals = [getattr(each, name) for each in found]
    return float(np.mean([each.low <= true <= each.high for each in intervals]))


def enough(share: float) -> bool:
    """Whether at least .93 of the intervals contain the truth.

    Intervals allow for what bins hide, so more than .95 of them contain it. Were it .95 exactly,
    fewer than .93 of 800 would in 1 of 150 fresh seeds.
    """
    return share >= 0.93


settings = pytest.mark.parametrize("clients, bins, answered", [(2_000, 10, 1.0), (20_000, 64, 0.7)])


@settings
@pytest.mark.parametrize("population", POPULATIONS)
def test_intervals_of_mean_and_median_cover(
    population: str, clients: int, bins: int, answered: float
) -> None:
    found = histograms(population, clients, bins, answered)
    mean, median = truth(population)
    assert enough(coverage(found, "mean", mean))
    assert enough(coverage(found, "median", median))


def test_intervals_without_the_covariance_of_noise_do_not() -> None:
    """The broken twin: the covariance of clients that report the truth."""
    found = []
    for each in histograms("bimodal", 20_000, 64, 0.7):
        share = np.clip(each.estimate, 0.0, 1.0)
        without = (np.diag(share) - np.outer(share, share)) / each.reports
        found.append(replace(each, covariance=without))
    mean, median = truth("bimodal")
    assert not enough(coverage(found, "mean", mean))
    assert not enough(coverage(found, "median", median))


def test_middles_of_wide_bins_alone_do_not_cover() -> None:
    """The broken twin of discretisation: an interval around the middles of 4 wide bins."""
    rng, edges = np.random.default_rng(5), np.array([0.0, 50.0, 60.0, 80.0, 100.0])
    numbers = skewed(50_000, rng)
    share = np.histogram(numbers, edges)[0] / numbers.size
    covariance = (np.diag(share) - np.outer(share, share)) / numbers.size
    sample = histograms("skewed", 2_000, 10, 1.0)[0]
    parts = {name: getattr(sample, name)[:4] for name in ("low", "high", "p_value", "detected")}
    parts |= {"identified": sample.identified[:4], "log_p_value": sample.log_p_value[:4]}
    wide = replace(
        sample,
        **parts,
        estimate=share,
        standard_error=np.sqrt(np.diagonal(covariance)),
        labels=bin_labels(edges.tolist()),
        edges=edges,
        covariance=covariance,
    )
    found = wide.mean
    assert found.low <= numbers.mean() <= found.high
    noise = (found.high - found.low) / 2 - found.discretisation
    assert abs(found.estimate - numbers.mean()) > noise, "the middles are wrong by more than noise"
