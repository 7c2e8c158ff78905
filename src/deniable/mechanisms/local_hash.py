"""Local hashing: hash a string to one of g numbers, and report the number with noise.

A report is one number below g, one or two bytes, and as accurate as a Bloom filter of hundreds of
bits. A report supports a string that the client does not hold with probability 1/g, and its own
string with probability q; g ≈ e^ε + 1 is optimal (Wang, Blocki, Li and Jha, "Locally differentially
private protocols for frequency estimation", 2017).

The cohort, sent in the clear, selects the hash function. It consists of a *family* and a *line*.
The family hashes the string to one of g^d cells, as a Bloom filter of that many bits would. Line a
maps the cell's base-g digits v to a₁v₁ + … + a_{d−1}v_{d−1} + v_d modulo the prime g; two cells
agree on at most one in g lines. An analyst therefore turns the reports of a family into one table
of g^d cells, and looks a candidate up in one table per family instead of one per cohort.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from deniable.errors import InputError, check_integer
from deniable.mechanisms.base import MAX_COHORTS, Settings, StringMechanism, register
from deniable.mechanisms.noise import ONE
from deniable.mechanisms.number_mechanism import NumberMechanism, number_noise
from deniable.privacy import check_epsilon

MAX_VALUES = 65521
MIN_CELLS = 1000
"""Minimum number of cells of a family, so that frequent strings seldom share a cell."""


@register
@dataclass(frozen=True, kw_only=True)
class LocalHash(NumberMechanism, StringMechanism):
    """Reports a string as one number: a noisy hash.

    Parameters
    ----------
    values : int
        Number of possible reports (g), a prime.
    digits : int, default 1
        Number of base-g digits of a cell (d).
    families : int, default 1
        Number of hash functions from strings to cells.

    Examples
    --------
    >>> made = LocalHash.spending(4.394, families=16)
    >>> made.values, made.digits, made.cohorts, made.size, round(made.loss.per_report, 6)
    (83, 2, 1328, 1, 4.394)
    """

    values: int
    digits: int = 1
    families: int = 1

    kind = "localhash"
    protocols = frozenset({"single", "prefixes"})

    def __post_init__(self) -> None:
        _check_prime(self.values)
        check_integer("digits", self.digits, 1, 16)
        if type(self.families) is not int or self.families < 1 or self.cohorts > MAX_COHORTS:
            raise InputError(
                f"families × values^(digits − 1), the number of cohorts, must be from 1 to "
                f"{MAX_COHORTS}, not {self.families!r} × {self.values}^{self.digits - 1}: choose "
                "fewer families"
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
        """Return the mechanism with the largest loss that does not exceed ε."""
        check_epsilon(epsilon)
        g = values_for(epsilon) if values is None else values
        _check_prime(g)
        d = digits_for(g) if digits is None else digits
        return cls(noise=number_noise(epsilon, g), values=g, digits=d, families=families)

    # --- hashing ------------------------------------------------------------------------------

    @property
    def cells(self) -> int:
        """Number of cells of a family, g^d."""
        return int(self.values**self.digits)

    @property
    def lines(self) -> int:
        """Number of lines of a family, g^(d−1)."""
        return int(self.values ** (self.digits - 1))

    @property
    def cohorts(self) -> int:
        """Number of cohorts: families × lines."""
        return self.families * self.lines

    @property
    def hash_layout(self) -> tuple[int, int, int]:
        """`families` hash families, one hash per family, g^d cells."""
        return self.families, 1, self.cells

    def on_line(self, cell: int, line: int) -> int:
        """Return the number to which the line maps the cell; reads digits from the last, v_d."""
        g = self.values
        cell, total = divmod(cell, g)
        while cell:
            cell, v = divmod(cell, g)
            line, a = divmod(line, g)
            total += a * v
        return total % g

    def number(self, token: bytes | None, cohort: int) -> int | None:
        """Return the number that the cohort's family and line map the string to."""
        if token is None:
            return None
        family, line = divmod(cohort, self.lines)
        (cell,) = self.scheme.positions(token, family, self.cells, 1, self.header)
        return self.on_line(cell, line)

    # --- noise --------------------------------------------------------------------------------

    @property
    def bound(self) -> int:
        """Number of possible reports (g)."""
        return self.values

    @property
    def support(self) -> tuple[float, float]:
        """Probabilities that a report supports another string, and the client's own."""
        # Another string is hashed to the reported number by chance.
        return 1 / self.values, float(self.noise.q_star)

    @property
    def permanent_support(self) -> tuple[float, float]:
        """The same as `support` for the number that permanent noise leaves."""
        return 1 / self.values, self.noise.kept / ONE

    def encoding(self) -> Settings:
        """Return values, digits and families, which decide the number of a string."""
        names = {"values": self.values, "digits": self.digits, "families": self.families}
        return {"kind": self.kind, **names}


def values_for(epsilon: float) -> int:
    """Return the prime nearest to e^ε + 1, the optimum; of two equally near, the larger one.

    >>> values_for(4.394), values_for(1.0)
    (83, 3)
    """
    wanted = min(math.exp(min(epsilon, 12.0)) + 1, MAX_VALUES)
    below = next(n for n in range(math.floor(wanted), 1, -1) if _is_prime(n))
    above = next((n for n in range(math.ceil(wanted), MAX_VALUES + 1) if _is_prime(n)), below)
    return above if above - wanted <= wanted - below else below


def digits_for(values: int) -> int:
    """Return the smallest number of digits that gives a family `MIN_CELLS` cells.

    >>> digits_for(83), digits_for(3), digits_for(2003)
    (2, 7, 1)
    """
    return next(d for d in range(1, 17) if values**d >= MIN_CELLS)


def _is_prime(n: int) -> bool:
    """Return whether `n` is a prime that `values` may be."""
    return 2 <= n <= MAX_VALUES and all(n % k for k in range(2, math.isqrt(n) + 1))


def _check_prime(values: int) -> None:
    """Raise InputError unless `values` is such a prime."""
    if type(values) is not int or not _is_prime(values):
        raise InputError(f"values must be a prime number up to {MAX_VALUES}, not {values!r:.200}")
