import numpy as np
import pytest
from scipy import stats

from deniable.inference.marginal.tails import log_binomial_tail, log_upper_tail


@pytest.mark.parametrize("p", [0.002, 0.02, 0.25, 0.5, 0.98])
def test_upper_tail_follows_the_binomial_far_out(p):
    # Exact P(count >= c) at the c where a test of 1,000 candidates decides.
    n = 20_000
    mean, sd = n * p, np.sqrt(n * p * (1 - p))
    c = np.floor(mean + 4.1 * sd)
    z, skew = (c - 0.5 - mean) / sd, (1 - 2 * p) / sd
    ours = np.exp(log_upper_tail(np.array([z]), np.array([skew])))[0]
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
        tail = log_upper_tail(z, np.full(z.size, skew))
        assert np.all(np.diff(tail) <= 1e-12) and np.all(np.isfinite(tail) & (tail <= 0))
    near = [log_upper_tail(np.array([4.0]), np.array([s]))[0] for s in (4.9e-4, 5.1e-4)]
    assert near[0] == pytest.approx(near[1], abs=0.01)


def test_binomial_tails_do_not_underflow():
    ones = np.arange(1001)
    tail = log_binomial_tail(ones, 0.25, 1000)
    assert np.allclose(np.exp(tail), stats.binom.sf(ones - 1, 1000, 0.25), rtol=1e-9)
    assert np.all(np.diff(tail) <= 0)
    assert tail[-1] == pytest.approx(1000 * np.log(0.25))
