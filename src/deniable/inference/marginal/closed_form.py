"""Marginals with a closed form: one bit per category, all categories known.

t = (c - p* N) / ((q* - p*) N) estimates the frequency of each category separately, with the
binomial variance r(1 - r) / (N (q* - p*)^2) if each client sent one report; see `Repetition`.
"""

from functools import partial

import numpy as np
from scipy import special

from deniable.errors import InputError
from deniable.inference.distributions import binomial_pmf, binomial_quantile
from deniable.inference.marginal.bit_counts import BitCounts, Repetition
from deniable.inference.marginal.detection import Correction, Estimates, detect, threshold_of
from deniable.inference.marginal.tails import (
    IntegerSum,
    fast_length,
    log_binomial_tail,
    log_upper_tail,
)
from deniable.kernels.array_types import Floats, Int64s, Mask
from deniable.results.marginal import Marginal, Measured

MAX_SUMMED = 1 << 20
"""Reports of repeated collection up to which the distribution of an absent category is exact."""


def estimate_basic(
    counts: BitCounts,
    p_star: float,
    q_star: float,
    *,
    alpha: float = 0.05,
    correction: Correction = "bonferroni",
    labels: tuple[str, ...] | None = None,
    pairs: tuple[float, float] = (0.0, 0.0),
) -> Marginal:
    """Estimate the frequencies of categories in Basic RAPPOR: bit i stands for category i.

    pairs : covariance of two bits, given that the value sets neither, and that it sets one of them

    Examples
    --------
    >>> counts = BitCounts(np.array([[500, 375, 375]]), np.array([1000]))
    >>> estimate_basic(counts, .25, .75).estimate
    array([0.5 , 0.25, 0.25])
    """
    if not (0 <= p_star <= 1 and 0 <= q_star <= 1) or p_star == q_star:
        raise InputError(
            f"p* and q* must be two different probabilities, got p* = {p_star}, q* = {q_star}"
        )
    categories = counts.ones.shape[1]
    if labels is not None and len(set(labels)) != categories:
        raise InputError(
            f"{categories} categories need {categories} different labels, got {len(set(labels))}"
        )
    size, gain = max(counts.reports, 1), q_star - p_star
    share = counts.ones.sum(axis=0) / size
    estimate = (share - p_star) / gain
    floor = 0.5 / (size + 1)
    r = share.clip(max(min(p_star, q_star), floor), min(max(p_star, q_star), 1 - floor))
    # Under "absent" the count is Binomial(N, p*), whatever the other categories do.
    r0 = np.array(min(max(p_star, floor), 1 - floor))
    noise, chances = counts.repetition, (np.array(p_star), np.array(q_star))
    variance, _ = noise.moments(r, *chances)
    absent, third = noise.moments(r0, *chances)
    null = np.sqrt(absent / size) / abs(gain)
    skewness = np.full(categories, np.sign(gain) * third / (absent * np.sqrt(absent * size)))
    log_p_value = log_upper_tail(estimate / null, skewness)
    threshold = threshold_of(
        float(null) if counts.reports else float("nan"), float(skewness[0]) if categories else 0.0
    )
    if counts.reports and (noise.reports_per_client == 1 or counts.reports <= MAX_SUMMED):
        ones, p = counts.ones.sum(axis=0), p_star if 0 < p_star < 1 else float(r0)
        # A category that lowers its count is tested by the zeros.
        tested = (ones, p, q_star) if gain > 0 else (counts.reports - ones, 1 - p, 1 - q_star)
        log_p_value = log_absent_tail(*tested, counts.reports, noise)
        if noise.reports_per_client == 1:
            threshold = partial(binomial_threshold, tested[1], abs(gain), counts.reports)

    def mass(detected: Mask, _: float) -> Measured:
        """Return the sum of the detected categories with its standard error.

        The values are multinomial. With P the sum, its variance is the sum of the variances given
        the values, and of the covariances of all pairs of bits given them, plus P(1 - P) R / N.
        """
        total = float(estimate[detected].sum())
        repeats = noise.reports_per_client
        given = _noise_variance(estimate[detected], variance[detected] / gain**2, repeats)
        whole = min(max(total, 0.0), 1.0)
        between = _pair_covariances(np.clip(estimate[detected], 0.0, 1.0), pairs) / gain**2
        given_values = max(float(given.sum() + between.sum()), 0.0)
        of_sum = (given_values + repeats * whole * (1 - whole)) / size
        return Measured.normal(total, float(np.sqrt(of_sum)))

    estimates = Estimates(
        value=estimate,
        error=np.sqrt(variance / size) / abs(gain),
        log_p_value=log_p_value,
        identified=np.full(categories, counts.reports > 0),
        threshold=threshold,
        labels=labels,
    )
    return detect(estimates, counts, mass, alpha, correction)


