"""Tests of independence and effect sizes."""

from collections.abc import Callable
from dataclasses import dataclass

from deniable.formatting import counted, p_phrase
from deniable.results.rows import ComparedByFields

IN_WORDS = {"lrt": "likelihood-ratio", "paper": "the paper's"}
"""Tests whose name is not a word."""


@dataclass(frozen=True, eq=False)
class AssociationTest(ComparedByFields):
    """The outcome of a test of independence.

    Parameters
    ----------
    method : str
        Name of the test: "score", "paper", "lrt", or another that made the result.
    statistic : float
        Test statistic.
    degrees_of_freedom : int
        Degrees of freedom of its reference distribution.
    p_value : float
        Probability of a statistic at least as large if the questions are independent.
    reference : str
        Reference distribution: "chi2"; "weighted chi2" if directions of which reports tell more
        have larger weights; "shuffles" if the p-value comes from shuffled reports.

    Examples
    --------
    >>> print(AssociationTest("score", 35.7, 1, 2.3e-09, "chi2"))
    score test of independence: statistic 35.70, 1 degree of freedom, p = 2.3e-09
    """

    method: str
    statistic: float
    degrees_of_freedom: int
    p_value: float
    reference: str

    def __str__(self) -> str:
        freedom = f"{counted(self.degrees_of_freedom, 'degree')} of freedom"
        name = IN_WORDS.get(self.method, self.method)
        numbers = f"statistic {self.statistic:.2f}, {freedom}, {p_phrase(self.p_value)}"
        return f"{name} test of independence: {numbers}"


@dataclass(frozen=True, eq=False)
class EffectSize(ComparedByFields):
    """Cramér's V: how strongly two questions are associated, from 0 (independent) to 1.

    Parameters
    ----------
    estimate : float
        Estimated V.
    low, high : float
        Ends of its 95% confidence interval.

    Examples
    --------
    >>> print(EffectSize(0.254, 0.199, 0.31))
    Cramér's V = 0.254 (95% confidence interval 0.199 to 0.310)
    """

    estimate: float
    low: float
    high: float

    def __str__(self) -> str:
        return (
            f"Cramér's V = {self.estimate:.3f} "
            f"(95% confidence interval {self.low:.3f} to {self.high:.3f})"
        )


@dataclass(frozen=True)
class Tests:
    """Tests that need the reports; a result that was read from JSON has none.

    Parameters
    ----------
    association : callable
        Test of independence of two questions, by the name of a method.
    effect : callable
        Cramér's V of two questions.
    mutual : callable
        Test of mutual independence of all questions.
    """

    association: Callable[[str], AssociationTest]
    effect: Callable[[], EffectSize]
    mutual: Callable[[], AssociationTest]
