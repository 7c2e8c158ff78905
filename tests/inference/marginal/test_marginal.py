from dataclasses import replace

import numpy as np
import pytest
from experiments.direct_counts import bit_counts, draw, random_positions, values_by_stratum
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from deniable.errors import InputError
from deniable.inference.marginal.bit_counts import BitCounts, Repetition
from deniable.inference.marginal.closed_form import estimate_basic
from deniable.inference.marginal.design import BloomDesign
from deniable.inference.marginal.estimate import estimate_marginal
from deniable.inference.marginal.regression import BitTable, fit_columns, invert_gram
from deniable.inference.marginal.scan import scan_candidates
from deniable.simulation.populations import zipf


def noiseless(shares, positions, k, p, q, reports, level=0.0):
    """Expected counts, rounded: every estimate must return the shares."""
    design = BloomDesign(positions, k, p, q)
    member = design.indicator().toarray().reshape(positions.shape[0], k, -1)
    frequency = member @ shares + level
    total = np.broadcast_to(np.asarray(reports), positions.shape[:1])
    p, q = design.p[:, None], design.q[:, None]
    ones = np.rint(total[:, None] * (p + (q - p) * frequency)).astype(np.int64)
    return BitCounts(ones, total.astype(np.int64)), design


@pytest.mark.parametrize("selection", ["all", "lasso"])
@pytest.mark.parametrize(("p", "q"), [(0.25, 0.75), (0.8, 0.3), (0.01, 0.5)])
def test_recovers_expected_counts_with_a_background(p, q, selection):
    rng = np.random.default_rng(1)
    positions = random_positions(20, rng, strata=16, k=32)
    shares = 0.6 * zipf(20)
    counts, design = noiseless(shares, positions, 32, p, q, 10**9, level=0.03)
    result = estimate_marginal(counts, design, selection=selection)
    assert np.allclose(result.estimate, shares, atol=1e-6)
    assert np.allclose(result.background, 0.03, atol=1e-6)
    assert result.detected.all()
    assert result.mass_found.estimate == pytest.approx(0.6, abs=1e-5)
    assert result.mass_unexplained.estimate == pytest.approx(0.4, abs=1e-5)


def test_few_strata_may_differ_between_candidates():
    """Two pairs of candidates with evidence in four strata each, as of different prefix lengths."""
    rng = np.random.default_rng(4)
    positions = random_positions(4, rng, strata=8, k=64)
    positions[4:, :2] = positions[:4, 2:] = -1
    counts, design = noiseless(np.full(4, 0.2), positions, 64, 0.2, 0.8, 10**4, level=0.02)
    counts = BitCounts(rng.binomial(10**4, counts.ones / 10**4), counts.total)
    result = estimate_marginal(counts, design)
    assert np.allclose(result.estimate, 0.2, atol=0.05)
    assert result.detected.all()


def test_strata_may_differ_in_parameters_and_size_and_be_empty():
    rng = np.random.default_rng(2)
    positions = random_positions(10, rng, strata=8, k=32)
    p = np.linspace(0.1, 0.4, 8)
    q = np.where(np.arange(8) % 2, 0.9, 0.02)
    reports = np.array([10**9, 10**3, 0, 10**8, 0, 10**9, 10**7, 10**9])
    shares = 0.8 * zipf(10)
    counts, design = noiseless(shares, positions, 32, p, q, reports)
    result = estimate_marginal(counts, design)
    assert np.allclose(result.estimate, shares, atol=1e-5)
    assert np.isfinite(result.standard_error).all()
    assert result.background[2] == 0 and result.reports == reports.sum()


