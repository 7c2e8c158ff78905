"""The result of `decode` for a number: a histogram, with the mean and quantiles of the answers.

All of them describe the clients that gave an answer, after numbers outside the bins were moved to
the nearest end. Bins hide where in a bin a number lies, and intervals allow for that:

- The mean lies between that of the bins' lower edges and that of their upper edges. Its interval
  reaches from the lower end of the former's to the upper end of the latter's.
- A quantile lies in bin k if the distribution function is at most p at the lower edge and at least
  p at the upper one. The interval joins all bins for which neither is rejected at 2.5%, so that the
  true bin is left out with a probability of at most 5%.

Both divide by the share of clients that answered, an estimate too. They use Fieller's method, which
tests sums that are linear in the shares; see `ratio_intervals`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, fields
from typing import Any, Self

import numpy as np

from deniable.errors import InputError, check_number
from deniable.formatting import Z95, Columns
from deniable.kernels.array_types import Floats, Indices
from deniable.results.covariance import ratio_intervals
from deniable.results.json_values import to_json_value
from deniable.results.marginal import Marginal
from deniable.results.rows import ComparedByFields, ValueRow

SUMMARIES = ("mean", "median")
"""Numbers that the JSON of a histogram states besides its fields."""


@dataclass(frozen=True, eq=False)
class Quantity(ComparedByFields):
    """A number in the unit of its question, with its uncertainty.

    Parameters
    ----------
    estimate : float
        Estimate; NaN if nothing is known.
    low, high : float
        Ends of the 95% confidence interval. It allows for noise, and for what bins hide.
    discretisation : float
        Bound on the error of the estimate that bins can cause, which no number of reports reduces.
    unit : str, default ""
        Unit, such as "ms".

    Examples
    --------
    >>> print(Quantity(12.34, 11.9, 12.8, 0.25, "ms"))
    12.34 ms (95% confidence interval 11.90 to 12.80)
    """

    estimate: float
    low: float
    high: float
    discretisation: float
    unit: str = ""

    @property
    def short(self) -> str:
        """The estimate with the ends of its interval, such as "12.34 ms (11.90 to 12.80)"."""
        return str(self).replace("95% confidence interval ", "")

    def __str__(self) -> str:
        estimate, low, high = rounded_together(self.estimate, self.low, self.high)
        unit = f" {self.unit}" if self.unit else ""
        return f"{estimate}{unit} (95% confidence interval {low} to {high})"


@dataclass(frozen=True, eq=False, repr=False)
class Histogram(Marginal):
    """How the answers to a number question are distributed over its bins.

    A histogram is a `Marginal` whose values are bins, in their order, and knows the mean and
    quantiles of the answers.

    Parameters
    ----------
    estimate, standard_error, low, high, p_value : ndarray of float64, shape (bins,)
        As in a `Marginal`.
    detected, identified : ndarray of bool, shape (bins,)
        As in a `Marginal`.
    groups : tuple of tuple of int
        Empty: bins can always be distinguished.
    detection_threshold : float
        As in a `Marginal`.
    mass_found, mass_unexplained : Measured
        As in a `Marginal`.
    background : ndarray of float64
        Empty.
    overdispersion : float
        As in a `Marginal`.
    reports : int
        Number of reports.
    alpha : float
        Significance level.
    correction : str or None
        Correction for testing many bins.
    labels : tuple of str, optional
        The bins, such as "10 to 20".
    question : str, default ""
        Name of the question.
    provenance : Provenance, optional
        Where the result comes from.
    where : mapping of str to tuple of str, optional
        Answers that select the subgroup that the result describes.
    subgroup : Measured, optional
        Share of all clients that are in the subgroup.
    total_reports : int, optional
        As in a `Marginal`.
    log_p_value : ndarray of float64, shape (bins,), optional
        Natural logarithms of the p-values.
    fit : FitCheck, optional
        Whether the reports look as the survey promises.
    reports_per_client : float, default 1.0
        Average number of reports per client.
    tested : bool, default True
        As in a `Marginal`.
    edges : ndarray of float64, shape (bins + 1,)
        Edges of the bins. Numbers outside count in the first or last bin.
    covariance : ndarray of float64, shape (bins, bins)
        Covariance of the estimated shares.
    unit : str, default ""
        Unit of the numbers.

    See Also
    --------
    Marginal : The other parameters.

    Examples
    --------
    >>> import numpy as np
    >>> from deniable import Survey, decode, simulate
    >>> survey = Survey.from_toml('''
    ... name = "latency"
    ... version = 1
    ... owner = "Ada"
    ... description = "How long does the first page take?"
    ... expires = 2999-12-31
    ... collect = "once"
    ... [questions.latency]
    ... kind = "number"
    ... edges = [0, 100, 200, 400, 800]
    ... unit = "ms"
    ... epsilon = 3.0
    ... ''')
    >>> answers = np.random.default_rng(1).uniform(100, 300, 20_000)
    >>> histogram = decode(survey, simulate(survey, answers, rng=2), "latency")
    >>> histogram.names
    ('0 to 100', '100 to 200', '200 to 400', '400 to 800')
    >>> bool(histogram.mean.low < answers.mean() < histogram.mean.high)
    True
    >>> histogram.quantile(0.5).low, histogram.quantile(0.5).high
    (100.0, 400.0)
    """

    edges: Floats = field(default_factory=lambda: np.empty(0))
    covariance: Floats = field(default_factory=lambda: np.empty((0, 0)))
    unit: str = ""

    def __post_init__(self) -> None:
        super().__post_init__()
        bins = len(self.estimate)
        if self.edges.shape != (bins + 1,) or self.covariance.shape != (bins, bins):
            raise InputError(
                f"a histogram of {bins} bins needs {bins + 1} edges and a covariance of {bins} × "
                f"{bins}, got {self.edges.shape} and {self.covariance.shape}"
            )

    @classmethod
    def of(cls, marginal: Marginal, edges: Floats, covariance: Floats, unit: str) -> Histogram:
        """Return a marginal of bins as a histogram.

        Parameters
        ----------
        marginal : Marginal
            Shares of the bins.
        edges : ndarray of float64, shape (bins + 1,)
            Edges of the bins.
        covariance : ndarray of float64, shape (bins, bins)
            Covariance of the shares.
        unit : str
            Unit of the numbers.

        Returns
        -------
        Histogram
            The same shares, with mean and quantiles.
        """
        shared = {f.name: getattr(marginal, f.name) for f in fields(marginal)}
        return cls(**shared, edges=edges, covariance=covariance, unit=unit)

    # --- numbers ---------------------------------------------------------------------------------

    @property
    def known(self) -> bool:
        """Whether some clients certainly answered, so that there are a mean and quantiles."""
        answered, variance = float(self.estimate.sum()), float(self.covariance.sum())
        return bool(answered > Z95 * np.sqrt(max(variance, 0.0)))

    @property
    def mean(self) -> Quantity:
        """Mean of the answers, from the middles of the bins."""
        lower, upper = self.edges[:-1], self.edges[1:]
        if not self.known:
            return self._unknown_quantity
        start = lower[0]  # large numbers with small differences would lose digits
        weights = np.stack([(lower + upper) / 2, lower, upper]) - start
        ends = ratio_intervals(weights, self.estimate, self.covariance)
        middle, least, most = start + ends.estimate
        low, high = np.clip([start + ends.low[1], start + ends.high[2]], start, upper[-1]).tolist()
        half = float(most - least) / 2
        return Quantity(float(np.clip(middle, start, upper[-1])), low, high, half, self.unit)

    @property
    def median(self) -> Quantity:
        """Median of the answers."""
        return self.quantile(0.5)

    def quantile(self, p: float) -> Quantity:
        """Return the number that a share p of the answers does not exceed.

        Parameters
        ----------
        p : float
            Share of the answers, between 0 and 1.

        Returns
        -------
        Quantity
            Estimated quantile; within its bin, answers are taken to be uniform. The interval
            consists of whole bins.

        Raises
        ------
        InputError
            If p is not between 0 and 1.
        """
        check_number("p", p)
        if not 0 < p < 1:
            raise InputError(f"p must be between 0 and 1, got {p}")
        if not self.known:
            return self._unknown_quantity
        bins = len(self.estimate)
        # Below edge j, minus p of all answers: negative before the quantile, positive after it.
        weights = np.tri(bins + 1, bins, -1) - p
        excess = weights @ self.estimate
        reach = Z95 * np.sqrt(np.maximum(np.sum(weights @ self.covariance * weights, axis=1), 0.0))
        possible = (excess[:-1] <= reach[:-1]) & (excess[1:] >= -reach[1:])
        first, *_, last = np.flatnonzero(possible).repeat(2)
        below = np.tri(bins + 1, bins, -1) @ self.estimate / self.estimate.sum()
        # Noise makes the estimate fall here and there: take the middle of the two monotone curves
        # that touch it from above and from below.
        above = np.maximum.accumulate(below)
        rising = (above + np.minimum.accumulate(below[::-1])[::-1]) / 2
        estimate = float(np.interp(p, rising, self.edges))
        held = int(np.clip(np.searchsorted(self.edges, estimate, "right") - 1, 0, bins - 1))
        return Quantity(
            estimate=estimate,
            low=float(self.edges[first]),
            high=float(self.edges[last + 1]),
            discretisation=float(self.edges[held + 1] - self.edges[held]),
            unit=self.unit,
        )

    @property
    def _unknown_quantity(self) -> Quantity:
        low, high = float(self.edges[0]), float(self.edges[-1])
        return Quantity(np.nan, low, high, high - low, self.unit)

    # --- as a result -----------------------------------------------------------------------------

    @property
    def order(self) -> Indices:
        """Indices of the bins, in their order."""
        return np.arange(len(self.estimate))

    def columns(self) -> Columns:
        """Return one row per bin, in their order.

        Returns
        -------
        dict of str to sequence
            Columns value, lower_edge, upper_edge, and those of a `Marginal`.
        """
        value, *others = super().columns().items()
        ends = {"lower_edge": self.edges[:-1].tolist(), "upper_edge": self.edges[1:].tolist()}
        return dict([value, *ends.items(), *others])

    def _make_rows(self) -> Iterable[ValueRow]:
        columns = self.columns()
        return map(ValueRow._make, zip(*(columns[f] for f in ValueRow._fields), strict=True))

    def summary(self) -> str:
        """Return the most important facts in a few words.

        Returns
        -------
        str
            Question, reports, and the mean.
        """
        about = f"{self.title}: {self.reports_phrase}"
        if self.subgroup is not None:
            about += f"; the subgroup is {self.subgroup} of clients"
        if not self.known:
            return f"{about}: too few to say anything about the mean"
        return f"{about}; mean {self.mean.short}"

    def heading(self) -> str:
        """Return one line that summarises the result.

        Returns
        -------
        str
            Reports, mean and median, with 95% confidence intervals.
        """
        text = self.summary()
        return f"{text}, median {self.median.short}, with 95% intervals" if self.known else text

    def _json(self) -> dict[str, object]:
        """Add the mean and the median, for readers that do not compute them."""
        numbers = {name: to_json_value(getattr(self, name)) for name in SUMMARIES}
        return {**super()._json(), **numbers}

    @classmethod
    def _from_json(cls, data: dict[str, Any]) -> Self:
        return super()._from_json({k: v for k, v in data.items() if k not in SUMMARIES})


def rounded_together(estimate: float, low: float, high: float) -> tuple[str, str, str]:
    """Return an estimate and its interval with as many digits as two of the interval's width.

    >>> rounded_together(12.3456, 11.9, 12.8), rounded_together(41234.5, 40000.0, 42000.0)
    (('12.35', '11.90', '12.80'), ('41,200', '40,000', '42,000'))
    """
    width = (high - low) / 2
    if not np.isfinite([estimate, width]).all() or width <= 0:
        return f"{estimate:.6g}", f"{low:.6g}", f"{high:.6g}"
    decimals = 1 - int(np.floor(np.log10(width)))
    if decimals <= 0:
        numbers = [f"{round(x, decimals):,.0f}" for x in (estimate, low, high)]
    else:
        numbers = [f"{x:,.{decimals}f}" for x in (estimate, low, high)]
    return numbers[0], numbers[1], numbers[2]
