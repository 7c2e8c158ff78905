"""Mechanisms that report one number: generalised randomised response.

A token is mapped to one of g numbers. That number is reported with probability q, each other number
with p. The probabilities are integers in units of 2⁻³² whose sum over the g numbers is exactly 2³²,
so ε = ln(q/p) is exact. There is no permanent noise; `permanent_hash.py` adds it.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from fractions import Fraction
from functools import cached_property

from deniable.errors import InputError
from deniable.mechanisms.base import Mechanism, Token
from deniable.mechanisms.noise import ONE, Noise
from deniable.privacy import PrivacyLoss, largest_step, log_sum_rounding_up

RAND_SIZE = 4


class NumberMechanism(Mechanism):
    """Reports one of `bound` numbers; subclasses define the number of a token."""

    @property
    @abstractmethod
    def bound(self) -> int:
        """Number of possible numbers (g)."""

    @abstractmethod
    def number(self, token: Token, cohort: int) -> int | None:
        """Return the number of the token before any noise; None for no answer."""

    # --- the same for all -------------------------------------------------------------------

    def __post_init__(self) -> None:
        if self.noise.flip:
            raise InputError(f"the mechanism {self.kind} has no permanent noise: omit f")
        self.check_probabilities("p", self.noise.p, "q", self.noise.q)

    def check_probabilities(self, other_name: str, other: int, own_name: str, own: int) -> None:
        """Raise InputError unless the probabilities of all numbers add up to 1, the own largest."""
        if not 0 < other < own or own + (self.bound - 1) * other != ONE:
            raise InputError(
                f"0 < {other_name} < {own_name} and {own_name} + {self.bound - 1}·{other_name} = "
                f"2^32 must hold, got {other_name} = {other}, {own_name} = {own}"
            )

    @property
    def width(self) -> int:
        """Number of bits of the largest number."""
        return (self.bound - 1).bit_length()

    @property
    def outcomes(self) -> int:
        """Number of counters: one per possible number."""
        return self.bound

    @property
    def rand_size(self) -> int:
        """Number of random bytes that `encode` takes."""
        return RAND_SIZE

    @cached_property
    def loss(self) -> PrivacyLoss:
        """ε per report; without permanent noise, ε in total is infinite."""
        return PrivacyLoss(self.loss_after(1), math.inf)

    def loss_after(self, reports: int) -> float:
        """Return ε in total for this many reports of one value."""
        # No answer has probability 1/g for every number, which is between p and q.
        return log_sum_rounding_up([(Fraction(self.noise.q, self.noise.p), reports)])

    @cached_property
    def worst_outcomes(self) -> tuple[tuple[float, float], ...]:
        """The numbers of the two values, and all other numbers together."""
        # No answer is the average over all numbers, so it is harder to distinguish from a value.
        q = float(self.noise.q_star)
        p = (1 - q) / (self.bound - 1)
        return (q, p), (p, q), (max(0.0, 1 - p - q), max(0.0, 1 - p - q))

    def encode(self, token: Token, *, cohort: int, secret: bytes, rand: bytes) -> bytes:
        """Return the noisy number in `size` bytes, little-endian."""
        self.check_inputs(cohort, rand)
        sent = self.randomise(self.number(token, cohort), int.from_bytes(rand, "little"))
        return sent.to_bytes(self.size, "little")

    def randomise(self, number: int | None, uniform: int) -> int:
        """Return the reported number, decided by one uniform 32-bit number U.

        If U is below q it is the true number; above, each interval of width p belongs to one other
        number, beginning with the next. If there is no answer, all g numbers share U evenly.
        """
        if number is None:
            return uniform * self.bound >> 32
        return randomised_number(number, uniform, self.noise.q, self.noise.p, self.bound)


def randomised_number(number: int, uniform: int, own: int, other: int, bound: int) -> int:
    """Return a number below `bound`: the same with probability own/2³², each other with other/2³².

    uniform : a uniform 32-bit number
    """
    if uniform < own:
        return number
    return (number + 1 + (uniform - own) // other) % bound


def number_noise(epsilon: float, bound: int) -> Noise:
    """Return the noise of `bound` numbers with the largest loss that does not exceed ε.

    >>> noise = number_noise(1.0, 3)
    >>> noise.q + 2 * noise.p == 2**32, round(noise.q / noise.p, 6)
    (True, 2.718282)
    """
    top = (ONE - 1) // bound

    def loss(less: int) -> float:
        p = top - less
        return log_sum_rounding_up([(Fraction(ONE - (bound - 1) * p, p), 1)])

    p = top - largest_step(epsilon, 0, top - 1, loss)
    return Noise(0, p, ONE - (bound - 1) * p)
