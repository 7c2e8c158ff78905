"""Local hashing with permanent noise, for repeated collection (LOLOHA).

A client hashes its string to one of g numbers, as in `local_hash`. Permanent noise maps each number
to a number that never changes: itself with probability κ, each other with φ. A report is that
number with fresh noise: itself with probability q, each other with p. So one report tells
ln(q*/p*), and all reports about one number ln(κ/φ), in total (Arcolezi, Pinzón, Palamidessi and
Gambs, "Frequency estimation of evolving data under local differential privacy", 2023).

Strings with the same number share their permanent noise, so a client draws it at most g times,
whatever values it has over the years. If the analyst knows which reports of a client share a
number, all its reports tell at most ε in total for each number that occurred, at most g times.
*That* they share it, or that it changed, is not hidden, as with every permanent noise; but g is
small, so that another string often has the same number.

No answer has a number, too: one that the client draws at random once, from its secret. Then even
the whole sequence of answers and missing answers uses at most g numbers.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

from deniable.mechanisms import prf
from deniable.mechanisms.base import register
from deniable.mechanisms.local_hash import LocalHash, digits_for, values_for
from deniable.mechanisms.noise import ONE, Noise
from deniable.mechanisms.number_mechanism import number_noise, randomised_number
from deniable.privacy import PrivacyLoss, check_epsilon, largest_step, log_sum_rounding_up


@register
@dataclass(frozen=True, kw_only=True)
class PermanentLocalHash(LocalHash):
    """Reports a string as one number: a hash with permanent and fresh noise.

    Parameters are those of `LocalHash`; its noise has `flip` and `keep`, which are permanent.

    Examples
    --------
    >>> made = PermanentLocalHash.spending_both(4.0, 1.5)
    >>> made.values, made.size, round(made.loss.per_report, 6), round(made.loss.in_total, 6)
    (5, 1, 1.5, 4.0)
    """

    kind = "localhash-permanent"

    def __post_init__(self) -> None:
        # Without the permanent noise, it is local hashing, which checks the rest.
        LocalHash(
            noise=Noise(0, self.noise.p, self.noise.q),
            values=self.values,
            digits=self.digits,
            families=self.families,
        )
        self.check_probabilities("flip", self.noise.flip, "keep", self.noise.keep or 0)

    @classmethod
    def spending_both(
        cls,
        in_total: float,
        per_report: float,
        *,
        families: int = 16,
        values: int | None = None,
    ) -> PermanentLocalHash:
        """Return the mechanism with the largest losses that do not exceed these.

        One report is k-ary randomised response with its loss per report. So g is the best number
        for that loss, whatever the loss in total is.
        """
        check_epsilon(per_report)
        g = values_for(per_report) if values is None else values
        permanent = number_noise(in_total, g)
        top = (ONE - 1) // g

        def at(less: int) -> PermanentLocalHash:
            p = top - less
            noise = Noise(permanent.p, p, ONE - (g - 1) * p, keep=permanent.q)
            return cls(noise=noise, values=g, digits=digits_for(g), families=families)

        return at(largest_step(per_report, 0, top - 1, lambda less: at(less).loss_after(1)))

    # --- noise --------------------------------------------------------------------------------

    @cached_property
    def loss(self) -> PrivacyLoss:
        """ε per report, and in total for any number of reports about one number."""
        permanent = Fraction(self.noise.kept, self.noise.flip)
        return PrivacyLoss(self.loss_after(1), log_sum_rounding_up([(permanent, 1)]))

    def loss_after(self, reports: int) -> float:
        """Return ε in total for this many reports about one number; exact before rounding up.

        The worst outcome is that all reports are the number itself. No answer is a mixture of
        numbers, which is never worse.
        """
        p, q = self.noise.p**reports, self.noise.q**reports
        own, other = (x * q + (ONE - x) * p for x in (self.noise.kept, self.noise.flip))
        return log_sum_rounding_up([(Fraction(own, other), 1)])

    @property
    def charge(self) -> PrivacyLoss:
        """ε in total, at the first report about a number; the next ones cost nothing.

        With more than two numbers, two reports may tell more than twice what one tells. So the
        loss per report must not be charged.
        """
        return PrivacyLoss(self.loss.in_total, self.loss.in_total)

    def own_number(self, token: bytes | None, cohort: int, secret: bytes) -> int:
        """Return the number of the token, or of no answer, before any noise."""
        number = self.number(token, cohort)
        return self.number_of_no_answer(secret) if number is None else number

    def number_of_no_answer(self, secret: bytes) -> int:
        """Return the number that the client has if it does not answer."""
        message = prf.fields(b"deniable-1/no-answer", *self.domain.parts, self.domain.encoding)
        return prf.draw(secret, message, self.values)

    def permanent_message(self, number: int, cohort: int) -> bytes:
        """Return the message that permanent noise is derived from; equal messages share noise."""
        ends = prf.fields(cohort.to_bytes(4, "big"), number.to_bytes(self.size, "little"))
        return self.permanent_prefix + ends

    def permanent(self, number: int, cohort: int, secret: bytes) -> int:
        """Return the number after permanent noise."""
        uniform = prf.words(secret, self.permanent_message(number, cohort), 4)(0)
        return randomised_number(number, uniform, self.noise.kept, self.noise.flip, self.values)

    def noise_id(self, token: bytes | None, cohort: int, secret: bytes) -> str:
        """Return a keyed fingerprint of what the permanent noise is derived from."""
        message = self.permanent_message(self.own_number(token, cohort, secret), cohort)
        return prf.prf(secret, b"deniable-1/ledger" + message)[:16].hex()

    def encode(self, token: bytes | None, *, cohort: int, secret: bytes, rand: bytes) -> bytes:
        """Return the number with permanent, then fresh noise, in `size` bytes, little-endian."""
        self.check_inputs(cohort, rand)
        number = self.permanent(self.own_number(token, cohort, secret), cohort, secret)
        sent = self.randomise(number, int.from_bytes(rand, "little"))
        return sent.to_bytes(self.size, "little")
