"""Selection among many candidates finds the true ones and leaves every other with an estimate."""

import numpy as np
from experiments.direct_counts import bit_counts, random_positions, values_by_stratum

from deniable.inference.marginal.design import BloomDesign
from deniable.inference.marginal.estimate import estimate_marginal
from deniable.simulation.populations import zipf


def test_thirty_thousand_candidates():
    rng = np.random.default_rng(1)
    shares = np.r_[0.6 * zipf(30), np.full(2_000, 0.4 / 2_000)]
    positions = random_positions(shares.size, rng, strata=32)
    values = values_by_stratum(shares, 500_000, 32, rng)
    counts = bit_counts(values, positions, 128, 0.25, 0.75, rng)
    absent = random_positions(30_000, rng, strata=32)
    listed = np.concatenate([absent[:, :15_000], positions[:, :30], absent[:, 15_000:]], axis=1)
    result = estimate_marginal(counts, BloomDesign(listed, 128, 0.25, 0.75))
    true = slice(15_000, 15_030)
    # The weakest true string, .005, lies five standard errors above 0; the cut is at 4.9.
    heavy = shares[:30] > 7 * np.median(result.standard_error)
    assert heavy.sum() >= 15 and result.detected[true][heavy].all()
    false = np.ones(30_030, dtype=bool)
    false[true] = False
    # P(any false detection) is .05; the seed is fixed, two would be a bug (P < .002).
    assert result.detected[false].sum() <= 1
    assert result.identified.all() and np.isfinite(result.estimate).all()
    # 30,000 nearly standard normal z: mean within 4 / sqrt(30,000) * 1.5, variance within 5%.
    assert abs(result.z[false].mean()) < 0.035
    assert abs(result.z[false].var() - 1) < 0.05
    off = (result.estimate[true] - shares[:30]) / result.standard_error[true]
    assert np.abs(off).max() < 4.5 and abs(off.mean()) < 4 / np.sqrt(30)


def test_heavy_strings_do_not_leak_into_light_ones():
    # A false candidate that shares one bit with the heaviest string in every stratum.
    rng = np.random.default_rng(2)
    shares = np.r_[0.5, np.full(500, 0.001)]
    positions = random_positions(501, rng, strata=32)
    counts = bit_counts(
        values_by_stratum(shares, 200_000, 32, rng), positions, 128, 0.25, 0.75, rng
    )
    listed = random_positions(2_000, rng, strata=32)
    listed[:, 0] = positions[:, 0]
    listed[:, 1, 0] = positions[:, 0, 0]
    design = BloomDesign(listed, 128, 0.25, 0.75)
    result = estimate_marginal(counts, design, selection="lasso")
    assert result.detected[0] and not result.detected[1]
    assert abs(result.z[1]) < 4
    # The twin: without the heavy string in the list, its bits are taken for the candidate's.
    alone = estimate_marginal(counts, design.take(np.arange(1, 2_000)), selection="lasso")
    assert alone.z[0] > 10
