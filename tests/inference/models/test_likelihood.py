import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deniable.errors import InputError
from deniable.inference.models.bloom import BloomModel
from deniable.inference.models.likelihood import Likelihood, channel_rows, ones_per_report


def unpack(bits, k):
    return np.unpackbits(bits, axis=1, bitorder="little")[:, :k].astype(bool)


def direct_log(bits, stratum, theta):
    """log P(report | category), float64[N, m], straight from the definition."""
    x = unpack(bits, theta.shape[2])[:, None, :]
    t = theta[stratum]
    return np.where(x, np.log(t), np.log1p(-t)).sum(axis=2)


def bit_probabilities(model):
    """P(bit = 1 | string), float64[S, m, k], from the 0/1 matrix."""
    shape = (model.strata, model.bits, model.candidates)
    member = model.indicator().toarray().reshape(shape).transpose(0, 2, 1)
    member[~model.informative] = 1.0 - (1.0 - 1.0 / model.bits) ** model.hashes
    p, q = model.p[:, None, None], model.q[:, None, None]
    return p + (q - p) * member


def random_reports(rng, n, k, strata):
    bits = rng.integers(0, 256, (n, (k + 7) // 8), dtype=np.uint8)
    return bits, rng.integers(0, strata, n).astype(np.uint16)


def absolute_log(likelihood):
    with np.errstate(divide="ignore"):
        return np.log(likelihood.rows.astype(np.float64)) + likelihood.log_scale[:, None]


# Widths that are no multiple of 8 carry random padding, which must not count.
@settings(max_examples=30, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(1, 40), st.integers(1, 4), st.integers(1, 6))
def test_bloom_rows_are_the_product_of_bits(seed, k, h, m):
    rng = np.random.default_rng(seed)
    p, q = rng.uniform(0.05, 0.95, (2, 3))
    design = BloomModel(rng.integers(0, k, (3, m, h), dtype=np.int32), k, p, q)
    bits, stratum = random_reports(rng, 20, k, 3)
    expected = direct_log(bits, stratum, bit_probabilities(design))
    result = design.likelihood(bits, stratum)
    assert np.allclose(absolute_log(result), expected, atol=1e-5)
    assert np.all(result.rows.max(axis=1) == 1) and result.rows.dtype == np.float32


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(1, 40), st.integers(1, 6))
def test_channel_rows_are_the_product_of_bits(seed, k, m):
    rng = np.random.default_rng(seed)
    theta = rng.uniform(0.001, 0.999, (3, m, k))
    bits, stratum = random_reports(rng, 20, k, 3)
    expected = direct_log(bits, stratum, theta)
    result = channel_rows(theta, bits, stratum)
    assert np.allclose(result.log_scale, expected.max(axis=1), atol=1e-9)
    rows = np.exp(expected - expected.max(axis=1, keepdims=True))
    assert np.allclose(result.rows, rows, rtol=1e-5, atol=1e-30)


def test_an_untold_candidate_is_a_string_with_bits_anywhere():
    """One hash: the mean over all the bits that it could set, in rows and in mixtures."""
    rng = np.random.default_rng(5)
    k = 11
    everywhere = np.arange(k, dtype=np.int32).reshape(1, k, 1).repeat(2, axis=0)
    bits, stratum = random_reports(rng, 30, k, 2)
    design = BloomModel(everywhere, k, 0.2, 0.7)
    each = np.exp(absolute_log(design.likelihood(bits, stratum)))
    untold = BloomModel(
        np.where(np.arange(2)[:, None, None] == 1, -1, everywhere[:, :2]), k, 0.2, 0.7
    )
    found = np.exp(absolute_log(untold.likelihood(bits, stratum)))
    mean = np.repeat(each.mean(axis=1, keepdims=True), 2, axis=1)
    expected = np.where(stratum[:, None] == 1, mean, each[:, :2])
    assert np.allclose(found, expected, rtol=1e-5)
    share = np.array([0.5, 0.2, 0.3])
    mixed = expected @ share[:2] + 0.3 * each.mean(axis=1)
    assert np.allclose(
        np.exp(untold.mixture_log_likelihood(bits, stratum, share)), mixed, rtol=1e-5
    )
    assert np.allclose(bit_probabilities(untold)[1], 0.2 + 0.5 / k)


def test_extreme_channels_stay_finite():
    rng = np.random.default_rng(0)
    theta = np.clip(rng.uniform(size=(1, 3, 2048)), 1e-9, 1 - 1e-9)
    theta[0, 1] = 1e-9
    theta[0, 2] = 1 - 1e-9
    bits, stratum = random_reports(rng, 50, 2048, 1)
    result = channel_rows(theta, bits, stratum)
    assert np.isfinite(result.rows).all() and np.isfinite(result.log_scale).all()
    assert np.all(result.rows.max(axis=1) == 1)


def test_rows_sum_to_one_over_all_reports():
    # 2^6 possible reports: each category's likelihoods must sum to 1.
    rng = np.random.default_rng(1)
    design = BloomModel(rng.integers(0, 6, (1, 4, 2), dtype=np.int32), 6, 0.2, 0.7)
    bits = np.arange(64, dtype=np.uint8)[:, None]
    result = design.likelihood(bits, np.zeros(64, np.uint16))
    assert np.exp(absolute_log(result)).sum(axis=0) == pytest.approx(np.ones(4), abs=1e-6)


def test_appending_a_column_keeps_every_likelihood():
    rng = np.random.default_rng(2)
    theta = rng.uniform(0.05, 0.95, (2, 4, 30))
    bits, stratum = random_reports(rng, 40, 30, 2)
    some = channel_rows(theta[:, :3], bits, stratum)
    last = channel_rows(theta[:, 3:], bits, stratum)
    joined = some.with_column(last.log_scale)
    assert np.allclose(absolute_log(joined), direct_log(bits, stratum, theta), atol=1e-4)
    assert joined.rows.max(axis=1) == pytest.approx(np.ones(40), abs=1e-6)
    assert joined.rows.dtype == np.float32


def test_empty_inputs():
    design = BloomModel(np.zeros((2, 0, 1), np.int32), 8, 0.2, 0.7)
    bits, stratum = np.zeros((3, 1), np.uint8), np.zeros(3, np.uint16)
    assert design.likelihood(bits, stratum).rows.shape == (3, 0)
    assert channel_rows(np.zeros((2, 0, 8)), bits, stratum).rows.shape == (3, 0)
    one = np.full((2, 1, 8), 0.5)
    assert channel_rows(one, bits[:0], stratum[:0]).rows.shape == (0, 1)


@pytest.mark.parametrize("k", [1, 7, 8, 9, 16, 31])
def test_ones_ignore_padding(k):
    bits = np.random.default_rng(k).integers(0, 256, (30, (k + 7) // 8), dtype=np.uint8)
    assert np.array_equal(ones_per_report(bits, k), unpack(bits, k).sum(axis=1))


def test_refusals():
    design = BloomModel(np.zeros((2, 1, 1), np.int32), 12, 0.2, 0.7)
    bits, stratum = np.zeros((3, 2), np.uint8), np.zeros(3, np.uint16)
    with pytest.raises(InputError, match=r"uint8\[N, 2\]"):
        design.likelihood(bits[:, :1], stratum)
    with pytest.raises(InputError, match=r"integers\[3\]"):
        design.likelihood(bits, stratum[:2])
    with pytest.raises(InputError, match="below 2, got 5"):
        design.likelihood(bits, stratum + np.uint16(5))
    with pytest.raises(InputError, match="strictly between"):
        BloomModel(design.positions, 12, 0.0, 0.7).likelihood(bits, stratum)
    with pytest.raises(InputError, match="strictly between 0 and 1"):
        channel_rows(np.zeros((2, 1, 12)), bits, stratum)
    with pytest.raises(InputError, match="theta must lie"):
        channel_rows(np.full((2, 1, 12), 1.5), bits, stratum)
    with pytest.raises(InputError, match=r"rows must be \[N, m\]"):
        Likelihood(np.zeros((2, 2), np.float32), np.zeros(3))
