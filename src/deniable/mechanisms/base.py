"""The contract of a mechanism: value + cohort + secret + random bytes → packed bits, and its ε.

`encode` is a pure function, so that any language can replay it against the vectors. Bits are packed
least significant first: bit i is bit i mod 8 of byte i div 8, and padding bits are 0.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, Self

from deniable.errors import InputError
from deniable.mechanisms import prf
from deniable.mechanisms.noise import Noise
from deniable.mechanisms.schemes import DENIABLE_1, Scheme
from deniable.privacy import PrivacyLoss


@dataclass(frozen=True)
class Domain:
    """What a piece of noise belongs to. A survey's version is not part of it: a new version must
    not draw new noise for a value that was reported before."""

    survey: str = ""
    question: str = ""
    slot: str = ""
    encoding: bytes = b""
    """Digest of all that decides which bits a value sets. A version that changes it draws new noise
    for every value, and pays for it: if only values whose bits changed did, noise and cost would
    tell which they are."""

    @cached_property
    def parts(self) -> tuple[bytes, bytes, bytes]:
        return self.survey.encode(), self.question.encode(), self.slot.encode()


@dataclass(frozen=True)
class Mechanism(ABC):
    """A one-bit-per-lane randomised response; subclasses say which bits a value sets."""

    noise: Noise
    domain: Domain = Domain()

    kind: ClassVar[str]

    # --- what a subclass supplies -----------------------------------------------------------

    @property
    @abstractmethod
    def width(self) -> int:
        """Number of bits (k)."""

    @abstractmethod
    def filter(self, value: Any, cohort: int) -> int:
        """The bits that the value sets before any noise. None, no answer, sets none."""

    @property
    @abstractmethod
    def separations(self) -> tuple[tuple[int, int], ...]:
        """The worst (set for one value only, set for the other only) counts of two values' bits."""

    @abstractmethod
    def encoding(self) -> dict[str, Any]:
        """What decides which bits a token sets, the number of cohorts excepted."""

    # --- what follows -----------------------------------------------------------------------

    def canonical(self) -> dict[str, Any]:
        """Integers and strings that determine the mechanism, for the published survey."""
        noise = {"flip": self.noise.flip, "p": self.noise.p, "q": self.noise.q}
        return {**self.encoding(), **noise}

    @property
    def cohorts(self) -> int:
        return 1

    @property
    def bound(self) -> int | None:
        """One more than the largest number, where a report is a number; None where it is bits."""
        return None

    @property
    def scheme(self) -> Scheme:
        return DENIABLE_1

    @cached_property
    def size(self) -> int:
        """Bytes of packed bits."""
        return (self.width + 7) // 8

    @cached_property
    def rand_size(self) -> int:
        """Random bytes that one `encode` takes."""
        return self.scheme.rand_size(self.width, self.noise)

    @cached_property
    def loss(self) -> PrivacyLoss:
        """ε of one report, and of any number of reports of one value."""
        losses = [self.noise.loss(ups, downs) for ups, downs in self.separations]
        return PrivacyLoss(max(x.once for x in losses), max(x.forever for x in losses))

    def loss_after(self, reports: int) -> float:
        """ε of this many reports of one value."""
        return max(self.noise.loss_after(reports, ups, downs) for ups, downs in self.separations)

    def within(self, domain: Domain) -> Self:
        """The same mechanism with its own noise and hashing for this domain."""
        return replace(self, domain=domain)

    @cached_property
    def permanent_prefix(self) -> bytes:
        """What every PRR message of this slot begins with.

        φ is part of it: one stream cut at two thresholds would show which side a bit came from.
        """
        flip = self.noise.flip.to_bytes(4, "big")
        return prf.fields(b"deniable-1/prr", *self.domain.parts, self.domain.encoding, flip)

    def permanent_message(self, bits: int, cohort: int) -> bytes:
        """What the PRR's noise is derived from: equal messages share it, all others do not."""
        return self.permanent_prefix + prf.fields(
            cohort.to_bytes(4, "big"), bits.to_bytes(self.size, "little")
        )

    def permanent(self, bits: int, cohort: int, secret: bytes) -> int:
        """B′: the same for ever for the same bits, cohort, domain and secret."""
        if self.noise.flip == 0:
            return bits
        return self.scheme.permanent(bits, self, cohort, secret)

    def encode(self, value: Any, *, cohort: int, secret: bytes, rand: bytes) -> bytes:
        """X′, packed. Run by the client; `rand` is `rand_size` bytes, never used again."""
        if not 0 <= cohort < self.cohorts:
            raise InputError(f"expected a cohort below {self.cohorts}, got {cohort}")
        return self.noised(self.filter(value, cohort), cohort=cohort, secret=secret, rand=rand)

    def noised(self, bits: int, *, cohort: int, secret: bytes, rand: bytes) -> bytes:
        """`encode` from the bits that `filter` gave."""
        if len(rand) != self.rand_size:
            raise InputError(f"expected {self.rand_size} random bytes, got {len(rand)}")
        permanent = self.permanent(bits, cohort, secret)
        instant = self.scheme.instant(permanent, self.width, self.noise, rand)
        return instant.to_bytes(self.size, "little")
