"""Subset selection: report a random set of options that contains the true one more often.

The categories are the options and, last, "none": no answer, or an answer that is not an option. A
report is a set S of w of the d categories, with P(S | v) proportional to e^ε if S contains the
client's category v, and to 1 otherwise (Ye and Barg, "Optimal schemes for discrete distribution
estimation under locally differential privacy", 2018). A set with w = 1 is k-ary randomised
response. Unlike with one randomised bit per option, every client spends all of ε on one category,
"none" included, which takes half to a third of the variance if there are few options.

Exactly: S contains v with probability T = q/2³². Of the sets that do, each has the same
probability, and so has each of the others. A client draws one uniform number U of B bits, and
`randomise` divides its range among the sets. B bits cannot be divided evenly, so two sets of one
kind may differ by 1 in the number of values of U that select them; ε is computed from the worst of
these integers. There is no permanent noise.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

from deniable.errors import InputError, check_integer
from deniable.mechanisms.base import Settings, register
from deniable.mechanisms.noise import DIGITS, ONE, Noise
from deniable.mechanisms.options import OptionMechanism
from deniable.privacy import PrivacyLoss, check_epsilon, largest_step, log_sum_rounding_up

MAX_SUBSET_OPTIONS = 1024
"""Maximum number of options. With more, one bit per option is as accurate, and simpler."""
MAX_RANDOM_BYTES = 256
"""Maximum number of random bytes; the largest default takes 136. More would only take time."""
SPARE_BITS = 64
"""Random bits beyond those that number all subsets: uneven divisions then add 2⁻⁴⁰ to ε at most."""


@register
@dataclass(frozen=True, kw_only=True)
class Subset(OptionMechanism):
    """Reports one of several options as a random subset of all options and "none".

    Parameters
    ----------
    members : int
        Number of categories in a reported subset (w).
    random_bytes : int
        Number of random bytes that a report takes.

    Examples
    --------
    >>> made = Subset.spending(2.0, ("red", "green", "blue"))
    >>> made.members, made.width, made.random_bytes, round(made.loss.per_report, 6)
    (1, 4, 9, 2.0)
    """

    members: int
    random_bytes: int

    kind = "subset"

    def __post_init__(self) -> None:
        super().__post_init__()
        if len(self.options) > MAX_SUBSET_OPTIONS:
            raise InputError(
                f"subset selection supports at most {MAX_SUBSET_OPTIONS} options, not "
                f'{len(self.options)}: set mechanism = "bits", which is as accurate here'
            )
        check_integer("members", self.members, 1, self.width - 1)
        check_integer("random_bytes", self.random_bytes, 1, MAX_RANDOM_BYTES)
        if self.noise.flip:
            raise InputError(
                'subset selection has no permanent noise: set collect = "once" and omit f'
            )
        if self.noise.q * self.units % ONE:
            raise InputError(f"q must be a multiple of 2^-{8 * self.random_bytes}")
        if self.noise.p != (p := round(self.other_support * ONE)) or p >= self.noise.q:
            raise InputError(
                f"p must be {p}, which follows from q and the number of members, and below q; got "
                f"p = {self.noise.p}, q = {self.noise.q}"
            )
        if min(self.weights)[0] == 0:
            raise InputError(
                f"{self.random_bytes} random bytes are too few: some subsets would prove a value"
            )

    @classmethod
    def spending(
        cls, epsilon: float, options: tuple[str, ...], *, members: int | None = None
    ) -> Subset:
        """Return the mechanism with the largest loss that does not exceed ε.

        members : number of members of a subset; by default that of the smallest error, see
            `members_for`
        """
        check_epsilon(epsilon)
        categories = len(options) + 1
        w = members_for(epsilon, len(options)) if members is None else members
        check_integer("members", w, 1, categories - 1)
        size = (math.comb(categories, w).bit_length() + SPARE_BITS + 7) // 8

        def at(own: int) -> Subset:
            p = round(_other_support(own, categories, w) * ONE)
            return cls(noise=Noise(0, p, own), options=options, members=w, random_bytes=size)

        # Without noise that depends on the value, a subset contains every category with w/d.
        blind = ONE * w // categories + 2
        return at(largest_step(epsilon, blind, ONE - 1, lambda own: at(own).loss.per_report))

    # --- report -------------------------------------------------------------------------------

    @property
    def width(self) -> int:
        """Number of categories (d): the options and "none"."""
        return len(self.options) + 1

    @property
    def ones(self) -> int:
        """Number of bits that every report sets (w)."""
        return self.members

    @property
    def outcomes(self) -> int:
        """Number of counters: one per category."""
        return self.width

    @property
    def rand_size(self) -> int:
        """Number of random bytes that `encode` takes."""
        return self.random_bytes

    @cached_property
    def units(self) -> int:
        """Number of values that a client's random number U can have, 2^B."""
        return 1 << 8 * self.random_bytes

    @cached_property
    def own_units(self) -> int:
        """Number of values of U for which the subset contains the client's category, T·2^B."""
        return self.noise.q * self.units >> DIGITS

    @cached_property
    def subsets(self) -> tuple[int, int]:
        """Numbers of subsets with and without a given category."""
        others = self.width - 1
        return math.comb(others, self.members - 1), math.comb(others, self.members)

    def encode(self, token: str | None, *, cohort: int, secret: bytes, rand: bytes) -> bytes:
        """Return the packed bits of the subset's members."""
        self.check_inputs(cohort, rand)
        none = len(self.options)
        own = none if token is None else self.index.get(token, none)
        return self.randomise(own, int.from_bytes(rand, "little")).to_bytes(self.size, "little")

    def randomise(self, own: int, uniform: int) -> int:
        """Return the bits of the subset that one uniform number U of B bits selects.

        own : the client's category
        """
        contains, limit = uniform < self.own_units, self.own_units
        with_own, without = self.subsets
        if contains:
            others = nth_subset(uniform * with_own // limit, self.width - 1, self.members - 1)
        else:
            number = (uniform - limit) * without // (self.units - limit)
            others = nth_subset(number, self.width - 1, self.members)
        below = others & ((1 << own) - 1)
        return below | contains << own | (others ^ below) << 1

    # --- noise --------------------------------------------------------------------------------

    @property
    def weights(self) -> tuple[tuple[int, int], tuple[int, int]]:
        """Numbers of values of U that select a subset: the smallest and the largest.

        First for subsets that do not contain the client's category, then for those that do.
        """
        with_own, without = self.subsets
        own, other = self.own_units, self.units - self.own_units
        return (other // without, -(-other // without)), (own // with_own, -(-own // with_own))

    @cached_property
    def loss(self) -> PrivacyLoss:
        """ε per report; without permanent noise, ε in total is infinite."""
        return PrivacyLoss(self.loss_after(1), math.inf)

    def loss_after(self, reports: int) -> float:
        """Return ε in total for this many reports of one value."""
        # If a subset contains both or neither of two categories, its probabilities differ by less.
        (fewest, most), (fewest_own, most_own) = self.weights
        worst = max(Fraction(most_own, fewest), Fraction(most, fewest_own))
        return log_sum_rounding_up([(worst, reports)])

    @property
    def other_support(self) -> Fraction:
        """Probability that a report contains a category that is not the client's."""
        return _other_support(self.noise.q, self.width, self.members)

    @property
    def support(self) -> tuple[float, float]:
        """Probabilities that a report contains another category, and the client's own."""
        return float(self.other_support), self.noise.q / ONE

    @property
    def pair_support(self) -> tuple[float, float]:
        """Probabilities that a report contains two others, and the client's own and another."""
        d, w, own = self.width, self.members, Fraction(self.noise.q, ONE)
        pairs = own * (w - 1) * (w - 2) + (1 - own) * w * (w - 1)
        return float(pairs / ((d - 1) * (d - 2))), float(own * (w - 1) / (d - 1))

    def encoding(self) -> Settings:
        """Return options, members and random bytes, which decide the subset of each number U."""
        return {**super().encoding(), "members": self.members, "random_bytes": self.random_bytes}


def members_for(epsilon: float, options: int) -> int:
    """Return the number of members with the smallest sum of all options' variances.

    All options are taken to be equally common. Then reports tell as much as their bits do, so that
    the same number is best for joint tables. It is about d/(e^ε + 1), and 1 for few options.

    >>> members_for(2.0, 4), members_for(1.0, 10), members_for(0.5, 50)
    (1, 3, 19)
    """
    d, odds = options + 1, math.exp(min(epsilon, 700.0))

    def variance(w: int) -> float:
        own = w * odds / (w * odds + d - w)
        other = (own * (w - 1) + (1 - own) * w) / (d - 1)
        rate = other + (own - other) / options
        return rate * (1 - rate) / (own - other) ** 2

    return min(range(1, d), key=variance)


def nth_subset(number: int, size: int, members: int) -> int:
    """Return a subset of 0 … size − 1 as bits, by its number in lexicographic order.

    >>> [f"{nth_subset(i, 4, 2):04b}" for i in range(6)]  # 01, 02, 03, 12, 13, 23
    ['0011', '0101', '1001', '0110', '1010', '1100']
    """
    bits, left, ways = 0, members, math.comb(size, members)
    for i in range(size):
        with_i = ways * left // (size - i)  # subsets of the rest that contain i
        if number < with_i:
            bits, left, ways = bits | 1 << i, left - 1, with_i
        else:
            number, ways = number - with_i, ways - with_i
    return bits


def _other_support(own: int, categories: int, members: int) -> Fraction:
    """Return the probability of another category; own : that of the client's own, times 2³²."""
    return Fraction(own * (members - 1) + (ONE - own) * members, (categories - 1) * ONE)
