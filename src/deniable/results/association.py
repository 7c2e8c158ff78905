"""Is there an association, and how strong is it?"""

from dataclasses import dataclass


@dataclass(frozen=True)
class AssociationTest:
    """A test of "the variables are independent".

    reference : "chi2", or "shuffles" where the p-value comes from shuffled reports.
    """

    method: str
    statistic: float
    degrees_of_freedom: int
    p_value: float
    reference: str


@dataclass(frozen=True)
class EffectSize:
    """Cramér's V, between 0 (independent) and 1, and its interval."""

    estimate: float
    low: float
    high: float
