"""Tails and quantiles are those of scipy.stats, which takes too long to import."""

import numpy as np
import pytest
from scipy import fft, stats

from deniable.inference import distributions as own
from deniable.inference.marginal.tails import fast_length


@pytest.mark.parametrize("skewness", [0.0, 1e-6, 1e-4, 0.01, 0.5, 2.0, -1e-4, -0.3, -1.5])
def test_pearson3(skewness: float) -> None:
    z = np.linspace(-5.0, 9.0, 29)
    tails = [own.pearson3_tail(float(each), skewness) for each in z]
    assert tails == pytest.approx(stats.pearson3.sf(z, skewness), rel=1e-10, abs=1e-300)
    chance = np.linspace(0.01, 0.99, 50)
    expected = stats.pearson3.ppf(1 - chance, skewness)
    assert own.pearson3_quantile(chance, skewness) == pytest.approx(expected, rel=1e-8, abs=1e-10)


def test_quantiles_far_out_are_finite() -> None:
    assert own.normal_quantile(1e-40) == pytest.approx(stats.norm.isf(1e-40))
    for skewness in (0.0, 0.1):
        (far,) = own.pearson3_quantile([1e-40], skewness)
        assert own.pearson3_tail(float(far), skewness) == pytest.approx(1e-40, rel=1e-6)


@pytest.mark.parametrize(("size", "p"), [(1, 0.5), (3, 0.5), (128, 0.25), (10**6, 0.3)])
def test_binomial(size: int, p: float) -> None:
    number = np.arange(min(size, 300) + 1)
    pmf = own.binomial_pmf(number, size, p)
    assert pmf == pytest.approx(stats.binom.pmf(number, size, p), rel=1e-9, abs=1e-290)
    for tail in (0.9, 0.5, 0.3, 0.05, 1e-3, 1e-9):
        assert own.binomial_quantile(tail, size, p) == stats.binom.isf(tail, size, p)


def test_binomial_without_chance() -> None:
    assert own.binomial_pmf([0, 1, 2], 2, [[0.0], [1.0]]).tolist() == [[1, 0, 0], [0, 0, 1]]


def test_poisson() -> None:
    assert [own.poisson_tail(k, 2.3) for k in range(9)] == pytest.approx(
        stats.poisson.sf(np.arange(9) - 1, 2.3)
    )
    mean = np.array([0.0, 0.1, 1, 5, 30, 1e4])
    chance = np.random.default_rng(1).random((6, 400))
    expected = stats.poisson.ppf(chance, mean[:, None])
    assert np.array_equal(own.poisson_quantile(chance, mean), expected)


def test_lengths_of_fast_transforms() -> None:
    for least in (*range(1, 1300), 10**6 + 1, 123_456_789):
        assert fast_length(least) == fft.next_fast_len(least, real=True)
