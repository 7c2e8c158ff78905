"""Mechanisms that report bits, each randomised independently: RAPPOR.

A token sets some of k bits. Permanent noise (the paper's permanent randomised response, PRR) is
derived from the secret and never changes; fresh noise (instantaneous randomised response, IRR) is
drawn for each report on top of it. The paper calls the results B′ and X′. Bits are packed least
significant first: bit i is bit i mod 8 of byte i div 8, and padding bits are 0.
"""

from __future__ import annotations

from abc import abstractmethod
from functools import cached_property
from typing import ClassVar

from deniable.errors import InputError
from deniable.mechanisms import prf
from deniable.mechanisms.base import Mechanism, Token
from deniable.mechanisms.noise import ONE, randomise
from deniable.mechanisms.schemes import DENIABLE_1
from deniable.privacy import PrivacyLoss, binomial

MAX_ENUMERATED_BITS = 64
"""Largest number of bits whose outcomes are enumerated."""


class BitMechanism(Mechanism):
    """Randomised response on every bit; subclasses define which bits a token sets.

    Clients that know only symmetric permanent noise would ignore `keep`. So asymmetric noise has
    kinds of its own, which they refuse.
    """

    asymmetric: ClassVar[bool] = False
    """Whether permanent noise is asymmetric, which needs `keep` in the noise."""

    def __post_init__(self) -> None:
        noise = self.noise
        if (noise.keep is not None) != self.asymmetric:
            raise InputError(
                f"the mechanism {self.kind} needs {'' if self.asymmetric else 'no '}keep, the "
                "probability that a set bit stays set"
            )
        if noise.keep is None:
            return
        # These conditions make the sum of charges a bound; see `deniable.client.ledger`.
        if noise.keep < ONE // 2 or noise.p + noise.q != ONE:
            raise InputError(
                "asymmetric permanent noise needs keep of at least 2^31 and p + q = 2^32, got "
                f"keep = {noise.keep}, p = {noise.p}, q = {noise.q}"
            )
        if any(first != second for first, second in self.separations):
            raise InputError(
                "asymmetric permanent noise needs at least twice as many bits as hashes: use more "
                "bits or fewer hashes, or write p = 0.25 and q = 0.75 for symmetric noise"
            )
        if self.scheme is not DENIABLE_1:
            raise InputError(f"scheme {self.scheme.name} has no asymmetric permanent noise")

    # --- defined by each mechanism ----------------------------------------------------------

    @abstractmethod
    def true_bits(self, token: Token, cohort: int) -> int:
        """Return the bits that the token sets before any noise; None (no answer) sets none."""

    @property
    @abstractmethod
    def separations(self) -> tuple[tuple[int, int], ...]:
        """Worst pairs of values: how many bits only the first sets, and only the second."""

    # --- the same for all -------------------------------------------------------------------

    @property
    def outcomes(self) -> int:
        """Number of counters: one per bit."""
        return self.width

    @cached_property
    def rand_size(self) -> int:
        """Number of random bytes that `encode` takes: binary digits of one number per bit."""
        return self.noise.fresh_digits * self.size

    @cached_property
    def loss(self) -> PrivacyLoss:
        """ε per report and in total, for the worst pair of values."""
        losses = [self.noise.loss(*bits) for bits in self.separations]
        return PrivacyLoss(max(x.per_report for x in losses), max(x.in_total for x in losses))

    def loss_after(self, reports: int) -> float:
        """Return ε in total for this many reports of one value, for the worst pair of values."""
        return max(self.noise.loss_after(reports, *bits) for bits in self.separations)

    @cached_property
    def worst_outcomes(self) -> tuple[tuple[float, float], ...]:
        """Numbers of ones among the bits that only one of the two values sets."""
        first, second = self.separations[0]
        # With two different separations, neither is the worst in both orders.
        if len(set(self.separations)) > 1 or first + second > MAX_ENUMERATED_BITS:
            return super().worst_outcomes
        p, q = float(self.noise.p_star), float(self.noise.q_star)
        return tuple(
            (
                binomial(first, i, q) * binomial(second, j, p),
                binomial(first, i, p) * binomial(second, j, q),
            )
            for i in range(first + 1)
            for j in range(second + 1)
        )

    def permanent_message(self, bits: int, cohort: int) -> bytes:
        """Return the message that permanent noise is derived from; equal messages share noise."""
        # This is `prf.fields(cohort, bits)`, inlined: it runs twice per answer with permanent
        # noise.
        size = self.size
        ends = b"\0\0\0\4" + cohort.to_bytes(4, "big") + size.to_bytes(4, "big")
        return self.permanent_prefix + ends + bits.to_bytes(size, "little")

    def noise_id(self, token: Token, cohort: int, secret: bytes) -> str:
        """Return a keyed fingerprint of what the permanent noise is derived from."""
        if self.noise.flip == 0:
            return super().noise_id(token, cohort, secret)
        message = self.permanent_message(self.true_bits(token, cohort), cohort)
        return prf.prf(secret, b"deniable-1/ledger" + message)[:16].hex()

    def permanent(self, bits: int, cohort: int, secret: bytes) -> int:
        """Return the bits with permanent noise: a function of bits, cohort, domain and secret."""
        if self.noise.flip == 0:
            return bits
        noise = self.noise
        words = prf.words(secret, self.permanent_message(bits, cohort), self.size)
        return randomise(bits, self.width, noise.flip, noise.kept, words)

    def fresh(self, bits: int, rand: bytes) -> int:
        """Return the bits with fresh noise.

        rand : `rand_size` random bytes that are used for nothing else
        """
        size = self.size

        def word(digit: int) -> int:
            """Return one binary digit of every bit's random number, as `randomise` needs it."""
            return int.from_bytes(rand[digit * size : (digit + 1) * size], "little")

        return randomise(bits, self.width, self.noise.p, self.noise.q, word)

    def encode(self, token: Token, *, cohort: int, secret: bytes, rand: bytes) -> bytes:
        """Return the packed report: the bits of the token with permanent, then fresh noise."""
        self.check_inputs(cohort, rand)
        permanent = self.permanent(self.true_bits(token, cohort), cohort, secret)
        return self.fresh(permanent, rand).to_bytes(self.size, "little")