def _noise_variance(estimate: Floats, variance: Floats, repeats: float) -> Floats:
    """Return the part of the variance of each estimate, times N, that the noise causes.

    The rest is the variance t(1 - t) R of the clients' values.
    """
    shares = np.clip(estimate, 0.0, 1.0)
    return np.maximum(variance - repeats * shares * (1 - shares), 0.0)


def _pair_covariances(shares: Floats, pairs: tuple[float, float]) -> Floats:
    """Return the mean covariance of two bits given the values, float64[m, m]; 0 on the diagonal.

    pairs : that of two bits of which the value sets neither, and of which it sets one
    """
    neither, one = pairs
    between = neither + (one - neither) * (shares[:, np.newaxis] + shares)
    np.fill_diagonal(between, 0.0)
    return between


def covariance_of_options(
    marginal: Marginal, gain: float = 1.0, pairs: tuple[float, float] = (0.0, 0.0)
) -> Floats:
    """Return the covariance of the estimates of `estimate_basic`, float64[m, m].

    The values are multinomial, and given the values bits have these covariances.

    gain : q* − p*
    pairs : as in `estimate_basic`
    """
    size, repeats = max(marginal.reports, 1), marginal.reports_per_client
    shares = np.clip(np.nan_to_num(marginal.estimate), 0.0, 1.0)
    given = np.diag(_noise_variance(marginal.estimate, size * marginal.standard_error**2, repeats))
    given += _pair_covariances(shares, pairs) / gain**2
    of_values = repeats * (np.diag(shares) - np.outer(shares, shares))
    return np.asarray((given + of_values) / size)


def binomial_threshold(p_star: float, gain: float, reports: int, cutoff: float) -> float:
    """Return the frequency at which a count is significant with a probability of one half.

    Counts are integers: the least significant one may be far less likely than the cut-off.

    Examples
    --------
    >>> round(binomial_threshold(0.5, 0.5, 3, 0.2), 3)
    0.587
    >>> binomial_threshold(0.5, 0.5, 3, 0.1)
    inf
    """
    least = binomial_quantile(cutoff, reports, p_star) + 1
    if least > reports:
        return np.inf
    return (float(special.betaincinv(least, reports - least + 1, 0.5)) - p_star) / gain


def log_absent_tail(
    ones: Int64s, p_star: float, q_star: float, reports: int, noise: Repetition
) -> Floats:
    """Return log P(count >= ones) of a category that no client holds, float64[m]; p* < q*.

    The reports of a client share its permanent bit, which is 1 with probability φ. Clients are
    taken to have sent as equal numbers of reports as possible.

    Examples
    --------
    >>> twice = Repetition(reports_per_client=2, flip=0.25)
    >>> np.exp(log_absent_tail(np.array([1, 2]), 0.25, 0.75, 2, twice)).round(3)
    array([0.25, 0.25])
    """
    if noise.reports_per_client == 1:
        return log_binomial_tail(ones, p_star, reports)
    given_bit = noise.given_permanent_bit(np.array([p_star]), np.array([q_star]))
    clients = max(round(reports / noise.reports_per_client), 1)
    fewest, rest = divmod(reports, clients)
    draws = []
    for each, times in ((fewest, clients - rest), (fewest + min(rest, 1), rest)):
        value = np.arange(each + 1)
        chance = binomial_pmf(value, each, np.clip(given_bit, 0.0, 1.0))
        draws.append((value, (1 - noise.flip) * chance[0] + noise.flip * chance[1], times))
    size = fast_length(reports + 1)
    variance, _ = noise.moments(np.array(p_star), np.array(p_star), np.array(q_star))
    return IntegerSum.of(draws, size, float(np.sqrt(variance * reports))).log_tail(ones)
