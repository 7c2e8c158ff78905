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
from dataclasses import dataclass

from deniable.errors import InputError, check_integer
from deniable.mechanisms.base import MAX_COHORTS, Settings, StringMechanism, register
from deniable.mechanisms.number_mechanism import NumberMechanism, number_noise
from deniable.privacy import check_epsilon

MAX_VALUES = 65521
LEAST_CELLS = 1000
"""Cells that `digits_for` asks of a family: heavy strings then seldom share a cell with others."""


@register
@dataclass(frozen=True, kw_only=True)
class LocalHash(NumberMechanism, StringMechanism):
    """g = `values`, a prime; d = `digits`; `families` hash functions to cells.

    >>> made = LocalHash.spending(4.394, families=16)
    >>> made.values, made.digits, made.cohorts, made.size, round(made.loss.per_report, 6)
    (83, 2, 1328, 1, 4.394)
    """

    values: int
    digits: int = 1
    families: int = 1

    kind = "localhash"
    protocols = frozenset({"prefixes"})

    def __post_init__(self) -> None:
        _check_prime(self.values)
        check_integer("digits", self.digits, 1, 16)
        if type(self.families) is not int or self.families < 1 or self.cohorts > MAX_COHORTS:
            raise InputError(
                f"expected families × values^(digits − 1) from 1 to {MAX_COHORTS} cohorts, got "
                f"{self.families!r} × {self.values}^{self.digits - 1}"
            )
        super().__post_init__()

    @classmethod
    def spending(
        cls,
        epsilon: float,
        *,
        families: int = 16,
        values: int | None = None,
        digits: int | None = None,
    ) -> LocalHash:
        """The mechanism that spends as much of ε as integers allow, never more."""
        check_epsilon(epsilon)
        g = values_for(epsilon) if values is None else values
        _check_prime(g)
        d = digits_for(g) if digits is None else digits
        return cls(noise=number_noise(epsilon, g), values=g, digits=d, families=families)

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

    @property
    def hash_layout(self) -> tuple[int, int, int]:
        return self.families, 1, self.cells

    def on_line(self, cell: int, line: int) -> int:
        """Where the line takes the cell. Digits are read from the last: v_d first, then a₁v₁ …"""
        g = self.values
        cell, total = divmod(cell, g)
        while cell:
            cell, v = divmod(cell, g)
            line, a = divmod(line, g)
            total += a * v
        return total % g

    def number(self, token: bytes | None, cohort: int) -> int | None:
        if token is None:
            return None
        family, line = divmod(cohort, self.lines)
        (cell,) = self.scheme.positions(token, family, self.cells, 1, self.header)
        return self.on_line(cell, line)

    # --- noise --------------------------------------------------------------------------------

    @property
    def bound(self) -> int:
        return self.values

    @property
    def support(self) -> tuple[float, float]:
        # A string that the client does not hold has the reported number by chance.
        return 1 / self.values, float(self.noise.q_star)

    def encoding(self) -> Settings:
        names = {"values": self.values, "digits": self.digits, "families": self.families}
        return {"kind": self.kind, **names}


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


def _check_prime(values: int) -> None:
    if type(values) is not int or not _is_prime(values):
        raise InputError(f"expected values, a prime up to {MAX_VALUES}, got {values!r}")
