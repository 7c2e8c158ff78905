"""The sampler of noise: exact in every digit, and equal to comparing lane by lane."""

from __future__ import annotations

from fractions import Fraction

from hypothesis import given
from hypothesis import strategies as st

from deniable.mechanisms.noise import DIGITS, ONE, digits_needed, randomise, threshold

THRESHOLD = st.one_of(
    st.integers(0, ONE), st.sampled_from([0, 1, ONE // 4, ONE // 2, 3 * ONE // 4, ONE - 1, ONE])
)


@given(st.data(), st.integers(1, 200), THRESHOLD, THRESHOLD)
def test_equals_comparing_each_lane(
    data: st.DataObject, width: int, if_zero: int, if_one: int
) -> None:
    bits = data.draw(st.integers(0, 2**width - 1))
    words = data.draw(
        st.lists(st.integers(0, 2**width - 1), min_size=DIGITS, max_size=DIGITS), label="words"
    )
    got = randomise(bits, width, if_zero, if_one, words.__getitem__)
    for i in range(width):
        uniform = 0
        for level in range(digits_needed(if_zero, if_one)):
            uniform |= (words[level] >> i & 1) << (DIGITS - 1 - level)
        limit = if_one if bits >> i & 1 else if_zero
        assert (got >> i & 1) == (uniform < limit)
    assert got < 2**width


def test_probability_is_exact_over_all_words() -> None:
    """With three digits, exactly T·8/2³² of the eight numbers give 1."""
    for eighths in range(9):
        limit = eighths * ONE // 8
        ones = sum(
            randomise(1, 1, 0, limit, lambda level, u=u: u >> (2 - level) & 1) for u in range(8)
        )
        assert Fraction(ones, 8) == Fraction(limit, ONE)


def test_quarter_and_three_quarters_need_two_words() -> None:
    assert digits_needed(threshold(0.25), threshold(0.75)) == 2
    assert digits_needed(threshold(0.5), 1) == 32
    assert digits_needed(0, ONE) == 0


def test_stops_when_every_lane_is_decided() -> None:
    asked = []

    def word(level: int) -> int:
        asked.append(level)
        return 0

    randomise(0, 64, ONE // 2 + 1, ONE // 2 + 1, word)
    assert asked == [0], "the first digit of ½ is 1 and every lane drew 0"


@given(st.floats(0, 1))
def test_threshold_is_nearest(probability: float) -> None:
    assert abs(Fraction(threshold(probability), ONE) - Fraction(probability)) <= Fraction(
        1, 2 * ONE
    )
