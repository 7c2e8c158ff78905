import numpy as np
import pytest
from scipy import stats

from deniable.errors import InputError
from deniable.inference.marginal.bit_counts import BitCounts
from deniable.inference.marginal.closed_form import estimate_basic
from deniable.inference.marginal.detection import rejection_cutoff, upper_tail
from deniable.simulation.populations import zipf


@pytest.mark.parametrize(("p", "q"), [(0.25, 0.75), (0.7, 0.2)])
def test_basic_inverts_the_channel(p, q):
    shares = zipf(8)
    ones = np.rint(10**9 * (p + (q - p) * shares)).astype(np.int64)
    split = BitCounts(np.stack([ones, ones]), np.full(2, 10**9))
    result = estimate_basic(split, p, q)
    assert np.allclose(result.estimate, shares, atol=1e-8)
    r = p + (q - p) * shares
    assert np.allclose(result.standard_error, np.sqrt(r * (1 - r) / 2e9) / abs(q - p))
    assert result.detected.all() and result.mass_found.estimate == pytest.approx(1, abs=1e-7)


def test_one_bit_and_no_reports():
    counts = BitCounts(np.array([[30_000], [10_000]]), np.array([60_000, 40_000]))
    result = estimate_basic(counts, 0.25, 0.75)
    assert result.estimate == pytest.approx(0.3)
    assert result.standard_error == pytest.approx(np.sqrt(0.4 * 0.6 / 1e5) / 0.5)
    nothing = estimate_basic(BitCounts(np.zeros((1, 1), int), np.zeros(1, int)), 0.25, 0.75)
    assert np.isnan(nothing.estimate) and (nothing.low, nothing.high) == (0, 1)
    with pytest.raises(InputError, match="two different"):
        estimate_basic(counts, 0.25, 0.25)


@pytest.mark.parametrize("p", [0.002, 0.02, 0.25, 0.5, 0.98])
def test_upper_tail_follows_the_binomial_far_out(p):
    # Exact P(count >= c) at the c where a test of 1,000 candidates decides.
    n = 20_000
    mean, sd = n * p, np.sqrt(n * p * (1 - p))
    c = np.floor(mean + 4.1 * sd)
    z, skew = (c - 0.5 - mean) / sd, (1 - 2 * p) / sd
    ours = upper_tail(np.array([z]), np.array([skew]))[0]
    exact = stats.binom.sf(c - 1, n, p)
    assert ours == pytest.approx(exact, rel=0.1)


def test_upper_tail_without_its_skewness_would_be_wrong():
    # The broken twin: at p = .002 the normal tail is too small by more than a factor of 3.
    n, p = 20_000, 0.002
    sd = np.sqrt(n * p * (1 - p))
    c = np.floor(n * p + 4.1 * sd)
    normal = stats.norm.sf((c - 0.5 - n * p) / sd)
    assert stats.binom.sf(c - 1, n, p) > 3 * normal


def test_upper_tail_is_monotone_and_continuous():
    z = np.linspace(-8, 60, 500)
    for skew in (-0.5, -1e-2, 0.0, 4.9e-4, 5.1e-4, 1e-2, 0.5):
        tail = upper_tail(z, np.full(z.size, skew))
        assert np.all(np.diff(tail) <= 1e-12) and np.all((tail >= 0) & (tail <= 1))
    near = [upper_tail(np.array([4.0]), np.array([s]))[0] for s in (4.9e-4, 5.1e-4)]
    assert near[0] == pytest.approx(near[1], rel=0.01)


def test_holm_by_hand():
    p = np.array([0.9, 0.001, 0.012, 0.04, 0.016])
    assert rejection_cutoff(p, 0.05, "holm") == pytest.approx(0.05 / 2)
    assert rejection_cutoff(np.array([0.9, 0.8]), 0.05, "holm") == pytest.approx(0.025)
    assert rejection_cutoff(np.array([0.001, 0.04]), 0.05, "holm") == pytest.approx(0.05)
    assert rejection_cutoff(np.zeros(0), 0.05, "holm") == 0.05


def test_benjamini_hochberg_by_hand():
    p = np.array([0.9, 0.001, 0.012, 0.04, 0.016])
    assert rejection_cutoff(p, 0.05, "fdr") == pytest.approx(0.04)
    assert rejection_cutoff(np.array([0.9, 0.8]), 0.05, "fdr") == pytest.approx(0.025)
    assert rejection_cutoff(p, 0.05, None) == 0.05
    assert rejection_cutoff(np.zeros(0), 0.05, "bonferroni") == 0.05
