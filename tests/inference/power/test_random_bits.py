import numpy as np
from scipy import stats

from deniable.inference.power.random_bits import weight_half_found

STRATA, BITS, REPORTS, CUTOFF = 64, 1024, 150, 1e-4


def test_half_of_the_strings_pass_a_test_of_few_ones():
    """Half a one is expected per bit. 4,000 strings: a rate of .5 leaves .42 to .58 never."""
    rng = np.random.default_rng(3)
    ones = np.sort(rng.poisson(0.5, (STRATA, BITS)), axis=1)
    # The sum of the counts of random bits is nearly Poisson.
    needed = int(stats.poisson.isf(CUTOFF, ones.mean() * STRATA)) + 1
    row = np.arange(STRATA)[:, None]
    weight = weight_half_found(
        lambda rank, added: (ones[row, rank] + added).astype(np.int64),
        np.full(STRATA, float(REPORTS)),
        BITS,
        needed,
        1e-4,
    )

    def power(weight: float) -> float:
        drawn = ones[row, rng.integers(0, BITS, (STRATA, 4000))]
        return float(((drawn + rng.poisson(weight * REPORTS, drawn.shape)).sum(0) >= needed).mean())

    assert abs(power(weight) - 0.5) < 0.08
    # The broken twin: a normal distribution, which is neither discrete nor skewed.
    normal = stats.norm.isf(CUTOFF) * np.sqrt(ones.var() * STRATA) / (STRATA * REPORTS)
    assert power(normal) < 0.42