@pytest.mark.parametrize("selection", ["all", "lasso"])
def test_a_candidate_is_estimated_from_the_strata_that_tell_it(selection):
    """Six of 12 are told in the first half only; elsewhere they are part of the background."""
    rng = np.random.default_rng(12)
    positions = random_positions(12, rng, strata=16, k=64)
    positions[8:, :6] = -1
    shares = 0.5 * zipf(12)
    slot = np.repeat([0, 1], 8)
    counts, design = noiseless(shares, positions, 64, 0.2, 0.6, 10**9, level=0.02)
    result = estimate_marginal(counts, replace(design, slot=slot), selection=selection)
    assert np.allclose(result.estimate, shares, atol=1e-6)
    counts = BitCounts(np.rint(counts.ones / 10**6).astype(np.int64), counts.total // 10**6)
    result = estimate_marginal(counts, design)
    half = estimate_marginal(
        BitCounts(counts.ones[:8], counts.total[:8]),
        BloomDesign(positions[:8, :6], 64, 0.2, 0.6),
    )
    assert result.standard_error[:6] == pytest.approx(half.standard_error, rel=0.05)
    nowhere = positions.copy()
    nowhere[:, 0] = -1
    found = estimate_marginal(counts, BloomDesign(nowhere, 64, 0.2, 0.6))
    assert not found.identified[0] and np.isnan(found.estimate[0]) and found.identified[1:].all()


def test_slots_scatter_each_by_their_own_measure():
    """One slot's bits scatter by .05; the other's candidates keep the standard errors of noise."""
    rng = np.random.default_rng(13)
    positions = random_positions(10, rng, strata=16, k=64)
    positions[:8, :5], positions[8:, 5:] = -1, -1
    counts, design = noiseless(np.full(10, 0.05), positions, 64, 0.2, 0.6, 10_000)
    noise = rng.normal(0, 0.05 * 0.4 * 10_000, (8, 64))
    ones = counts.ones.copy()
    ones[:8] = np.clip(ones[:8] + noise, 0, 10_000).astype(np.int64)
    scattered = BitCounts(ones, counts.total)
    apart = estimate_marginal(scattered, replace(design, slot=np.repeat([0, 1], 8)))
    together = estimate_marginal(scattered, design)
    clean = estimate_marginal(counts, design)
    assert apart.standard_error[:5] == pytest.approx(clean.standard_error[:5], rel=0.02)
    assert (apart.standard_error[5:] > 2 * clean.standard_error[5:]).all()
    assert (together.standard_error[:5] > 1.5 * clean.standard_error[:5]).all()
    assert apart.overdispersion == pytest.approx(0.05, rel=0.2)


def test_an_empty_stratum_changes_nothing():
    rng = np.random.default_rng(3)
    counts, design = draw(zipf(20), 20_000, rng, strata=8)
    more = BitCounts(
        np.vstack([counts.ones, np.zeros((1, 128), np.int64)]), np.append(counts.total, 0)
    )
    wider = BloomDesign(np.concatenate([design.positions, design.positions[:1]]), 128, 0.25, 0.75)
    a, b = estimate_marginal(counts, design), estimate_marginal(more, wider)
    assert np.allclose(a.estimate, b.estimate, atol=1e-12)
    assert np.allclose(a.p_value, b.p_value, atol=1e-12)


def test_no_reports_at_all():
    design = BloomDesign(random_positions(5, np.random.default_rng(0), strata=4), 128, 0.25, 0.75)
    counts = BitCounts(np.zeros((4, 128), np.int64), np.zeros(4, np.int64))
    result = estimate_marginal(counts, design)
    assert not result.identified.any() and not result.detected.any()
    assert np.isnan(result.estimate).all() and np.isnan(result.detection_threshold)
    assert np.all(result.low == 0) and np.all(result.high == 1)


def test_no_candidates():
    counts, design = draw(zipf(20), 20_000, np.random.default_rng(4), listed=0)
    result = estimate_marginal(counts, design)
    assert result.estimate.size == 0 and result.mass_found.estimate == 0
    assert result.mass_unexplained.estimate == 1


@pytest.mark.parametrize("selection", ["all", "lasso"])
def test_one_candidate_in_one_stratum(selection):
    positions = np.array([[[3, 9]]], dtype=np.int32)
    counts, design = noiseless(np.array([0.4]), positions, 16, 0.25, 0.75, 10**6, level=0.05)
    result = estimate_marginal(counts, design, selection=selection)
    assert result.estimate[0] == pytest.approx(0.4, abs=1e-5)
    assert result.detected[0]


def test_a_repeated_position_counts_once():
    positions = np.array([[[3, 3], [5, 9]]], dtype=np.int32)
    design = BloomDesign(positions, 16, 0.25, 0.75)
    assert np.asarray(design.indicator().sum(axis=0)).tolist() == [[1, 2]]
    counts, design = noiseless(np.array([0.4, 0.3]), positions, 16, 0.25, 0.75, 10**8)
    result = estimate_marginal(counts, design)
    assert np.allclose(result.estimate, [0.4, 0.3], atol=1e-6)
    alone = estimate_marginal(counts, design, selection="lasso")
    assert np.allclose(alone.standard_error, result.standard_error, rtol=1e-6)


@pytest.mark.parametrize("selection", ["all", "lasso"])
def test_candidates_with_the_same_bits_share_and_say_so(selection):
    rng = np.random.default_rng(5)
    positions = random_positions(6, rng, strata=4, k=32)
    positions[:, 4] = positions[:, 1, ::-1]
    shares = np.array([0.3, 0.2, 0.1, 0.1, 0.1, 0.0])
    counts, design = noiseless(shares, positions, 32, 0.25, 0.75, 10**8)
    result = estimate_marginal(counts, design, selection=selection)
    assert result.groups == ((1, 4),)
    assert result.identified.tolist() == [True, False, True, True, False, True]
    assert result.estimate[[1, 4]] == pytest.approx([0.15, 0.15], abs=1e-5)
    assert np.all(result.low[[1, 4]] <= 0) and np.all(result.high[[1, 4]] >= 0.3)
    assert not result.detected[[1, 4]].any() and np.all(result.p_value[[1, 4]] < 1e-6)
    assert result.estimate[[0, 2, 3]] == pytest.approx([0.3, 0.1, 0.1], abs=1e-5)


def test_same_bits_only_where_there_are_reports_is_the_same():
    rng = np.random.default_rng(6)
    positions = random_positions(3, rng, strata=3, k=32)
    positions[:2, 2] = positions[:2, 1]
    counts, design = noiseless(
        np.array([0.5, 0.2, 0.2]), positions, 32, 0.25, 0.75, np.array([10**6, 10**6, 0])
    )
    assert estimate_marginal(counts, design).groups == ((1, 2),)


def test_a_candidate_covering_all_bits_is_not_identified():
    rng = np.random.default_rng(7)
    positions = rng.integers(0, 4, size=(3, 2, 4), dtype=np.int32)
    positions[:, 0] = [0, 1, 2, 3]
    positions[:, 1] = [1, 1, 1, 1]
    counts, design = noiseless(np.array([0.3, 0.3]), positions, 4, 0.25, 0.75, 10**6)
    for selection in ("all", "lasso"):
        result = estimate_marginal(counts, design, selection=selection)
        assert result.identified.tolist() == [False, True]
        assert np.isnan(result.estimate[0]) and result.p_value[0] == 1
        assert result.estimate[1] == pytest.approx(0.3, abs=1e-4)


def test_dependent_columns_are_reported_not_guessed():
    # {0,1} + {2,3} = {0,2} + {1,3}: no one of the four is determined, {4} is.
    positions = np.array([[[0, 1], [2, 3], [0, 2], [1, 3], [4, 4]]], dtype=np.int32)
    counts, design = noiseless(
        np.array([0.1, 0.2, 0.1, 0.1, 0.2]), positions, 16, 0.25, 0.75, 10**7
    )
    result = estimate_marginal(counts, design, selection="all")
    assert result.identified.tolist() == [False] * 4 + [True]
    assert result.estimate[4] == pytest.approx(0.2, abs=1e-4)


def test_matrices_that_are_nearly_singular_are_not_inverted():
    found = 0
    for seed in range(300):
        column = np.random.default_rng(seed).integers(0, 3, (3, 2)).astype(float)
        gram = (columns := np.c_[column, column.sum(axis=1)]).T @ columns
        if gram.diagonal().min() > 0:
            inverse, _, rank = invert_gram(gram, gram.diagonal())
            np.testing.assert_allclose(gram @ inverse @ gram, gram, rtol=1e-6, atol=1e-6)
            found += rank < 3
    assert found > 100


def test_more_candidates_than_bits():
    rng = np.random.default_rng(8)
    shares = np.zeros(200)
    shares[:3] = [0.4, 0.3, 0.2]
    positions = random_positions(200, rng, strata=4, k=16)
    values = values_by_stratum(shares / shares.sum(), 200_000, 4, rng)
    counts = bit_counts(values, positions, 16, 0.25, 0.75, rng)
    result = estimate_marginal(counts, BloomDesign(positions, 16, 0.25, 0.75))
    assert np.flatnonzero(result.detected).tolist() == [0, 1, 2]
    assert np.isfinite(result.estimate[result.identified]).all()
    assert np.isfinite(result.p_value).all()


def test_outside_candidates_get_the_estimate_of_joining_the_fit():
    rng = np.random.default_rng(9)
    counts, design = draw(zipf(40), 50_000, rng, strata=16)
    outside = 10
    table = BitTable.of(counts, design, True)
    active = np.array([0, 1, 2, 3], dtype=np.intp)
    fit = fit_columns(table, design.indicator(active))
    scan = scan_candidates(table, design, active, fit, 4.0)
    # An independent route: append the column and solve the weighted normal equations densely.
    columns = design.indicator(np.append(active, outside)).toarray()
    constant = np.kron(np.eye(16), np.ones((128, 1)))
    x, w = np.hstack([columns, constant]), fit.weight.ravel()
    inverse = np.linalg.inv(x.T @ (x * w[:, None]))
    direct = inverse @ (x.T @ (w * table.frequency.ravel()))
    assert scan.estimate[outside] == pytest.approx(direct[4], rel=1e-8, abs=1e-12)
    assert scan.variance[outside] == pytest.approx(inverse[4, 4], rel=1e-8)


def test_estimates_agree_with_least_squares_on_bit_probabilities():
    """A second route: shares of set bits on P(bit = 1 | candidate), dense, with numpy alone."""
    counts, design = draw(zipf(15), 40_000, np.random.default_rng(10), strata=8, k=64)
    found = estimate_marginal(counts, design)
    member = np.zeros((8, 15, 64))
    np.put_along_axis(member, design.positions.astype(np.intp), 1.0, axis=2)
    theta = (0.25 + 0.5 * member).transpose(0, 2, 1).reshape(-1, 15)
    columns = np.hstack([theta, np.kron(np.eye(8), np.ones((64, 1)))])
    r = (counts.ones / counts.total[:, None]).ravel()
    weight = np.repeat(counts.total, 64) / (r * (1 - r))
    inverse = np.linalg.inv(columns.T @ (columns * weight[:, None]))
    estimate = (inverse @ (columns.T @ (weight * r)))[:15]
    # A string's two bits rise together: half of the sampling variance is not in the bits' own.
    sampling = estimate * (1 - estimate) / counts.reports / design.hashes
    error = np.sqrt(inverse.diagonal()[:15] + sampling)
    assert design.hashes == 2
    assert np.allclose(found.estimate, estimate, rtol=2e-2, atol=2e-3)
    assert np.allclose(found.standard_error, error, rtol=0.05)
    assert np.array_equal(found.detected, estimate > stats.norm.isf(0.05 / 15) * error)


def test_without_background_a_one_bit_design_is_the_closed_form():
    rng = np.random.default_rng(11)
    positions = np.arange(12, dtype=np.int32).reshape(1, 12, 1)
    values = values_by_stratum(zipf(12), 30_000, 1, rng)
    counts = bit_counts(values, positions, 12, 0.25, 0.75, rng)
    design = BloomDesign(positions, 12, 0.25, 0.75)
    regression = estimate_marginal(counts, design, background=False, selection="all")
    closed = estimate_basic(counts, 0.25, 0.75)
    assert np.allclose(regression.estimate, closed.estimate, atol=1e-12)
    assert np.allclose(regression.standard_error, closed.standard_error, rtol=1e-6)
    # With one, the categories' columns sum to the background's: nothing is determined.
    assert not estimate_marginal(counts, design, selection="all").identified.any()


def test_corrections_are_ordered():
    counts, design = draw(zipf(100), 100_000, np.random.default_rng(12))
    found = [
        estimate_marginal(counts, design, correction=c).detected.sum()
        for c in ("bonferroni", "holm", "fdr", None)
    ]
    assert found[0] < found[1] < found[2] < found[3]


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(1, 4), st.integers(1, 40), st.integers(1, 3))
def test_any_design_gives_defined_results(seed, strata, m, h):
    rng = np.random.default_rng(seed)
    k = int(rng.integers(1, 20))
    positions = random_positions(m, rng, strata=strata, k=k, h=h)
    total = rng.integers(0, 50, strata)
    counts = BitCounts(rng.integers(0, total[:, None] + 1, (strata, k)), total)
    for selection in ("all", "lasso"):
        result = estimate_marginal(counts, BloomDesign(positions, k, 0.2, 0.6), selection=selection)
        assert np.all((result.p_value >= 0) & (result.p_value <= 1))
        assert not (result.detected & ~result.identified).any()
        assert np.isfinite(result.estimate[result.identified]).all()
        assert np.all(result.low <= result.high)


