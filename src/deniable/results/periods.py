"""The result of an analysis by period: one result per day or week."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, Self, TypeVar, cast

import numpy as np

from deniable.errors import InputError
from deniable.formatting import SMALLEST_P, Columns, counted
from deniable.kernels.array_types import Floats, Indices, Int64s, Mask
from deniable.results.base import Provenance, Result, all_kinds
from deniable.results.fit_check import FitCheck
from deniable.results.histogram import SUMMARIES, Histogram
from deniable.results.json_values import to_json_value, typed_fields
from deniable.results.marginal import UNMEASURED, Marginal
from deniable.results.rows import Rows

R = TypeVar("R", bound=Result, covariant=True)

SHARES = ("estimate", "standard_error", "low", "high", "detected")
"""Fields of each period's marginal that the JSON of a trend holds."""


@dataclass(frozen=True, eq=False, repr=False)
class Trend(Rows[R], Result, Generic[R]):
    """Results of one class, one per period, earliest first.

    The tests of a period count only the candidates of that period: over many periods, expect some
    false detections. A trend of marginals has the same values in every period; its JSON holds the
    shares and p-values of these values, but not the masses of the periods.

    Parameters
    ----------
    by : str
        "day" or "week".
    periods : tuple of str
        First day of each period, such as "2027-01-04"; weeks begin on Monday.
    parts : tuple of Result
        Result of each period.
    skipped : mapping of str to str, optional
        Periods that could not be analysed, each with the reason.
    provenance : Provenance, optional
        Where all periods together come from.

    Raises
    ------
    InputError
        If the numbers of periods and parts differ, or the parts are of different classes.

    Examples
    --------
    >>> from deniable import plan
    >>> part = plan(clients=100_000, epsilon=4.0, kind="boolean")
    >>> trend = Trend("day", ("2027-01-04", "2027-01-05"), (part, part))
    >>> trend
    <Trend 2 days, 2027-01-04 to 2027-01-05>
    >>> len(trend), trend["2027-01-05"] == part
    (2, True)
    """

    by: str
    periods: tuple[str, ...]
    parts: tuple[R, ...]
    skipped: Mapping[str, str] = field(default_factory=dict)
    provenance: Provenance | None = None

    def __post_init__(self) -> None:
        if len(self.periods) != len(self.parts):
            raise InputError(
                f"expected a result for each of {len(self.periods)} periods, got {len(self.parts)}"
            )
        if len({type(part) for part in self.parts}) > 1:
            raise InputError("expected results of one class")

    # --- of marginals ----------------------------------------------------------------------------

    @property
    def of_marginals(self) -> bool:
        """Whether the parts are marginals, which have the same values in every period."""
        return bool(self.parts) and isinstance(self.parts[0], Marginal)

    @property
    def marginals(self) -> tuple[Marginal, ...]:
        """The parts of a trend of marginals."""
        if not self.of_marginals:
            raise InputError(
                "only a trend of marginals has shares of values: use the parts of this one"
            )
        return cast(tuple[Marginal, ...], self.parts)

    @property
    def question(self) -> str:
        """Name of the decoded question."""
        return self.marginals[0].question

    @property
    def labels(self) -> tuple[str, ...]:
        """The values, which are the same in every period."""
        return self.marginals[0].names

    @property
    def estimate(self) -> Floats:
        """Estimated shares, float64[periods, values]."""
        return np.stack([part.estimate for part in self.marginals])

    @property
    def standard_error(self) -> Floats:
        """Standard errors, float64[periods, values]."""
        return np.stack([part.standard_error for part in self.marginals])

    @property
    def low(self) -> Floats:
        """Lower ends of the 95% confidence intervals, float64[periods, values]."""
        return np.stack([part.low for part in self.marginals])

    @property
    def high(self) -> Floats:
        """Upper ends of the 95% confidence intervals, float64[periods, values]."""
        return np.stack([part.high for part in self.marginals])

    @property
    def detected(self) -> Mask:
        """Whether each value was detected, bool[periods, values]; alpha holds per period."""
        return np.stack([part.detected for part in self.marginals])

    @property
    def reports(self) -> Int64s:
        """Number of reports, int64[periods]."""
        return np.array([part.reports for part in self.marginals], np.int64)

    @property
    def fit(self) -> FitCheck | None:
        """Whether the reports of all periods look as the survey promises."""
        return FitCheck.of_periods(self.periods, self.parts)

    @property
    def tested(self) -> bool:
        """Whether every period has tests."""
        return all(part.tested for part in self.parts)

    @property
    def _histograms(self) -> list[Histogram]:
        """The parts, if they are histograms; all parts are of one class."""
        return [part for part in self.parts if isinstance(part, Histogram)]

    def numbers(self, name: str) -> Floats:
        """Return the mean or the median of each period, for a number question.

        Parameters
        ----------
        name : {"mean", "median"}
            Which of them.

        Returns
        -------
        ndarray of float64, shape (periods, 3)
            Estimates, and both ends of their 95% confidence intervals.

        Raises
        ------
        InputError
            If the question is not a number question.
        """
        if not self._histograms or name not in SUMMARIES:
            raise InputError("only a trend of a number question has a mean and a median")
        found = [getattr(part, name) for part in self._histograms]
        return np.array([(each.estimate, each.low, each.high) for each in found])

    def largest(self, count: int) -> Indices:
        """Return the most common values, by their average over the periods.

        Parameters
        ----------
        count : int
            Maximum number of values.

        Returns
        -------
        ndarray of int
            Indices of the values, most common first.
        """
        average = np.nan_to_num(self.estimate, nan=0.0).mean(axis=0)
        return np.argsort(-average, kind="stable")[:count]

    # --- as a result -----------------------------------------------------------------------------

    def columns(self) -> Columns:
        """Return one row per value and period, or the rows of every period.

        Returns
        -------
        dict of str to sequence
            For marginals the columns value, day or week, reports, and the shares; for other results
            the column period, and those of the parts.
        """
        if not self.of_marginals:
            return self._rows_by_period()
        order = self.largest(len(self.labels))
        named: Columns = {
            "value": [self.labels[i] for i in order for _ in self.periods],
            self.by: list(self.periods) * len(order),
            "reports": self.reports.tolist() * len(order),
        }
        for name in SHARES:
            named[name] = getattr(self, name)[:, order].T.reshape(-1).tolist()
        return named

    def _rows_by_period(self) -> Columns:
        named: dict[str, list[str | int | float]] = {"period": []}
        for period, part in zip(self.periods, self.parts, strict=True):
            columns = part.columns()
            named["period"] += [period] * len(next(iter(columns.values()), ()))
            for name, column in columns.items():
                named.setdefault(name, []).extend(column)
        return dict(named)

    def _keys(self) -> Sequence[str]:
        return self.periods

    def _make_rows(self) -> Iterable[R]:
        return self.parts

    def summary(self) -> str:
        """Return one line that summarises the trend.

        Returns
        -------
        str
            Periods, and how many could not be analysed.
        """
        if self.of_marginals:
            return (
                f"{self.marginals[0].title} by {self.by}: {counted(len(self.labels), 'value')}, "
                f"{counted(len(self.periods), 'period')}, "
                f"{counted(int(self.reports.sum()), 'report')}"
            )
        text = counted(len(self.periods), self.by)
        if self.periods:
            text += f", {self.periods[0]} to {self.periods[-1]}"
        return f"{text}; {len(self.skipped)} could not be analysed" if self.skipped else text

    # --- as JSON ---------------------------------------------------------------------------------

    def _json(self) -> dict[str, object]:
        """Return the arrays of a trend of marginals, else the parts one by one."""
        if not self.of_marginals:
            parts = [part._json() for part in self.parts]
            common = {name: to_json_value(getattr(self, name)) for name in ("by", "periods")}
            skipped = to_json_value(self.skipped)
            return {"kind": "Series", **common, "parts": parts, "skipped": skipped}
        names = ("question", "by", "periods", "labels", *SHARES, "reports")
        written = {name: getattr(self, name) for name in names}
        written |= {name: getattr(self.marginals[0], name) for name in ("alpha", "correction")}
        written["provenance"] = self.provenance
        if self.marginals[0].where is not None:
            written["where"] = self.marginals[0].where
            written["subgroup"] = [part.subgroup for part in self.marginals]
        if histograms := self._histograms:
            written |= {name: getattr(histograms[0], name) for name in ("edges", "unit")}
            written["covariance"] = [part.covariance for part in histograms]
        if any(part.fit is not None for part in self.marginals):
            written["fit"] = [part.fit for part in self.marginals]
        if self.marginals[0].reports_per_client != 1:
            written["reports_per_client"] = self.marginals[0].reports_per_client
        log_p_value = np.stack([part.log_p_value for part in self.marginals])
        if not np.isnan(log_p_value).all():  # as in trends that earlier versions saved
            written["log_p_value"] = log_p_value
        if not self.tested:
            written["tested"] = [part.tested for part in self.marginals]
        if self.skipped:
            written["skipped"] = self.skipped
        return {"kind": "Trend", **{key: to_json_value(v) for key, v in written.items()}}

    @classmethod
    def _from_json(cls, data: dict[str, object]) -> Self:
        read = _read_marginals if data["kind"] == "Trend" else _read_parts
        names = ("by", "periods", "skipped", "provenance")
        common = typed_fields(cls, {name: data[name] for name in names if name in data})
        return cls(parts=cast(tuple[R, ...], read(data)), **common)


