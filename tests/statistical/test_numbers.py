"""Intervals of means and medians contain the truth, and the test of a trend has its level.

Each check states how often a right implementation would fail it on a fresh seed, and a plausible
mistake must fail the same check.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from deniable import associate, simulate
from deniable.inference.marginal.bit_counts import BitCounts
from deniable.inference.models.options import OptionModel
from deniable.kernels.array_types import Floats
from deniable.protocols.bins import bin_labels, linear_edges
from deniable.results import Histogram
from tests.surveys import make_survey

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


# --- the test of a linear trend ------------------------------------------------------------------

PAIR = make_survey(
    """
    [questions.latency]
    kind = "number"
    epsilon = 2.0
    low = 0
    high = 100
    bins = 8
    [questions.age]
    kind = "number"
    epsilon = 2.0
    edges = [0, 18, 30, 45, 60, 100]
    """
)


@cache
def trials(slope: float, crowds: int = 120, clients: int = 3_000) -> tuple[Floats, Floats, Floats]:
    """p-values of the linear test and of the score test, and coverage of the correlation."""
    rng = np.random.default_rng([7, round(100 * slope)])
    linear, score, covered = [], [], []
    big = pair(slope, 500_000, np.random.default_rng(3))
    true = float(np.corrcoef(*map(middles, (0, 1), big))[0, 1])
    for seed in range(crowds):
        latency, age = pair(slope, clients, rng)
        reports = simulate(PAIR, {"latency": latency, "age": age}, rng=seed)
        joint = associate(PAIR, reports, ["latency", "age"])
        linear.append(joint.linear_trend().p_value)
        score.append(joint.test().p_value)
        found = joint.correlation()
        covered.append(found.low <= true <= found.high)
    return np.array(linear), np.array(score), np.array(covered, float)


def pair(slope: float, n: int, rng: np.random.Generator) -> tuple[Floats, Floats]:
    latency = rng.normal(50.0, 20.0, n)
    age = 40.0 + slope * (latency - 50.0) + rng.normal(0.0, 16.0, n)
    return np.clip(latency, 0.0, 100.0), np.clip(age, 0.0, 100.0)


def middles(question: int, numbers: Floats) -> Floats:
    edges = np.array(PAIR.questions[question].protocol.edges)  # type: ignore[attr-defined]
    at = np.clip(np.searchsorted(edges, numbers, "right") - 1, 0, len(edges) - 2)
    return (edges[at] + edges[at + 1]) / 2


def has_level(p_values: Floats) -> bool:
    """Whether about .05 of 120 p-values are below .05: 1 to 14 of them.

    A right test fails this in 1 of 250 fresh seeds.
    """
    return 1 <= int((p_values < 0.05).sum()) <= 14


def test_the_linear_test_has_its_level() -> None:
    assert has_level(trials(0.0)[0])


def test_the_linear_test_of_a_trend_does_not() -> None:
    """The twin: questions that are associated. A third of the trends would be enough to fail."""
    assert not has_level(trials(0.5)[0])


def test_the_linear_test_finds_more_trends_than_the_score_test() -> None:
    """With 28 degrees of freedom less, it finds about twice as many of these weak trends."""
    linear, score, _ = trials(0.5)
    assert (linear < 0.05).sum() > 1.3 * (score < 0.05).sum()


@pytest.mark.parametrize("slope", [0.0, 0.5])
def test_intervals_of_the_correlation_cover(slope: float) -> None:
    """At least .89 of 120: fewer in 1 of 300 fresh seeds if .95 of all intervals cover."""
    assert trials(slope)[2].mean() >= 0.89
