"""The base class of results: provenance, JSON, tables, data frames and plots."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self, cast

from deniable.errors import InputError, check_path
from deniable.extras import needs_packages
from deniable.formatting import Columns, TextTable, Value, counted, html_text, text_table, visible
from deniable.results.fit_check import SUSPICIOUS, FitCheck
from deniable.results.json_values import to_json_value, typed_fields
from deniable.results.rows import ComparedByFields
from deniable.survey.detection import NOT_TESTED

if TYPE_CHECKING:
    import pandas
    import polars
    import pyarrow
    from matplotlib.axes import Axes

FORMAT = "deniable-result/1"
TEST_DATA = "TEST DATA"
"""First words of the origin of reports that answer a survey for testing."""
TEST_DATA_NOTE = f"{TEST_DATA}: the survey was published for testing."


@dataclass(frozen=True, repr=False)
class Provenance:
    """Where a result comes from: the survey, the reports, and the version of this library.

    Parameters
    ----------
    survey : str
        Name of the survey.
    version : int
        Version of the survey.
    digest : str
        Digest of the published survey, in hexadecimal.
    questions : tuple of str
        Questions that were analysed.
    parameters : mapping
        Published parameters of each question's mechanism.
    epsilon : mapping
        Privacy loss ε per report of each question.
    reports : int
        Number of reports.
    origin : str
        Origin that the reports state, such as "simulated, seed 7"; empty if they state none. It
        begins with "TEST DATA" if the survey was published for testing.
    library : str
        Version of this library.

    Examples
    --------
    >>> Provenance("editors", 1, "00ff", ("dark",), {}, {"dark": 1.0}, 1000, "", "0.1.0").reports
    1000
    """

    survey: str
    version: int
    digest: str
    questions: tuple[str, ...]
    parameters: Mapping[str, Mapping[str, object]] = field(hash=False)
    epsilon: Mapping[str, float] = field(hash=False)
    reports: int
    origin: str
    library: str

    @property
    def is_test_data(self) -> bool:
        """Whether the reports answer a survey that was published for testing."""
        return self.origin.startswith(TEST_DATA)

    def is_boolean(self, question: str) -> bool:
        """Return whether a question is a boolean.

        Parameters
        ----------
        question : str
            Name of the question.

        Returns
        -------
        bool
            False also if the question is unknown.
        """
        mechanism = self.parameters.get(question, {}).get("mechanism")
        return isinstance(mechanism, Mapping) and mechanism.get("kind") == "boolean"

    def __repr__(self) -> str:
        reports = counted(self.reports, "report")
        return f"<Provenance survey {self.survey} v{self.version}, {reports}>"


def all_kinds() -> Mapping[str, type[Result]]:
    """Return the classes of results by name; each registers itself when it is imported."""
    results = import_module("deniable.results")
    for name in results.__all__:
        getattr(results, name)
    return Result._kinds


@dataclass(frozen=True, eq=False, repr=False)
class Result(ComparedByFields, ABC):
    """Base class of all results.

    A subclass is a frozen dataclass that defines `columns` and `summary`, and extends `Rows`. It
    overrides `_json` and `_from_json` if its JSON is not one key per field. Results are immutable
    and can be printed, plotted, compared, copied, pickled, saved as JSON and turned into data
    frames.

    Examples
    --------
    >>> from deniable import plan
    >>> result = plan(clients=100_000, epsilon=4.0, kind="boolean")
    >>> again = Result.from_json(result.to_json())
    >>> type(again).__name__, again.to_arrow().num_rows
    ('Plan', 35)
    """

    _kinds: ClassVar[dict[str, type[Result]]] = {}
    """Classes of results by the `kind` in their JSON."""
    _json_keys: ClassVar[Mapping[str, str]] = {}
    """JSON keys of fields that have another name in JSON."""
    _optional: ClassVar[tuple[str, ...]] = ("fit",)
    """Fields that JSON leaves out if they are None."""

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        Result._kinds[cls.__name__] = cls

    @property
    def provenance(self) -> Provenance | None:
        """Where the result comes from; None if it was not made from reports."""
        return None

    @property
    def fit(self) -> FitCheck | None:
        """Whether the reports look as the survey promises; None if that was not checked."""
        return None

    @property
    def warning(self) -> str:
        """What is wrong with the reports; empty if nothing is known to be wrong."""
        return str(self.fit) if self.fit is not None and self.fit.suspicious else ""

    # --- as a table ------------------------------------------------------------------------------

    @abstractmethod
    def columns(self) -> Columns:
        """Return the result as columns of equal length.

        Returns
        -------
        dict of str to sequence
            Columns by name.
        """

    @property
    def tested(self) -> bool:
        """Whether there were enough reports, clients and cohorts to test anything."""
        return True

    @property
    def limitation(self) -> str:
        """Why nothing is tested; empty if tests were made."""
        return "" if self.tested else f"{NOT_TESTED}."

    @property
    def marks(self) -> list[str]:
        """What must be said first: test data, reports that look wrong, nothing tested."""
        test_data = TEST_DATA_NOTE if self.is_test_data else ""
        return [text for text in (test_data, self.warning, self.limitation) if text]

    def to_arrow(self) -> pyarrow.Table:
        """Return the columns as an Arrow table; needs pyarrow.

        Returns
        -------
        pyarrow.Table
            One row per row of `columns`.

        Raises
        ------
        MissingPackage
            If pyarrow is not installed.
        """
        return cast("pyarrow.Table", _frames("pyarrow", "to_arrow()").table(self._lists()))

    def to_pandas(self) -> pandas.DataFrame:
        """Return the columns as a pandas data frame; needs pandas.

        Returns
        -------
        pandas.DataFrame
            One row per row of `columns`.

        Raises
        ------
        MissingPackage
            If pandas is not installed.
        """
        return cast("pandas.DataFrame", _frames("pandas", "to_pandas()").DataFrame(self._lists()))

    def to_polars(self) -> polars.DataFrame:
        """Return the columns as a polars data frame; needs polars.

        Returns
        -------
        polars.DataFrame
            One row per row of `columns`.

        Raises
        ------
        MissingPackage
            If polars is not installed.
        """
        return cast("polars.DataFrame", _frames("polars", "to_polars()").DataFrame(self._lists()))

    def _lists(self) -> dict[str, list[Value]]:
        return {name: list(column) for name, column in self.columns().items()}

    # --- as JSON ---------------------------------------------------------------------------------

    def to_json(self) -> str:
        """Return the whole result as one line of JSON.

        Returns
        -------
        str
            JSON; NaN becomes null, infinite numbers "Infinity" and "-Infinity".
        """
        return json.dumps({"format": FORMAT, **self._json()}, allow_nan=False)

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Return the result that `to_json` wrote.

        Parameters
        ----------
        text : str
            JSON.

        Returns
        -------
        Result
            The result, of the class that it had.

        Raises
        ------
        InputError
            If the text is not a result of deniable, or a result of another class.
        """
        try:
            data = json.loads(text)
            kind = {FORMAT: all_kinds()}[data.pop("format")][data["kind"]]
        except (ValueError, RecursionError, KeyError, TypeError, AttributeError) as error:
            raise InputError(
                "this is not a result of deniable: expected JSON that an analysis wrote with "
                "-o FILE.json, or that save() wrote"
                + (", but it is not JSON" if isinstance(error, ValueError | RecursionError) else "")
            ) from None
        if not issubclass(kind, cls):
            raise InputError(f"expected a {cls.__name__} in {FORMAT}, got a {kind.__name__}")
        try:
            result = kind._from_json(data)
            str(result)  # fails if its parts do not fit together
        except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
            raise InputError(
                f"this {kind.__name__} is damaged ({type(error).__name__}: {error!s:.80}); "
                "compute it again"
            ) from None
        return result

    def save(self, path: str | Path) -> None:
        """Write the result as JSON to a file.

        Parameters
        ----------
        path : str or Path
            File to write.
        """
        check_path("path", path)
        Path(path).write_text(self.to_json() + "\n", encoding="utf-8")

    def _json(self) -> dict[str, object]:
        """Return the data that `to_json` writes: everything that does not need the reports."""
        absent = {name for name in self._optional if getattr(self, name) is None}
        names = [f.name for f in fields(self) if f.name not in absent]
        keys = {name: self._json_keys.get(name, name) for name in names}
        values = {key: to_json_value(getattr(self, name)) for name, key in keys.items()}
        if values.get("tested"):
            del values["tested"]
        return {"kind": type(self).__name__, **values}

    @classmethod
    def _from_json(cls, data: dict[str, object]) -> Self:
        """Return the result from the data that `_json` returned."""
        names = {key: name for name, key in cls._json_keys.items()}
        given = {names.get(key, key): value for key, value in data.items() if key != "kind"}
        return cls(**typed_fields(cls, given))

    # --- for people ------------------------------------------------------------------------------

    def summary(self) -> str:
        """Return the most important facts in a few words.

        Returns
        -------
        str
            What a Python prompt shows.
        """
        return ""

    def heading(self) -> str:
        """Return one line that summarises the result.

        Returns
        -------
        str
            The line above the printed table.
        """
        return self.summary() or type(self).__name__

    def __str__(self) -> str:
        return "\n".join([*self.marks, text_table(self.heading(), self.columns())])

    def __repr__(self) -> str:
        marks = TEST_DATA if self.is_test_data else "", SUSPICIOUS if self.warning else ""
        words = [type(self).__name__, *marks, self.summary()]
        return f"<{visible(' '.join(word for word in words if word))}>"

    @property
    def is_test_data(self) -> bool:
        """Whether the reports answer a survey that was published for testing."""
        return self.provenance is not None and self.provenance.is_test_data

    def _repr_html_(self) -> str:
        """Return what a notebook shows: the heading, a picture if it can be drawn, and a table."""
        style, picture, crosstab = "", "", self._crosstab()
        table = TextTable.readable(self.columns())
        try:
            notebook = import_module("deniable.render.notebook")
        except ImportError:  # pictures need packages that tables do not
            pass
        else:
            style, picture = notebook.style(), "" if crosstab else notebook.picture(self)
            table = notebook.table(self)
        marks = "".join(f"<p><b>{html_text(mark)}</b></p>" for mark in self.marks)
        heading = f"<p>{html_text(self.heading())}</p>"
        body = f"{style}{marks}{heading}{picture}{crosstab or table.html()}"
        return f'<div class="deniable-result">{body}</div>'

    def _crosstab(self) -> str:
        """Return a table as HTML that shows the result better than chart and columns."""
        return ""

    def __getstate__(self) -> dict[str, object]:
        """Return the fields, to pickle and copy."""
        return {f.name: getattr(self, f.name) for f in fields(self)}

    def plot(self, ax: Axes | None = None, **options: Any) -> Axes:
        """Draw the result; needs matplotlib, which the `plots` extra installs.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
            Axes to draw on; by default those of a new figure.
        **options
            Options of the plot of this class of result, such as `most` and `truth`.

        Returns
        -------
        matplotlib.axes.Axes
            The axes.

        Raises
        ------
        InputError
            If this result has no plot.
        MissingPackage
            If matplotlib is not installed.
        """
        with needs_packages("a plot"):
            axes: Axes = import_module("deniable.render.plots").draw(self, ax, **options)
        return axes


def _frames(package: str, method: str) -> Any:
    """Import a package of data frames for a method."""
    with needs_packages(method, "frames"):
        return import_module(package)
