"""Bloom RAPPOR: a string sets h of k bits, chosen by hashing it with its cohort.

Cohorts hash differently, so that two strings that collide in one are told apart in others.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

from deniable.errors import InputError
from deniable.mechanisms import prf
from deniable.mechanisms.base import Mechanism
from deniable.mechanisms.schemes import Scheme, scheme_named

MAX_BITS = MAX_COHORTS = 65536


@dataclass(frozen=True, kw_only=True)
class Bloom(Mechanism):
    """k = `bits`, h = `hashes`, m = `cohorts`.

    >>> from deniable.mechanisms.noise import Noise
    >>> bloom = Bloom(noise=Noise.of(p=0.25, q=0.75), bits=128, hashes=2, cohorts=64)
    >>> round(bloom.loss.once, 4)  # h·ln(q(1−p)/(p(1−q))): the paper's 4.39
    4.3944
    """

    bits: int
    hashes: int = 1
    cohorts: int = 1
    scheme_name: str = "deniable-1"

    kind = "bloom"

    def __post_init__(self) -> None:
        for name, value, low, top in (
            ("bits", self.bits, 2, MAX_BITS),
            ("hashes", self.hashes, 1, MAX_BITS),
            ("cohorts", self.cohorts, 1, MAX_COHORTS),
        ):
            if type(value) is not int or not low <= value <= top:
                raise InputError(f"expected {name} from {low} to {top}, got {value!r}")
        self.scheme.check(self.bits, self.hashes, self.cohorts, self.noise)

    @property
    def width(self) -> int:
        return self.bits

    @cached_property
    def scheme(self) -> Scheme:
        return scheme_named(self.scheme_name)

    @cached_property
    def header(self) -> bytes:
        """Prefixed to every value that is hashed: no two slots hash alike."""
        return prf.digest(prf.fields(b"deniable-1/hash", *self.domain.parts))

    def positions(self, value: bytes, cohort: int) -> tuple[int, ...]:
        """The bits that the value sets in this cohort, one per hash; they may coincide."""
        return self.scheme.positions(value, cohort, self.bits, self.hashes, self.header)

    def filter(self, value: bytes | None, cohort: int) -> int:
        bits = 0
        if value is not None:
            for position in self.positions(value, cohort):
                bits |= 1 << position
        return bits

    @property
    def separations(self) -> tuple[tuple[int, int], ...]:
        most = min(self.hashes, self.bits)
        fewer = min(most, self.bits - most)
        return ((most, fewer), (fewer, most))

    def encoding(self) -> dict[str, Any]:
        return {
            "kind": self.kind, "scheme": self.scheme_name, "bits": self.bits,
            "hashes": self.hashes,
        }  # fmt: skip

    def canonical(self) -> dict[str, Any]:
        return {**super().canonical(), "cohorts": self.cohorts}
