import numpy as np
import pytest
from experiments.direct_counts import bit_counts, draw, random_positions, values_by_stratum

from deniable.errors import InputError
from deniable.inference.marginal.bit_counts import BitCounts
from deniable.inference.marginal.estimate import estimate_marginal
from deniable.inference.models.base import OTHER, TableSettings
from deniable.inference.models.bloom import BloomModel
from deniable.inference.models.other import MixtureOther, mixture_other
from deniable.results.covariance import Covariance
from deniable.simulation.populations import zipf


def test_product_other_has_the_remaining_strings_bit_probabilities():
    # Expected counts: the model must return Other's own bit probabilities. As printed in the
    # paper (N - T instead of N * sum(p) - T) every one would be too low by p*.
    rng = np.random.default_rng(1)
    positions = random_positions(30, rng, strata=4, k=16)
    shares = zipf(30)
    design = BloomModel(positions, 16, 0.25, 0.75)
    member = design.indicator().toarray().reshape(4, 16, 30)
    ones = np.rint(10**8 * (0.25 + 0.5 * member @ shares)).astype(np.int64)
    counts = BitCounts(ones, np.full(4, 10**8))
    known = design.take(np.arange(5))
    other = known.product_other("q", counts, shares[:5])
    truth = 0.25 + 0.5 * member[:, :, 5:] @ (shares[5:] / shares[5:].sum())
    assert np.allclose(other.bits, truth, atol=1e-6)
    assert other.mass == pytest.approx(shares[5:].sum())


def test_product_other_is_clamped_and_defined_without_reports():
    rng = np.random.default_rng(2)
    counts, design = draw(zipf(20), 200, rng, strata=4)
    counts = BitCounts(
        np.where(np.arange(4)[:, None] == 2, 0, counts.ones),
        np.where(np.arange(4) == 2, 0, counts.total),
    )
    for p, q in ((0.25, 0.75), (0.75, 0.25)):
        known = BloomModel(design.positions[:, :5], 128, p, q)
        other = known.product_other("q", counts, zipf(20)[:5])
        assert other.bits.min() >= 0.25 and other.bits.max() <= 0.75
        assert np.allclose(other.bits[2], p + (q - p) * (1 - (127 / 128) ** 2))


def test_no_other_says_so():
    counts, design = draw(zipf(5), 10_000, np.random.default_rng(3))
    over = np.array([0.5, 0.3, 0.1, 0.1, 0.1])
    other = design.product_other("q", counts, over)
    assert other is None
    bits, stratum = np.zeros((4, 16), np.uint8), np.zeros(4, np.uint16)
    assert design.with_other(other).likelihood(bits, stratum).rows.shape == (4, 5)
    marginal = estimate_marginal(counts, design)
    marginal.estimate[:] = over
    assert mixture_other(marginal, design, np.arange(5)) is None


def test_mixture_is_the_weighted_sum_of_its_parts():
    rng = np.random.default_rng(4)
    design = BloomModel(
        random_positions(6, rng, strata=3, k=12), 12, [0.2, 0.3, 0.6], [0.7, 0.8, 0.1]
    )
    known, tail = design.take(np.arange(2)), design.take(np.arange(2, 6))
    share = np.array([0.3, 0.2, 0.1, 0.1])
    other = MixtureOther(tail, np.append(share, 0.3), 0.5)
    bits = rng.integers(0, 256, (50, 2), dtype=np.uint8)
    bits[:, 1] &= 15
    stratum = rng.integers(0, 3, 50).astype(np.uint16)
    rows = known.with_other(other).likelihood(bits, stratum)
    total = rows.rows.astype(float) * np.exp(rows.log_scale)[:, None]
    parts = design.likelihood(bits, stratum)
    known_p = parts.rows.astype(float) * np.exp(parts.log_scale)[:, None]
    x = np.unpackbits(bits, axis=1, bitorder="little")[:, :12].astype(bool)
    p, q = design.p[stratum][:, None], design.q[stratum][:, None]
    empty = np.where(x, p, 1 - p).prod(axis=1)
    each = np.where(x, q / p, (1 - q) / (1 - p))
    # Two hashes choose any two bits; if they choose the same one, it counts once.
    ratio = (each.sum(axis=1) ** 2 - (each**2).sum(axis=1) + each.sum(axis=1)) / 12**2
    expected = known_p[:, 2:] @ share + 0.3 * empty * ratio
    assert np.allclose(total[:, :2], known_p[:, :2], rtol=1e-5)
    assert np.allclose(total[:, 2], expected, rtol=1e-5)