def test_candidate_order_does_not_matter():
    counts, design = draw(zipf(50), 50_000, np.random.default_rng(13))
    order = np.random.default_rng(0).permutation(50)
    a = estimate_marginal(counts, design)
    b = estimate_marginal(counts, design.take(order))
    assert np.allclose(a.estimate[order], b.estimate, atol=1e-10)
    assert np.allclose(a.p_value[order], b.p_value, atol=1e-10)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (dict(labels=("a", "b", "a")), "listed twice"),
        (dict(labels=("a", "b")), "3 candidates but 2 labels"),
        (dict(bits=4), "0..3"),
        (dict(q_star=0.25), "p\\* = q\\*"),
        (dict(p_star=-0.1), "\\[0, 1\\]"),
        (dict(p_star=[0.1, 0.2, 0.3]), "one per stratum"),
        (dict(positions=np.zeros((2, 3, 0), np.int32)), "at least one hash"),
        (dict(positions=np.zeros((2, 3))), "integers of shape"),
        (dict(positions=np.full((2, 3, 2), [0, -1])), "either all positions"),
        (dict(slot=np.zeros(3, np.int64)), "one entry for each of the 2 strata"),
    ],
)
def test_illegal_designs_cannot_exist(change, message):
    given_ = dict(
        positions=np.full((2, 3, 1), 7, np.int32), bits=8, p_star=0.25, q_star=0.75, labels=None
    )
    with pytest.raises(InputError, match=message):
        BloomDesign(**(given_ | change))


