"""Exact ε from integers: the paper's numbers, rounding, splitting and calibration."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from deniable.errors import InputError
from deniable.mechanisms import Bloom, Boolean, Choice, Noise, calibrate
from deniable.mechanisms.noise import ONE
from deniable.privacy import (
    PrivacyLoss,
    add_rounding_up,
    binary_response,
    log_sum_rounding_up,
    split,
    total_variation,
)


def bloom(p: float, q: float, f: float = 0.0, h: int = 2) -> Bloom:
    return Bloom(noise=Noise.of(p=p, q=q, f=f), bits=128, hashes=h, cohorts=64)


@pytest.mark.parametrize(
    ("mechanism", "once", "forever"),
    [
        # The paper: ε = 4.39 at p = .25, q = .75, h = 2; its q = .32, which it calls ε/3 = 1.46,
        # really spends 0.69 (erratum).
        (bloom(0.25, 0.75), 2 * math.log(9), math.inf),
        (bloom(0.25, 0.32), 2 * math.log(0.32 * 0.75 / (0.25 * 0.68)), math.inf),
        (bloom(0.5, 0.75, 0.5), 2 * math.log(0.6875 * 0.4375 / (0.5625 * 0.3125)), 4 * math.log(3)),
        (bloom(0.75, 0.25), 2 * math.log(9), math.inf),
        (Boolean(noise=Noise.of(p=0.25, q=0.75, f=0.5)), math.log(0.625 / 0.375), math.log(3)),
        (Boolean(noise=Noise.of(p=0.5, q=0.75)), math.log(2), math.inf),
        (Choice(noise=Noise.of(p=0.25, q=0.75), options=("a", "b")), math.log(9), math.inf),
    ],
)
def test_loss_is_the_closed_form(
    mechanism: Bloom | Boolean | Choice, once: float, forever: float
) -> None:
    assert mechanism.loss.per_report == pytest.approx(once, abs=1e-8)
    assert mechanism.loss.in_total == pytest.approx(forever, abs=1e-8)


def test_filter_narrower_than_two_values_bits() -> None:
    """With k < 2h two values cannot differ in 2h bits, and the loss is smaller."""
    narrow = Bloom(noise=Noise.of(p=0.25, q=0.75), bits=3, hashes=2)
    assert narrow.loss.per_report == pytest.approx(3 * math.log(3))


@pytest.mark.slow
@given(st.fractions(min_value="1/1000", max_value=1000), st.integers(1, 50))
def test_log_sum_never_rounds_down(ratio: Fraction, n: int) -> None:
    assume(ratio >= 1)
    from decimal import Context

    exact = Context(prec=80)
    log = exact.divide(ratio.numerator, ratio.denominator).ln(exact)
    got = log_sum_rounding_up([(ratio, n)])
    # `log` is the nearest of 80 digits: the exact one is at most one unit in the last away.
    exact_sum = n * Fraction(log)
    assert Fraction(got) >= exact_sum - Fraction(1, 10**70)
    assert Fraction(math.nextafter(got, 0.0)) < exact_sum + Fraction(1, 10**40)


@given(st.floats(0, 1e6), st.floats(0, 1e6))
def test_sums_round_up(a: float, b: float) -> None:
    assert Fraction(add_rounding_up(a, b)) >= Fraction(a) + Fraction(b)
    assert add_rounding_up(a, b) <= math.nextafter(a + b, math.inf)


@given(st.floats(1e-6, 100), st.lists(st.floats(1e-3, 1e3), min_size=1, max_size=6))
def test_split_never_exceeds_the_whole(epsilon: float, weights: list[float]) -> None:
    shares = split(epsilon, weights)
    assert sum(map(Fraction, shares)) <= Fraction(epsilon)
    assert sum(shares) == pytest.approx(epsilon)
    for share, weight in zip(shares, weights, strict=True):
        assert share == pytest.approx(epsilon * weight / sum(weights))


@pytest.mark.parametrize("weights", [[], [0.0, 1.0], [-1.0], [math.inf]])
def test_split_refuses(weights: list[float]) -> None:
    with pytest.raises(InputError):
        split(1.0, weights)


@pytest.mark.slow
@given(
    epsilon=st.floats(0.001, 12),
    p=st.floats(0.001, 0.999),
    q=st.floats(0.001, 0.999),
    f=st.sampled_from([0.0, 0.25]),
    vary=st.sampled_from(["p", "q"]),
)
def test_calibrate_spends_as_much_as_integers_allow(
    epsilon: float, p: float, q: float, f: float, vary: str
) -> None:
    assume(abs(p - q) > 1e-6)
    start = bloom(p, q, f)
    try:
        found = calibrate(start, epsilon, vary=vary)  # type: ignore[arg-type]
    except InputError:
        return
    assert found.loss.per_report <= epsilon
    assert (found.noise.q > found.noise.p) == (start.noise.q > start.noise.p)
    fixed, moved = (found.noise.p, found.noise.q)[:: 1 if vary == "q" else -1]
    further = moved + (1 if moved > fixed else -1)
    if 0 < further < ONE:
        values = {"p": found.noise.p, "q": found.noise.q, vary: further}
        more = Bloom(noise=Noise(found.noise.flip, **values), bits=128, hashes=2, cohorts=64)
        assert more.loss.per_report > epsilon


@pytest.mark.slow
@given(st.floats(0.01, 20))
def test_calibrate_in_total_changes_f(epsilon: float) -> None:
    found = calibrate(bloom(0.25, 0.75, 0.5), epsilon, vary="f", in_total=True)
    assert found.loss.in_total <= epsilon
    less = Noise(found.noise.flip - 1, found.noise.p, found.noise.q)
    assert Bloom(noise=less, bits=128, hashes=2).loss.in_total > epsilon


def test_calibrate_gives_the_papers_right_third() -> None:
    """ε = 1.4648 with p = .25, h = 2 is q = 0.40945, not the printed .32 (erratum)."""
    third = calibrate(bloom(0.25, 0.75), 1.4648)
    assert third.noise.q / ONE == pytest.approx(0.40945, abs=1e-5)


@pytest.mark.parametrize("epsilon", [0.0, -1.0, math.inf, math.nan])
def test_calibrate_refuses(epsilon: float) -> None:
    with pytest.raises(InputError):
        calibrate(bloom(0.25, 0.75), epsilon)
    with pytest.raises(InputError, match='vary="f"'):
        calibrate(bloom(0.25, 0.75, 0.5), 1.0, in_total=True)


def test_loss_grows_from_once_to_forever() -> None:
    mechanism = bloom(0.5, 0.75, 0.5)
    losses = [mechanism.loss_after(n) for n in (1, 2, 5, 50, 500)]
    assert losses[0] == mechanism.loss.per_report
    assert losses == sorted(losses)
    assert losses[-1] <= mechanism.loss.in_total
    assert losses[-1] == pytest.approx(mechanism.loss.in_total)
    assert losses[1] <= 2 * losses[0], "reports that share a permanent response tell less each"


def test_impossible_losses_and_noise_are_refused() -> None:
    with pytest.raises(InputError):
        PrivacyLoss(2.0, 1.0)
    for kwargs in ({"p": 0.5, "q": 0.5}, {"p": 0.0, "q": 0.5}, {"p": 0.5, "q": 1.0},
                   {"p": -0.1, "q": 0.5}, {"p": 0.1, "q": 0.5, "f": 1.0}):  # fmt: skip
        with pytest.raises(InputError):
            Noise.of(**kwargs)
    assert Noise.of(p=0.0, q=1.0, f=0.5).p_star == Fraction(1, 4)


@pytest.mark.parametrize(
    "parts",
    [
        [binary_response(1.0)] * 3,
        [binary_response(1.0), binary_response(2.0)],
        [[(0.5, 0.25), (0.5, 0.75)], [(0.2, 0.2), (0.3, 0.8), (0.5, 0.0)], binary_response(0.3)],
    ],
)
def test_total_variation_of_independent_parts_equals_enumeration(
    parts: list[list[tuple[float, float]]],
) -> None:
    outcomes = itertools.product(*parts)
    exact = sum(
        max(0.0, math.prod(a for a, _ in outcome) - math.prod(b for _, b in outcome))
        for outcome in outcomes
    )
    assert exact <= total_variation(parts) <= exact + 1e-7
