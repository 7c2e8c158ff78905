"""Randomised response on many bits at once, with exact integer probabilities.

A probability is an integer T in 0…2³², meaning T/2³². A lane (one bit of the filter) answers 1 when
a uniform 32-bit U is below the lane's own T. All lanes are compared together, most significant
digit first: at level l, one random word holds digit l of every lane's U. A lane is decided at the
first digit where U and T differ, so 64 lanes need about eight words, and p = ¼, q = ¾, whose
thresholds have two digits, need exactly two.

The permanent response (PRR) is the sampler with (φ, 1−φ), φ = f/2; the instantaneous one (IRR) is
the same sampler with (p, q). Section 2 of the RAPPOR paper calls these B′ and X′.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

from deniable.errors import InputError, check_integer
from deniable.privacy import PrivacyLoss, upper_log, worst_ratio

DIGITS = 32
ONE = 1 << DIGITS


def threshold(probability: float | Fraction) -> int:
    """The integer nearest to probability·2³².

    >>> threshold(0.25) == 2**30
    True
    """
    if not 0 <= probability <= 1:
        raise InputError(f"expected a probability from 0 to 1, got {probability}")
    return round(Fraction(probability) * ONE)


def digits_needed(if_zero: int, if_one: int) -> int:
    """How many random words a comparison with these two thresholds can need."""
    fractional = [t for t in (if_zero, if_one) if 0 < t < ONE]
    if not fractional:
        return 0
    return DIGITS - min((t & -t).bit_length() - 1 for t in fractional)


def randomise(bits: int, width: int, if_zero: int, if_one: int, word: Callable[[int], int]) -> int:
    """Each of `width` lanes answers 1 with probability if_one/2³² if its bit is set, else if_zero.

    `word(l)` gives digit l, most significant first, of every lane's uniform number, lane i in bit
    i.
    With thresholds between 0 and 2³² the time taken depends on the random words alone.
    """
    lanes = (1 << width) - 1
    result = _target(bits, lanes, if_zero >> DIGITS, if_one >> DIGITS)
    undecided = lanes ^ result
    for level in range(digits_needed(if_zero, if_one)):
        shift = DIGITS - 1 - level
        target = _target(bits, lanes, (if_zero >> shift) & 1, (if_one >> shift) & 1)
        uniform = word(level) & lanes
        result |= undecided & target & ~uniform
        undecided &= ~(uniform ^ target)
        if not undecided:
            break
    return result


def _target(bits: int, lanes: int, zero_digit: int, one_digit: int) -> int:
    """The lanes whose own threshold has a 1 at this digit."""
    if zero_digit == one_digit:
        return lanes if one_digit else 0
    return bits if one_digit else bits ^ lanes


@dataclass(frozen=True)
class Noise:
    """The three probabilities of RAPPOR as integers: φ = f/2 (`flip`), p and q, each of 2³².

    `flip` is 0 for one-time collection. p > q is legal; p = q would say nothing.
    """

    flip: int
    p: int
    q: int

    def __post_init__(self) -> None:
        check_integer("an integer flip", self.flip, 0, ONE // 2 - 1)
        check_integer("an integer p", self.p, 0, ONE)
        check_integer("an integer q", self.q, 0, ONE)
        if self.p == self.q:
            raise InputError("p and q are equal, so a report would say nothing: move them apart")
        if not (0 < self.p_star < 1 and 0 < self.q_star < 1):
            raise InputError(
                "some output would prove a value: with f = 0 both p and q must lie strictly "
                f"between 0 and 1, got p={self.p}/2^32, q={self.q}/2^32"
            )

    @classmethod
    def of(cls, *, p: float, q: float, f: float = 0.0) -> Noise:
        """The nearest integers to the paper's p, q and f.

        >>> Noise.of(p=0.25, q=0.75, f=0.5)
        Noise(flip=1073741824, p=1073741824, q=3221225472)
        """
        if not 0 <= f < 1:
            raise InputError(f"expected f from 0 to below 1 (f = 1 is noise alone), got {f}")
        return cls(threshold(Fraction(f) / 2), threshold(p), threshold(q))

    @cached_property
    def p_star(self) -> Fraction:
        """P(reported bit = 1 | true bit = 0)."""
        return self._effective(self.p, self.q)

    @cached_property
    def q_star(self) -> Fraction:
        """P(reported bit = 1 | true bit = 1)."""
        return self._effective(self.q, self.p)

    def _effective(self, kept: int, flipped: int) -> Fraction:
        return Fraction((ONE - self.flip) * kept + self.flip * flipped, ONE * ONE)

    @cached_property
    def fresh_digits(self) -> int:
        """Random words that the instantaneous response of one slot takes."""
        return digits_needed(self.p, self.q)

    def loss(self, ups: int, downs: int) -> PrivacyLoss:
        """ε between two values, `ups` bits set by the first only and `downs` by the second."""
        # A bit of the PRR reveals at most ln((1−φ)/φ) however often it is reported.
        permanent = Fraction(ONE - self.flip, self.flip) if self.flip else Fraction(0)
        return PrivacyLoss(self.loss_after(1, ups, downs), upper_log([(permanent, ups + downs)]))

    def loss_after(self, reports: int, ups: int, downs: int) -> float:
        """ε of this many reports of one value, exactly: it grows from `once` to `forever`.

        The likelihood ratio of a bit is monotone in how often it came out 1, so the worst outcomes
        are all ones and all zeros.
        """
        keep, flip = Fraction(ONE - self.flip, ONE), Fraction(self.flip, ONE)
        p, q = Fraction(self.p, ONE), Fraction(self.q, ONE)
        if_set = [
            keep * q**reports + flip * p**reports,
            keep * (1 - q) ** reports + flip * (1 - p) ** reports,
        ]
        if_clear = [
            flip * q**reports + keep * p**reports,
            flip * (1 - q) ** reports + keep * (1 - p) ** reports,
        ]
        return upper_log(
            [(worst_ratio(if_set, if_clear), ups), (worst_ratio(if_clear, if_set), downs)]
        )
