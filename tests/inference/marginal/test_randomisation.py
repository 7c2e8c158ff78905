from itertools import product

import numpy as np
import pytest
from experiments.direct_counts import bit_counts, random_positions, values_by_stratum

from deniable.inference.marginal import randomisation, tails
from deniable.inference.marginal.design import BloomDesign
from deniable.inference.marginal.randomisation import log_exact_p_values, log_hash_tail

ONES = np.array([[3, 0, 1], [1, 1, 0]])
TOTALS = np.array([3, 2])


def every_string(hashes: int) -> np.ndarray:
    """All ways in which a string can be hashed in two strata of three bits."""
    ways = product(range(3), repeat=2 * hashes)
    return np.array([np.reshape(way, (2, hashes)) for way in ways], np.int32).transpose(1, 0, 2)


@pytest.mark.parametrize("slot", [None, np.array([0, 1])])
@pytest.mark.parametrize("hashes", [1, 2])
def test_p_values_are_the_shares_of_hash_functions(hashes, slot):
    design = BloomDesign(every_string(hashes), 3, 0.1, 0.9, slot=slot)
    p = np.exp(log_hash_tail(ONES, TOTALS, design))
    for x in np.unique(p):
        assert (p <= x + 1e-9).mean() == pytest.approx(x)


def test_strata_without_evidence_for_a_string_do_not_count():
    positions = every_string(1)
    positions[1, 0] = -1
    p = np.exp(log_hash_tail(ONES, TOTALS, BloomDesign(positions, 3, 0.1, 0.9)))
    assert p[0] == pytest.approx(1 / 3)  # bit 0 of the first stratum: 3 is the largest of 3, 0, 1


def test_far_tails_are_bounded_from_above(monkeypatch):
    design = BloomDesign(every_string(2), 3, 0.1, 0.9)
    exact = log_hash_tail(ONES, TOTALS, design)
    monkeypatch.setattr(tails, "LEAST_SUMMED", 2.0)
    bound = log_hash_tail(ONES, TOTALS, design)
    assert np.all(bound >= exact - 1e-9) and np.all(bound <= 0) and np.all(np.isfinite(bound))


def test_p_above_q_turns_the_test_around():
    design = BloomDesign(every_string(1), 3, 0.9, 0.1)
    mirrored = BloomDesign(every_string(1), 3, 0.1, 0.9)
    turned = log_hash_tail(TOTALS[:, None] - ONES, TOTALS, design)
    assert turned == pytest.approx(log_hash_tail(ONES, TOTALS, mirrored))


def test_common_strings_are_subtracted_before_rarer_ones_are_tested():
    rng = np.random.default_rng(1)
    shares = np.r_[0.5, 0.3, np.full(4, 0.05)]
    positions = random_positions(6, rng, strata=16, k=32)
    counts = bit_counts(values_by_stratum(shares, 1000, 16, rng), positions, 32, 0.05, 0.6, rng)
    design = BloomDesign(positions, 32, 0.05, 0.6)
    together = log_exact_p_values(counts, design, 0.05)
    first = log_hash_tail(counts.ones, counts.total, design)
    assert np.all(together[2:] < first[2:])
    assert together[0] == pytest.approx(first[0] - np.log(randomisation.ROUND_SHARES[0]))