def test_mismatches_are_refused():
    counts, design = draw(zipf(5), 100, np.random.default_rng(0), strata=2)
    other = BitCounts(counts.ones[:, :64], counts.total)
    with pytest.raises(InputError, match="2 strata of 64 bits"):
        estimate_marginal(other, design)
    with pytest.raises(InputError, match="cannot add counts"):
        counts + other
    with pytest.raises(InputError, match="alpha"):
        estimate_marginal(counts, design, alpha=0.0)
    with pytest.raises(InputError, match="correction"):
        estimate_marginal(counts, design, correction="hopeful")
    with pytest.raises(InputError, match="selection"):
        estimate_marginal(counts, design, selection="best")
    many = BloomDesign(np.zeros((2, 10_001, 1), np.int32), 128, 0.25, 0.75)
    with pytest.raises(InputError, match="at most 10000 candidates, got 10001; use 'auto'"):
        estimate_marginal(counts, many, selection="all")
    with pytest.raises(InputError, match="between 0 and the total of its stratum"):
        BitCounts(counts.ones + 10**6, counts.total)
    with pytest.raises(InputError, match="integers"):
        BitCounts(counts.ones / 2.0, counts.total)


def test_counts_add():
    rng = np.random.default_rng(14)
    a, design = draw(zipf(5), 1000, rng, strata=4)
    total = a + a
    assert total.reports == 2000 and np.array_equal(total.ones, 2 * a.ones)
    once, twice = estimate_marginal(a, design), estimate_marginal(total, design)
    assert np.allclose(once.estimate, twice.estimate, atol=5e-3)


@pytest.mark.parametrize(("p", "q", "flip"), [(0.1, 0.7, 0.2), (0.8, 0.3, 0.1), (0.25, 0.75, 0.0)])
@pytest.mark.parametrize("repeats", [1, 2, 5])
def test_moments_of_repeated_reports_are_those_of_all_outcomes(p, q, flip, repeats):
    """A client's sum of bits, enumerated over its true bit, its permanent bit and its reports."""
    share = 0.3
    p_star, q_star = p + flip * (q - p), q - flip * (q - p)
    r = p_star + (q_star - p_star) * share
    permanent = flip + (1 - 2 * flip) * share
    ones = np.arange(repeats + 1)
    chance = (1 - permanent) * stats.binom.pmf(ones, repeats, p)
    chance += permanent * stats.binom.pmf(ones, repeats, q)
    centred = ones - repeats * r
    variance, third = Repetition(repeats, flip).moments(
        np.array(r), np.array(p_star), np.array(q_star)
    )
    assert variance == pytest.approx((chance * centred**2).sum() / repeats)
    assert third == pytest.approx((chance * centred**3).sum() / repeats)