def test_mixture_takes_the_visible_tail_and_keeps_a_remainder():
    rng = np.random.default_rng(5)
    shares = np.r_[zipf(30) * 0.9, np.full(20, 0.1 / 20)]
    counts, design = draw(shares, 10**6, rng)
    marginal = estimate_marginal(counts, design)
    known = np.arange(5)
    other = mixture_other(marginal, design, known)
    mass = 1 - marginal.estimate[known].sum()
    assert other.mass == pytest.approx(mass)
    assert other.shares.sum() == pytest.approx(1)
    # Everything is listed, so hardly anything remains, but never less than the floor.
    tail_sum = other.shares[:-1].sum() / other.shares[-1] * max(0.01 * mass + 0.001, 0)
    assert other.shares[-1] * mass >= 0.0099 * mass or tail_sum > 0
    assert other.tail.candidates <= 45
    few = mixture_other(marginal, design, known, max_tail=3)
    assert few.tail.candidates == 3
    largest = np.argsort(-marginal.estimate[5:])[:3] + 5
    assert np.array_equal(few.tail.positions, design.positions[:, largest])


def test_remainder_floor():
    counts, design = draw(zipf(10), 10**6, np.random.default_rng(6))
    marginal = estimate_marginal(counts, design)
    marginal.estimate[:] = np.r_[0.5, np.full(9, 0.1)]
    other = mixture_other(marginal, design, np.array([0]))
    whole = 0.9 + 0.01 * 0.5 + 0.001
    assert other.shares[-1] == pytest.approx(0.006 / whole)


def test_a_category_must_be_identified():
    counts, design = draw(zipf(4), 1000, np.random.default_rng(7))
    with pytest.raises(InputError, match="cannot be a category"):
        design.product_other("q", counts, np.array([0.1, 0.2, np.nan, 0.1]))
    with pytest.raises(InputError, match="expected 4 finite"):
        design.product_other("q", counts, np.array([0.1, 0.2]))


def test_other_is_the_sum_of_the_categories_that_are_not_shown():
    rng = np.random.default_rng(8)
    values = values_by_stratum(zipf(100), 10**6, 64, rng)
    positions = random_positions(100, rng)
    names = tuple(f"s{i}" for i in range(100))
    model = BloomModel(positions, 128, 0.25, 0.75, labels=names)
    counts = bit_counts(values, positions, 128, 0.25, 0.75, rng)
    top = estimate_marginal(counts, model).top(30)
    _, axis = model.fitted("q", lambda: counts, TableSettings(top=5, fitted=30))
    assert axis.labels == (*(names[i] for i in top), OTHER)
    assert axis.shown == (*axis.labels[:5], OTHER)
    joint = rng.random((31, 31))
    small = Covariance(joint, np.zeros((961, 961))).collapsed([axis.groups, axis.groups]).table
    assert small.sum() == pytest.approx(joint.sum())
    assert small[:5, :5] == pytest.approx(joint[:5, :5])
    assert small[5, 5] == pytest.approx(joint[5:, 5:].sum())
    _, axis = model.fitted("q", lambda: counts, TableSettings(top=5, fitted=30, other=False))
    assert len(axis.labels) == 30 and axis.shown[-1] == OTHER
    _, axis = model.fitted("q", lambda: counts, TableSettings(top=5, other=False))
    assert axis.shown == axis.labels
    with pytest.raises(InputError, match="top must be at least 0"):
        TableSettings(top=-1)
