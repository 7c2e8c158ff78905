"""Tests of independence and effect sizes."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from deniable.formatting import counted, p_phrase
from deniable.kernels.array_types import Floats
from deniable.results.rows import ComparedByFields

IN_WORDS = {"lrt": "likelihood-ratio", "paper": "the paper's", "linear": "linear-by-linear"}
"""Tests whose name is not a word."""


@dataclass(frozen=True, eq=False)
class AssociationTest(ComparedByFields):
    """The outcome of a test of independence.

    Parameters
    ----------
    method : str
        Name of the test: "score", "linear" (which looks for a linear trend only), "paper", "lrt",
        or another that made the result.
    statistic : float
        Test statistic.
    degrees_of_freedom : int
        Degrees of freedom of its reference distribution.
    p_value : float
        Probability of a statistic at least as large if the questions are independent.
    reference : str
        Reference distribution: "chi2"; "weighted chi2" if directions of which reports tell more
        have larger weights; "shuffles" if the p-value comes from shuffled reports; "bootstrap" if
        it comes from reports that are drawn from the fitted table.

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


@dataclass(frozen=True, eq=False)
class Correlation(ComparedByFields):
    """Pearson's correlation of two questions whose categories stand for numbers.

    Parameters
    ----------
    estimate : float
        Estimated correlation, from −1 to 1; NaN if nothing is known.
    low, high : float
        Ends of its 95% confidence interval.

    Examples
    --------
    >>> print(Correlation(0.31, 0.25, 0.36))
    correlation 0.310 (95% confidence interval 0.250 to 0.360)
    """

    estimate: float
    low: float
    high: float

    def __str__(self) -> str:
        return (
            f"correlation {self.estimate:.3f} "
            f"(95% confidence interval {self.low:.3f} to {self.high:.3f})"
        )


Scores = Sequence[Floats]
"""For each question the numbers that its categories stand for, NaN where there is none."""


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
    conditional : callable
        Test of conditional independence of two questions, by their axes.
    linear : callable
        Test of a linear trend of two questions, by the numbers of their categories.
    correlation : callable
        Correlation of two questions, by the numbers of their categories.
    """

    association: Callable[[str], AssociationTest]
    effect: Callable[[], EffectSize]
    mutual: Callable[[], AssociationTest]
    conditional: Callable[[tuple[int, int]], AssociationTest]
    linear: Callable[[Scores], AssociationTest]
    correlation: Callable[[Scores], Correlation]
