"""Mechanisms whose report is bits, each randomised by itself: RAPPOR.

A token sets some of k bits. The permanent response B′ is drawn from the secret and stays for ever;
the instantaneous response X′ to it is drawn for each report. Bits are packed least significant
first: bit i is bit i mod 8 of byte i div 8, and padding bits are 0.
"""

from __future__ import annotations

from abc import abstractmethod
from functools import cached_property

from deniable.mechanisms import prf
from deniable.mechanisms.base import Mechanism, Token
from deniable.privacy import PrivacyLoss


class BitMechanism(Mechanism):
    """Randomised response on every bit; subclasses say which bits a token sets."""

    # --- what a subclass supplies -----------------------------------------------------------

    @abstractmethod
    def filter(self, token: Token, cohort: int) -> int:
        """The bits that the token sets before any noise. None, no answer, sets none."""

    @property
    @abstractmethod
    def separations(self) -> tuple[tuple[int, int], ...]:
        """The worst (set for one value only, set for the other only) counts of two values' bits."""

    # --- what follows -----------------------------------------------------------------------

    @property
    def hashes(self) -> int:
        """The most bits that a token sets."""
        return 1

    @property
    def outcomes(self) -> int:
        return self.width

    @cached_property
    def rand_size(self) -> int:
        return self.scheme.rand_size(self.width, self.noise)

    @cached_property
    def loss(self) -> PrivacyLoss:
        losses = [self.noise.loss(ups, downs) for ups, downs in self.separations]
        return PrivacyLoss(max(x.per_report for x in losses), max(x.in_total for x in losses))

    def loss_after(self, reports: int) -> float:
        return max(self.noise.loss_after(reports, ups, downs) for ups, downs in self.separations)

    @cached_property
    def permanent_prefix(self) -> bytes:
        """What every PRR message of this slot begins with.

        φ is part of it: one stream cut at two thresholds would show which side a bit came from.
        """
        flip = self.noise.flip.to_bytes(4, "big")
        return prf.fields(b"deniable-1/prr", *self.domain.parts, self.domain.encoding, flip)

    def permanent_message(self, bits: int, cohort: int) -> bytes:
        """What the PRR's noise is derived from: equal messages share it, all others do not."""
        # `prf.fields(cohort, bits)` written out: every answer with permanent noise makes it twice.
        size = self.size
        ends = b"\0\0\0\4" + cohort.to_bytes(4, "big") + size.to_bytes(4, "big")
        return self.permanent_prefix + ends + bits.to_bytes(size, "little")

    def noise_id(self, token: Token, cohort: int, secret: bytes) -> str:
        if self.noise.flip == 0:
            return super().noise_id(token, cohort, secret)
        message = self.permanent_message(self.filter(token, cohort), cohort)
        return prf.prf(secret, b"deniable-1/ledger" + message)[:16].hex()

    def permanent(self, bits: int, cohort: int, secret: bytes) -> int:
        """B′: the same for ever for the same bits, cohort, domain and secret."""
        if self.noise.flip == 0:
            return bits
        return self.scheme.permanent(bits, self, cohort, secret)

    def encode(self, token: Token, *, cohort: int, secret: bytes, rand: bytes) -> bytes:
        self.check_inputs(cohort, rand)
        permanent = self.permanent(self.filter(token, cohort), cohort, secret)
        instant = self.scheme.instant(permanent, self.width, self.noise, rand)
        return instant.to_bytes(self.size, "little")
