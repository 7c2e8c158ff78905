import numpy as np
import pytest
from scipy import stats

from deniable.formatting import p_value
from deniable.inference.marginal.tails import (
    IntegerSum,
    chi2_tail,
    log_binomial_tail,
    log_gamma_tail,
    log_upper_tail,
    p_values,
    weighted_chi2_tail,
)


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


def test_gamma_tails_do_not_underflow():
    x = np.array(
        [1.0, 100.0, 660.0, 670.0, 700.0, 5_000.0]
    )  # small tails begin between 667 and 680
    assert log_gamma_tail(2.0, x) == pytest.approx(np.log1p(x) - x, abs=1e-5)
    half = log_gamma_tail(0.5, x[1:])
    assert half == pytest.approx(np.log(2) + stats.norm.logsf(np.sqrt(2 * x[1:])), abs=0.01)


def test_p_values_are_never_0():
    assert p_values(np.array([-1e6, -1.0])) == pytest.approx([1e-300, np.exp(-1.0)])
    association = chi2_tail(2, 3_000.0)  # exp(-1500)
    assert association == 1e-300 and p_value(association) == "3.62e-652"
    assert chi2_tail(0, 5.0) == 1.0


def test_a_statistic_of_0_is_no_evidence():
    for statistic in (0.0, -1e-9):
        assert chi2_tail(3, statistic) == weighted_chi2_tail(np.ones(3), statistic) == 1.0


def test_sums_of_integers():
    """A die and two coins, by adding up all cases; the far tail is bounded by Chernoff."""
    die = (np.arange(1, 7), np.full(6, 1 / 6), 1)
    coins = (np.array([0, 3]), np.array([0.75, 0.25]), 2)
    total = np.arange(1, 13)
    cases = np.array([a + 3 * b for a in range(1, 7) for b in (0, 0, 0, 1)]).repeat(4)
    cases = cases + np.tile([0, 0, 0, 3], 24)
    both = IntegerSum.of([die], 12, 2.0) + IntegerSum.of([coins], 12, 2.0)
    assert np.exp(both.log_tail(total)) == pytest.approx([(cases >= t).mean() for t in total])
    many = IntegerSum.of([(np.array([0, 1]), np.array([0.9, 0.1]), 1_000)], 1_001, 9.5)
    exact = log_binomial_tail(np.array([300, 500, 1_000]), 0.1, 1_000)
    bound = many.log_tail(np.array([300, 500, 1_000]))
    assert np.all(bound >= exact) and np.all(bound < exact + 6 - 0.01 * exact)
