"""The same analysis of one period after another."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, Self, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from deniable.errors import InputError
from deniable.formatting import Columns
from deniable.results.base import Provenance, Result
from deniable.results.json_values import to_json_value, typed_fields
from deniable.results.marginal import UNMEASURED, Marginal

Floats = NDArray[np.float64]
R = TypeVar("R", bound=Result, covariant=True)

SHARES = ("estimate", "standard_error", "low", "high", "detected")
"""What is written of each period's marginal: the values' shares, not the masses and p-values."""


@dataclass(frozen=True, eq=False)
class Trend(Result, Generic[R]):
    """Results of one kind, one per period, earliest first.

    by : "day" or "week"; periods : the first day of each, such as "2027-01-04" (weeks begin on
    Monday); parts : each period's result. Tests count the candidates of their own period only: over
    many periods some false detections are to be expected. skipped : periods that could not be
    analysed, and why. provenance : of all periods together.

    A trend of marginals has the same values in every period: `labels` names them, and `estimate`,
    `standard_error`, `low`, `high` and `detected` are arrays of [periods, values]. Its JSON keeps
    these arrays and leaves out the masses and p-values of the single periods.
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
            raise InputError("expected results of one kind")

    # --- of marginals ----------------------------------------------------------------------------

    @property
    def of_marginals(self) -> bool:
        """Whether every period has the shares of the same values."""
        return bool(self.parts) and isinstance(self.parts[0], Marginal)

    @property
    def marginals(self) -> tuple[Marginal, ...]:
        """The parts of a trend of marginals."""
        if not self.of_marginals:
            raise InputError("expected a trend of decoded values: look at the parts of this one")
        return cast(tuple[Marginal, ...], self.parts)

    @property
    def question(self) -> str:
        """The question that was decoded."""
        return self.marginals[0].question

    @property
    def labels(self) -> tuple[str, ...]:
        """The values."""
        return self.marginals[0].names

    @property
    def estimate(self) -> Floats:
        """Return float64[T, m], as in a Marginal."""
        return np.stack([part.estimate for part in self.marginals])

    @property
    def standard_error(self) -> Floats:
        """Return float64[T, m]."""
        return np.stack([part.standard_error for part in self.marginals])

    @property
    def low(self) -> Floats:
        """Return float64[T, m], the lower ends of 95% intervals."""
        return np.stack([part.low for part in self.marginals])

    @property
    def high(self) -> Floats:
        """Return float64[T, m], the upper ends of 95% intervals."""
        return np.stack([part.high for part in self.marginals])

    @property
    def detected(self) -> NDArray[np.bool_]:
        """Return bool[T, m], controlled at alpha within each period."""
        return np.stack([part.detected for part in self.marginals])

    @property
    def reports(self) -> NDArray[np.int64]:
        """Return int64[T], the reports of each period."""
        return np.array([part.reports for part in self.marginals], np.int64)

    def largest(self, count: int) -> NDArray[np.intp]:
        """Return the values of largest estimate on average, at most `count`, largest first."""
        average = np.nan_to_num(self.estimate, nan=0.0).mean(axis=0)
        return np.argsort(-average, kind="stable")[:count]

    # --- as a result -----------------------------------------------------------------------------

    def columns(self) -> Columns:
        """Return a row per value and period for marginals, else each period's own rows."""
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

    def heading(self) -> str:
        if self.of_marginals:
            return (
                f"{self.question} by {self.by}: {len(self.labels):,} values, {len(self.periods)} "
                f"periods, {int(self.reports.sum()):,} reports"
            )
        text = f"{len(self.periods)} {self.by}s"
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
        if self.skipped:
            written["skipped"] = self.skipped
        return {"kind": "Trend", **{key: to_json_value(v) for key, v in written.items()}}

    @classmethod
    def _from_json(cls, data: dict[str, object]) -> Self:
        read = _read_marginals if data["kind"] == "Trend" else _read_parts
        names = ("by", "periods", "skipped", "provenance")
        common = typed_fields(cls, {name: data[name] for name in names if name in data})
        return cls(parts=cast(tuple[R, ...], read(data)), **common)


Result._kinds["Series"] = Trend  # as trends of other results than marginals are written


def _read_parts(data: dict[str, Any]) -> tuple[Result, ...]:
    return tuple(Result._kinds[part["kind"]]._from_json(part) for part in data["parts"])


def _read_marginals(data: dict[str, Any]) -> tuple[Result, ...]:
    """Return each period's marginal; what is not written of it is NaN."""
    shared = {name: data[name] for name in ("question", "labels", "alpha", "correction")}
    unwritten: dict[str, Any] = {
        "p_value": np.full(len(data["labels"]), np.nan),
        "groups": (),
        "detection_threshold": np.nan,
        "mass_found": UNMEASURED,
        "mass_unexplained": UNMEASURED,
        "background": np.empty(0),
        "overdispersion": np.nan,
    }
    parts = []
    for i in range(len(data["periods"])):
        own = {name: data[name][i] for name in (*SHARES, "reports")}
        fields = typed_fields(Marginal, {**shared, **own})
        identified = np.isfinite(fields["estimate"])
        parts.append(Marginal(**fields, **unwritten, identified=identified))
    return tuple(parts)
