from itertools import product

import numpy as np
import pytest
from scipy import stats

from deniable.errors import InputError
from deniable.inference.marginal.bit_counts import BitCounts, Repetition
from deniable.inference.marginal.closed_form import estimate_basic
from deniable.inference.marginal.detection import rejection_cutoff
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


@pytest.mark.parametrize(("p", "q"), [(0.25, 0.75), (0.7, 0.2), (0.02, 0.5)])
@pytest.mark.parametrize("reports", [1, 3, 10, 100])
def test_p_values_are_exact_in_small_crowds(p, q, reports):
    """Under "absent" the probability of p-values up to x is at most x, for every x."""
    ones = np.arange(reports + 1)
    counts = BitCounts(ones[None, :], np.array([reports]))
    p_value = estimate_basic(counts, p, q, correction=None).p_value
    chance = stats.binom.pmf(ones, reports, p)
    for x in p_value:
        assert chance[p_value <= x].sum() == pytest.approx(x)
    # The broken twin: the normal approximation rejects too often somewhere.
    z = (ones - p * reports) / np.sqrt(p * (1 - p) * reports) * np.sign(q - p)
    normal = stats.norm.sf(z)
    assert any(chance[normal <= x].sum() > 1.1 * x for x in normal)


@pytest.mark.parametrize("reports_per_client", [2, 5, 2.5])
@pytest.mark.parametrize(("p", "q"), [(0.3, 0.7), (0.8, 0.2)])
def test_p_values_of_repeated_reports_are_exact(p, q, reports_per_client):
    """The count of 4 clients with one permanent bit each, by adding up all cases."""
    flip, clients = 0.1, 4
    reports = round(clients * reports_per_client)
    counts = BitCounts(np.arange(reports + 1)[None], np.array([reports]))
    counts = counts.repeated(Repetition(reports_per_client, flip))
    chance = np.zeros(reports + 1)
    per_client = [reports // clients + (i < reports % clients) for i in range(clients)]
    for bits in product([0, 1], repeat=clients):
        ones = sum(n for n, bit in zip(per_client, bits, strict=True) if bit)
        weight = flip ** sum(bits) * (1 - flip) ** (clients - sum(bits))
        high = stats.binom.pmf(np.arange(reports + 1), ones, q)
        low = stats.binom.pmf(np.arange(reports + 1), reports - ones, p)
        chance += weight * np.convolve(high, low)[: reports + 1]
    p_star, q_star = p + flip * (q - p), q - flip * (q - p)
    p_value = estimate_basic(counts, p_star, q_star, correction=None).p_value
    expected = chance[::-1].cumsum()[::-1] if q > p else chance.cumsum()
    np.testing.assert_allclose(p_value, expected, rtol=1e-6)


@pytest.mark.parametrize("ones", [500, 760, 900])
def test_the_mass_of_one_category_has_its_error(ones):
    """Also if noise lifts its estimate above 1, up to 1.3 here."""
    result = estimate_basic(BitCounts(np.array([[ones]]), np.array([1000])), 0.25, 0.75)
    assert result.mass_found.estimate == result.estimate[0]
    assert result.mass_found.standard_error == pytest.approx(result.standard_error[0])


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


@pytest.mark.parametrize(("p", "q"), [(0.02, 0.5), (0.7, 0.2)])
@pytest.mark.parametrize("reports", [30, 300])
def test_half_of_the_counts_at_the_threshold_are_significant(p, q, reports):
    ones = np.arange(reports + 1)
    result = estimate_basic(BitCounts(ones[None, :], np.array([reports])), p, q, correction=None)

    def power(frequency: float) -> float:
        chance = stats.binom.pmf(ones, reports, p + (q - p) * frequency)
        return float(chance[result.detected].sum())

    assert power(result.detection_threshold) == pytest.approx(0.5)
    # The broken twin: the normal approximation, which knows nothing of integers.
    normal = stats.norm.isf(result.alpha) * np.sqrt(p * (1 - p) / reports) / abs(q - p)
    assert power(normal) != pytest.approx(0.5, abs=0.02)
