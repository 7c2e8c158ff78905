"""Mechanisms whose report is one number: generalised randomised response.

A token is one of g numbers. Its own number is reported with probability q, every other with p. The
probabilities are integers of 2³² that sum to exactly 2³² over the g numbers, so ε = ln(q/p) has
nothing to hide. There is no permanent response.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from fractions import Fraction
from functools import cached_property

from deniable.errors import InputError
from deniable.mechanisms.base import Mechanism, Token
from deniable.mechanisms.noise import ONE, Noise
from deniable.privacy import PrivacyLoss, largest_step, upper_log

RAND_SIZE = 4


class NumberMechanism(Mechanism):
    """One of `bound` numbers; subclasses say which number a token is."""

    @property
    @abstractmethod
    def bound(self) -> int:
        """How many numbers there are (g)."""

    @abstractmethod
    def number(self, token: Token, cohort: int) -> int | None:
        """The number of the token before any noise; None for no answer."""

    # --- what follows -----------------------------------------------------------------------

    def __post_init__(self) -> None:
        p, q = self.noise.p, self.noise.q
        if self.noise.flip:
            raise InputError("local hashing has no permanent response: collect once, with f = 0")
        if not 0 < p < q or q + (self.bound - 1) * p != ONE:
            raise InputError(
                f"expected 0 < p < q with q + {self.bound - 1}·p = 2^32, got p={p}, q={q}"
            )

    @property
    def width(self) -> int:
        """Bits of the largest number."""
        return (self.bound - 1).bit_length()

    @property
    def outcomes(self) -> int:
        return self.bound

    @property
    def rand_size(self) -> int:
        return RAND_SIZE

    @cached_property
    def loss(self) -> PrivacyLoss:
        return PrivacyLoss(self.loss_after(1), math.inf)

    def loss_after(self, reports: int) -> float:
        # A silent client's numbers have probabilities between p and q, so no pair is worse.
        return upper_log([(Fraction(self.noise.q, self.noise.p), reports)])

    def encode(self, token: Token, *, cohort: int, secret: bytes, rand: bytes) -> bytes:
        self.check_inputs(cohort, rand)
        sent = self.randomise(self.number(token, cohort), int.from_bytes(rand, "little"))
        return sent.to_bytes(self.size, "little")

    def randomise(self, number: int | None, uniform: int) -> int:
        """The number that is reported, decided by one 32-bit uniform number U.

        Below q it is the true number; above, each p-wide stretch of U is one of the others, counted
        from the next. No answer divides U evenly among all g.
        """
        if number is None:
            return uniform * self.bound >> 32
        if uniform < self.noise.q:
            return number
        return (number + 1 + (uniform - self.noise.q) // self.noise.p) % self.bound


def number_noise(epsilon: float, bound: int) -> Noise:
    """The noise of `bound` numbers that spends as much of ε as integers allow, never more.

    >>> noise = number_noise(1.0, 3)
    >>> noise.q + 2 * noise.p == 2**32, round(noise.q / noise.p, 6)
    (True, 2.718282)
    """
    top = (ONE - 1) // bound

    def loss(less: int) -> float:
        p = top - less
        return upper_log([(Fraction(ONE - (bound - 1) * p, p), 1)])

    p = top - largest_step(epsilon, 0, top - 1, loss)
    return Noise(0, p, ONE - (bound - 1) * p)
