"""Randomised response on many bits at once, with exact integer probabilities.

A probability is an integer threshold T in 0…2³², meaning T/2³². A lane (one bit of the filter)
becomes 1 if a uniform 32-bit number U is below the lane's threshold. All lanes are compared
together, most significant digit first: one random word holds the same binary digit of every lane's
U. A lane is decided at the first digit in which U and T differ, so 64 lanes need about eight words;
p = ¼ and q = ¾, whose thresholds have two digits, need exactly two.

Permanent noise (the paper's permanent randomised response, PRR) is the sampler with thresholds
(φ, κ); fresh noise (instantaneous randomised response, IRR) is the same sampler with (p, q).
Section 2 of the RAPPOR paper calls the results B′ and X′. Its permanent noise is symmetric:
φ = f/2, κ = 1 − φ. For the same losses, κ = ½ with symmetric fresh noise is the most accurate, for
one report as well as for many (Arcolezi et al., "Improving the utility of locally differentially
private protocols for longitudinal and multidimensional frequency estimates", 2022: L-OSUE).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache

from deniable.errors import InputError, check_integer
from deniable.privacy import PrivacyLoss, log_sum_rounding_up, worst_ratio

DIGITS = 32
ONE = 1 << DIGITS


def threshold(probability: float | Fraction) -> int:
    """Return the integer nearest to probability·2³².

    >>> threshold(0.25) == 2**30
    True
    """
    if not 0 <= probability <= 1:
        raise InputError(f"a probability must be from 0 to 1, not {probability}")
    return round(Fraction(probability) * ONE)


def digits_needed(if_zero: int, if_one: int) -> int:
    """Return how many random words a comparison with these two thresholds can need."""
    fractional = [t for t in (if_zero, if_one) if 0 < t < ONE]
    if not fractional:
        return 0
    return DIGITS - min((t & -t).bit_length() - 1 for t in fractional)


def randomise(bits: int, width: int, if_zero: int, if_one: int, word: Callable[[int], int]) -> int:
    """Randomise `width` bits: 1 with probability if_one/2³² if the bit is set, else if_zero/2³².

    `word(d)` returns binary digit d, most significant first, of every lane's uniform number; bit i
    of the word belongs to lane i. If both thresholds are strictly between 0 and 2³², the running
    time depends on the random words only.
    """
    lanes = (1 << width) - 1
    result = _target(bits, lanes, if_zero >> DIGITS, if_one >> DIGITS)
    undecided = lanes ^ result
    for digit in range(digits_needed(if_zero, if_one)):
        shift = DIGITS - 1 - digit
        target = _target(bits, lanes, (if_zero >> shift) & 1, (if_one >> shift) & 1)
        uniform = word(digit) & lanes
        result |= undecided & target & ~uniform
        undecided &= ~(uniform ^ target)
        if not undecided:
            break
    return result


def _target(bits: int, lanes: int, zero_digit: int, one_digit: int) -> int:
    """Return the lanes whose threshold has a 1 at this digit."""
    if zero_digit == one_digit:
        return lanes if one_digit else 0
    return bits if one_digit else bits ^ lanes


@dataclass(frozen=True)
class Noise:
    """The probabilities of permanent and fresh noise, as integers in units of 2⁻³².

    They are those of one bit. A mechanism that reports a number has one such bit per number, which
    says whether that number is the client's.

    Parameters
    ----------
    flip : int
        φ, the probability that permanent noise sets a clear bit; 0 without permanent noise.
    p : int
        Probability that a bit is reported as 1 if it is not set after permanent noise.
    q : int
        Probability that a bit is reported as 1 if it is set after permanent noise. It may be below
        `p`, but not equal to it: reports would carry no information.
    keep : int or None, default None
        κ, the probability that a set bit stays set under permanent noise; None means 2³² − `flip`,
        the symmetric noise of the paper, where φ = f/2 is the probability that a bit is flipped.

    Raises
    ------
    InputError
        If a probability is out of range, p equals q, or an output would prove a value.
    """

    flip: int
    p: int
    q: int
    keep: int | None = None

    def __post_init__(self) -> None:
        check_integer("flip", self.flip, 0, ONE // 2 - 1)
        if self.keep is not None:
            check_integer("flip", self.flip, 1, ONE // 2 - 1)
            check_integer("keep", self.keep, self.flip + 1, ONE - 1)
        check_integer("p", self.p, 0, ONE)
        check_integer("q", self.q, 0, ONE)
        if self.p == self.q:
            raise InputError(
                "p and q are equal, so reports carry no information: choose different ones"
            )
        if not (0 < self.p_star < 1 and 0 < self.q_star < 1):
            raise InputError(
                "some reports would prove a value: without permanent noise (f = 0), p and q must "
                f"be strictly between 0 and 1, not p = {self.p / ONE:g} and q = {self.q / ONE:g}"
            )

    @classmethod
    def of(cls, *, p: float, q: float, f: float = 0.0) -> Noise:
        """Return the noise nearest to the paper's p, q and f.

        >>> Noise.of(p=0.25, q=0.75, f=0.5)
        Noise(flip=1073741824, p=1073741824, q=3221225472, keep=None)
        """
        if not 0 <= f < 1:
            raise InputError(f"f must be at least 0 and below 1 (f = 1 is pure noise), not {f}")
        return cls(threshold(Fraction(f) / 2), threshold(p), threshold(q))

    @property
    def kept(self) -> int:
        """Probability that a set bit stays set under permanent noise, in units of 2⁻³²."""
        return ONE - self.flip if self.keep is None else self.keep

    @cached_property
    def p_star(self) -> Fraction:
        """P(reported bit = 1 | true bit = 0)."""
        return self._effective(self.flip)

    @cached_property
    def q_star(self) -> Fraction:
        """P(reported bit = 1 | true bit = 1)."""
        return self._effective(self.kept)

    def _effective(self, permanent: int) -> Fraction:
        """Return P(1) of a bit that is 1 after permanent noise with this probability."""
        return Fraction(permanent * self.q + (ONE - permanent) * self.p, ONE * ONE)

    @property
    def permanent_thresholds(self) -> bytes:
        """The probabilities of permanent noise, as in the messages that it is derived from.

        Otherwise, noise with two such probabilities would compare the same random numbers with two
        thresholds, which would reveal bits.
        """
        flip = self.flip.to_bytes(4, "big")
        return flip if self.keep is None else flip + self.keep.to_bytes(4, "big")

    @cached_property
    def fresh_digits(self) -> int:
        """Number of random words that the fresh noise of one slot takes."""
        return digits_needed(self.p, self.q)

    @lru_cache(maxsize=1024)  # noqa: B019 - small objects; the slots of a survey often share one
    def loss(self, first: int, second: int) -> PrivacyLoss:
        """Return ε between two values.

        first, second : numbers of bits that only the first and only the second value sets
        """
        # However often a bit is reported, all reports say no more than its permanent bit would.
        permanent_bit = [(Fraction(0), Fraction(1)), (Fraction(1), Fraction(0))]
        in_total = self._worst_loss(permanent_bit, first, second)
        return PrivacyLoss(self.loss_after(1, first, second), in_total)

    def loss_after(self, reports: int, first: int, second: int) -> float:
        """Return ε in total for this many reports of one value; exact before rounding up.

        It grows from ε per report to ε in total. The likelihood ratio of a bit is monotone in the
        number of reports in which it is 1, so the worst outcomes are all ones and all zeros.
        """
        p, q = Fraction(self.p, ONE), Fraction(self.q, ONE)
        ones, zeros = (p**reports, q**reports), ((1 - p) ** reports, (1 - q) ** reports)
        return self._worst_loss([ones, zeros], first, second)

    def _worst_loss(
        self, outcomes: Sequence[tuple[Fraction, Fraction]], first: int, second: int
    ) -> float:
        """Return ε between two values if the worst of these outcomes occurs for every bit.

        outcomes : their probabilities if the permanent bit is 0, and if it is 1
        """
        flip, keep = Fraction(self.flip, ONE), Fraction(self.kept, ONE)
        if_set = [keep * one + (1 - keep) * zero for zero, one in outcomes]
        if_clear = [flip * one + (1 - flip) * zero for zero, one in outcomes]
        return log_sum_rounding_up(
            [(worst_ratio(if_set, if_clear), first), (worst_ratio(if_clear, if_set), second)]
        )
