"""Local hashing: a string becomes one of g numbers, and the number is reported with noise.

A report is one number below g, a byte or two, with the noise of a Bloom filter of hundreds of bits:
a string that a client does not hold is supported with probability 1/g, one that it holds with q,
and g ≈ e^ε + 1 makes that best (Wang, Blocki, Li and Jha, "Locally differentially private protocols
for frequency estimation", 2017).

Which hash function a client uses is its cohort, in the clear. A cohort is a *family* and a *line*.
The family hashes the string to a cell, one of g^d, exactly as a Bloom filter of that many bits
would. The line a maps the cell's base-g digits v to a₁v₁ + … + a_{d−1}v_{d−1} + v_d modulo g, a
prime: two cells agree on at most one line in g. So an analyst turns a family's reports into one
table of g^d cells once, and looks a candidate up in as many tables as there are families, not in
all cohorts.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Any, Self

from deniable.errors import InputError
from deniable.mechanisms import prf
from deniable.mechanisms.base import Mechanism
from deniable.mechanisms.bloom import MAX_COHORTS
from deniable.mechanisms.noise import ONE, Noise
from deniable.privacy import PrivacyLoss, largest, upper_log

MAX_VALUES = 65521
RAND_SIZE = 4
LEAST_CELLS = 1000
"""Cells that `digits_for` asks of a family: heavy strings then seldom share a cell with others."""


@dataclass(frozen=True, kw_only=True)
class LocalHash(Mechanism):
    """g = `values`, a prime; d = `digits`; `families` hash functions to cells.

    The noise's q and p are the probabilities of the client's own number and of each other one, of
    2³²; they sum to exactly 2³² over the g numbers, so ε = ln(q/p) has nothing to hide.

    >>> made = LocalHash.spending(4.394, families=16)
    >>> made.values, made.digits, made.cohorts, made.size, round(made.loss.once, 6)
    (83, 2, 1328, 1, 4.394)
    """

    values: int
    digits: int = 1
    families: int = 1

    kind = "localhash"

    def __post_init__(self) -> None:
        if type(self.values) is not int or not _is_prime(self.values):
            raise InputError(f"expected values, a prime up to {MAX_VALUES}, got {self.values!r}")
        if type(self.digits) is not int or not 1 <= self.digits <= 16:
            raise InputError(f"expected digits from 1 to 16, got {self.digits!r}")
        if type(self.families) is not int or self.families < 1 or self.cohorts > MAX_COHORTS:
            raise InputError(
                f"expected families × values^(digits − 1) from 1 to {MAX_COHORTS} cohorts, got "
                f"{self.families!r} × {self.values}^{self.digits - 1}"
            )
        p, q = self.noise.p, self.noise.q
        if self.noise.flip:
            raise InputError("local hashing has no permanent response: collect once, with f = 0")
        if not 0 < p < q or q + (self.values - 1) * p != ONE:
            raise InputError(
                f"expected 0 < p < q with q + {self.values - 1}·p = 2^32, got p={p}, q={q}"
            )

    @classmethod
    def spending(
        cls, epsilon: float, *, families: int = 16, values: int | None = None,
        digits: int | None = None,
    ) -> LocalHash:  # fmt: skip
        """The mechanism that spends as much of ε as integers allow, never more."""
        if not (epsilon > 0 and math.isfinite(epsilon)):
            raise InputError(f"expected an ε above 0 and finite, got {epsilon}")
        g = values_for(epsilon) if values is None else values
        if not _is_prime(g):
            raise InputError(f"expected values, a prime up to {MAX_VALUES}, got {g!r}")
        d = digits_for(g) if digits is None else digits
        top = (ONE - 1) // g

        def fits(less: int) -> bool:
            p = top - less
            return upper_log([(Fraction(ONE - (g - 1) * p, p), 1)]) <= epsilon

        less = largest(0, top - 1, fits)
        if less is None:
            raise InputError(f"no p and q spend as little as ε = {epsilon}: ask for more")
        p = top - less
        return cls(noise=Noise(0, p, ONE - (g - 1) * p), values=g, digits=d, families=families)

    # --- hashing ------------------------------------------------------------------------------

    @property
    def cells(self) -> int:
        """Cells of a family: g^d."""
        return int(self.values**self.digits)

    @property
    def lines(self) -> int:
        """Lines of a family: g^(d−1)."""
        return int(self.values ** (self.digits - 1))

    @property
    def cohorts(self) -> int:
        return self.families * self.lines

    @cached_property
    def header(self) -> bytes:
        """Prefixed to every value that is hashed: no two slots hash alike."""
        return prf.digest(prf.fields(b"deniable-1/hash", *self.domain.parts))

    def number(self, cell: int, line: int) -> int:
        """Where the line takes the cell. Digits are read from the last: v_d first, then a₁v₁ …"""
        g = self.values
        cell, total = divmod(cell, g)
        while cell:
            cell, v = divmod(cell, g)
            line, a = divmod(line, g)
            total += a * v
        return total % g

    def filter(self, value: bytes | None, cohort: int) -> int:
        """The true number; g itself, which is never sent, for no answer."""
        if value is None:
            return self.values
        family, line = divmod(cohort, self.lines)
        (cell,) = self.scheme.positions(value, family, self.cells, 1, self.header)
        return self.number(cell, line)

    # --- noise --------------------------------------------------------------------------------

    @property
    def width(self) -> int:
        """Bits of the largest number."""
        return (self.values - 1).bit_length()

    @property
    def bound(self) -> int:
        return self.values

    @cached_property
    def rand_size(self) -> int:
        return RAND_SIZE

    @property
    def separations(self) -> tuple[tuple[int, int], ...]:
        raise InputError("a local hash is one number, not bits: its loss is that of the number")

    @cached_property
    def loss(self) -> PrivacyLoss:
        return PrivacyLoss(self.loss_after(1), math.inf)

    def loss_after(self, reports: int) -> float:
        # A silent client's numbers have probabilities between p and q, so no pair is worse.
        return upper_log([(Fraction(self.noise.q, self.noise.p), reports)])

    def noised(self, bits: int, *, cohort: int, secret: bytes, rand: bytes) -> bytes:
        """One 32-bit uniform number U decides: below q the true number; above, each p-wide stretch
        is one of the others. No answer divides U evenly among all g."""
        if len(rand) != RAND_SIZE:
            raise InputError(f"expected {RAND_SIZE} random bytes, got {len(rand)}")
        uniform = int.from_bytes(rand, "little")
        g, p, q = self.values, self.noise.p, self.noise.q
        if bits == g:
            sent = uniform * g >> 32
        elif uniform < q:
            sent = bits
        else:
            sent = (bits + 1 + (uniform - q) // p) % g
        return sent.to_bytes(self.size, "little")

    def encoding(self) -> dict[str, Any]:
        return {
            "kind": self.kind, "values": self.values, "digits": self.digits,
            "families": self.families,
        }  # fmt: skip

    def with_families(self, families: int) -> Self:
        """The same noise with this many families."""
        return replace(self, families=families)


def values_for(epsilon: float) -> int:
    """The prime nearest to e^ε + 1, where the noise is least; the larger of two as near.

    >>> values_for(4.394), values_for(1.0)
    (83, 3)
    """
    wanted = min(math.exp(min(epsilon, 12.0)) + 1, MAX_VALUES)
    below = next(n for n in range(math.floor(wanted), 1, -1) if _is_prime(n))
    above = next((n for n in range(math.ceil(wanted), MAX_VALUES + 1) if _is_prime(n)), below)
    return above if above - wanted <= wanted - below else below


def digits_for(values: int) -> int:
    """The fewest digits that give a family `LEAST_CELLS` cells.

    >>> digits_for(83), digits_for(3), digits_for(2003)
    (2, 7, 1)
    """
    return next(d for d in range(1, 17) if values**d >= LEAST_CELLS)


def _is_prime(n: int) -> bool:
    return 2 <= n <= MAX_VALUES and all(n % k for k in range(2, math.isqrt(n) + 1))