Result._kinds["Series"] = Trend  # kind of a trend of other results than marginals


def _read_parts(data: dict[str, Any]) -> tuple[Result, ...]:
    return tuple(all_kinds()[part["kind"]]._from_json(part) for part in data["parts"])


def _read_marginals(data: dict[str, Any]) -> tuple[Result, ...]:
    """Return the marginal of each period; NaN stands for what the JSON does not hold."""
    shared = {name: data[name] for name in ("question", "labels", "alpha", "correction")}
    unwritten: dict[str, Any] = {
        "groups": (),
        "detection_threshold": np.nan,
        "mass_found": UNMEASURED,
        "mass_unexplained": UNMEASURED,
        "background": np.empty(0),
        "overdispersion": np.nan,
    }
    names = [*SHARES, "reports"]
    if "reports_per_client" in data:
        shared["reports_per_client"] = data["reports_per_client"]
    if "where" in data:
        shared["where"] = data["where"]
        names.append("subgroup")
    names += [name for name in ("fit", "log_p_value", "covariance", "tested") if name in data]
    shared |= {name: data[name] for name in ("edges", "unit") if name in data}
    kind = Histogram if "edges" in data else Marginal
    parts = []
    for i in range(len(data["periods"])):
        own = {name: data[name][i] for name in names}
        fields = typed_fields(kind, {**shared, **own})
        identified = np.isfinite(fields["estimate"])
        log_p = fields.setdefault("log_p_value", np.full(len(data["labels"]), np.nan))
        known = {"identified": identified, "p_value": np.maximum(np.exp(log_p), SMALLEST_P)}
        parts.append(kind(**fields, **unwritten, **known))
    return tuple(parts)
