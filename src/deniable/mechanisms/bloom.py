"""Bloom RAPPOR: a string sets h of k bits, which are hashes of the string and its cohort.

Cohorts hash differently, so two strings that collide in one cohort differ in others.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Self

from deniable.errors import check_integer
from deniable.mechanisms.base import MAX_COHORTS, Settings, StringMechanism, register
from deniable.mechanisms.bit_mechanism import BitMechanism
from deniable.mechanisms.noise import Noise
from deniable.mechanisms.schemes import Scheme, scheme_named

MAX_BITS = 65536


@register
@dataclass(frozen=True, kw_only=True)
class Bloom(BitMechanism, StringMechanism):
    """Reports a string as a Bloom filter with randomised response on every bit.

    Parameters
    ----------
    bits : int
        Number of bits of the filter (k).
    hashes : int, default 1
        Number of hash functions, which set up to as many bits (h).
    cohorts : int, default 1
        Number of cohorts (m).
    scheme_name : str, default "deniable-1"
        How strings are hashed; see `schemes.SCHEME_NAMES`.

    Examples
    --------
    >>> from deniable.mechanisms.noise import Noise
    >>> bloom = Bloom(noise=Noise.of(p=0.25, q=0.75), bits=128, hashes=2, cohorts=64)
    >>> round(bloom.loss.per_report, 4)  # h·ln(q(1−p)/(p(1−q))): the paper's 4.39
    4.3944
    """

    bits: int
    hashes: int = 1
    cohorts: int = 1
    scheme_name: str = "deniable-1"

    kind = "bloom"

    def __post_init__(self) -> None:
        check_integer("bits", self.bits, 2, MAX_BITS)
        check_integer("hashes", self.hashes, 1, MAX_BITS)
        check_integer("cohorts", self.cohorts, 1, MAX_COHORTS)
        super().__post_init__()
        self.scheme.check(self.bits, self.hashes, self.noise)

    @property
    def width(self) -> int:
        """Number of bits of a report (k)."""
        return self.bits

    @cached_property
    def scheme(self) -> Scheme:
        """How strings are hashed."""
        return scheme_named(self.scheme_name)

    @property
    def hash_layout(self) -> tuple[int, int, int]:
        """One hash family per cohort, `hashes` per family, `bits` cells."""
        return self.cohorts, self.hashes, self.bits

    @property
    def collision_probability(self) -> float:
        """Probability that another value sets a given bit."""
        return 1 - (1 - 1 / self.bits) ** self.hashes

    def variance(self, frequency: float = 0.0, reports: float = 1) -> float:
        """Return the variance of an estimate from one client, for a value of this frequency."""
        return super().variance(frequency, reports) / self.hashes

    def positions(self, value: bytes, cohort: int) -> tuple[int, ...]:
        """Return the bits that the value sets in this cohort, one per hash; some may coincide."""
        return self.scheme.positions(value, cohort, self.bits, self.hashes, self.header)

    def true_bits(self, token: bytes | None, cohort: int) -> int:
        """Return the Bloom filter of the string in this cohort."""
        bits = 0
        if token is not None:
            for position in self.positions(token, cohort):
                bits |= 1 << position
        return bits

    @property
    def separations(self) -> tuple[tuple[int, int], ...]:
        """All bits of two values differ, or as many as fit in the filter."""
        most = min(self.hashes, self.bits)
        fewer = min(most, self.bits - most)
        return ((most, fewer), (fewer, most))

    def encoding(self) -> Settings:
        """Return scheme, bits and hashes, which decide the bits of a string in a cohort."""
        names = {"scheme": self.scheme_name, "bits": self.bits, "hashes": self.hashes}
        return {"kind": self.kind, **names}

    def canonical(self) -> Settings:
        """Return the settings that define the mechanism, for the published survey."""
        return {**super().canonical(), "cohorts": self.cohorts}

    @classmethod
    def from_settings(cls, noise: Noise, settings: Settings) -> Self:
        """Return the mechanism with this noise and these published settings."""
        return cls(noise=noise, scheme_name=settings.pop("scheme"), **settings)


@register
class AsymmetricBloom(Bloom):
    """The same with asymmetric permanent noise, for repeated collection with the scheme deniable-1.

    Examples
    --------
    >>> from deniable.mechanisms.noise import Noise
    >>> noise = Noise(flip=1 << 27, p=1 << 26, q=63 << 26, keep=1 << 31)
    >>> bloom = AsymmetricBloom(noise=noise, bits=128, cohorts=64)
    >>> round(bloom.loss.per_report, 3), round(bloom.loss.in_total, 3)
    (3.034, 3.434)
    """

    kind = "bloom-asymmetric"
    asymmetric = True
