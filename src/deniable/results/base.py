"""The base class of results: provenance, JSON, tables, data frames and plots."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, fields
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self, cast

from deniable.errors import InputError
from deniable.extras import needs_packages
from deniable.formatting import Columns, html_table, html_text, text_table
from deniable.results.json_values import to_json_value, typed_fields

if TYPE_CHECKING:
    import pandas
    import polars
    import pyarrow
    from matplotlib.axes import Axes

FORMAT = "deniable-result/1"
TEST_DATA = "TEST DATA"
"""First words of the origin of reports that answer a survey for testing."""
TEST_DATA_NOTE = f"{TEST_DATA}: the survey was published for testing."


@dataclass(frozen=True)
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
    parameters: Mapping[str, Mapping[str, object]]
    epsilon: Mapping[str, float]
    reports: int
    origin: str
    library: str

    @property
    def is_test_data(self) -> bool:
        """Whether the reports answer a survey that was published for testing."""
        return self.origin.startswith(TEST_DATA)


@dataclass(frozen=True, eq=False)
class Result(ABC):
    """Base class of all results.

    A subclass is a frozen dataclass that defines `columns`. It overrides `_json` and `_from_json`
    if its JSON is not one key per field. Results are immutable and can be printed, plotted, saved
    as JSON and turned into data frames.

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

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        Result._kinds[cls.__name__] = cls

    @property
    def provenance(self) -> Provenance | None:
        """Where the result comes from; None if it was not made from reports."""
        return None

    # --- as a table ------------------------------------------------------------------------------

    @abstractmethod
    def columns(self) -> Columns:
        """Return the result as columns of equal length.

        Returns
        -------
        dict of str to sequence
            Columns by name.
        """

    def to_arrow(self) -> pyarrow.Table:
        """Return the columns as an Arrow table.

        Returns
        -------
        pyarrow.Table
            One row per row of `columns`.
        """
        import pyarrow as pa

        return pa.table({name: pa.array(list(c)) for name, c in self.columns().items()})

    def to_pandas(self) -> pandas.DataFrame:
        """Return the columns as a pandas data frame; needs pandas.

        Returns
        -------
        pandas.DataFrame
            One row per row of `columns`.
        """
        return self.to_arrow().to_pandas()

    def to_polars(self) -> polars.DataFrame:
        """Return the columns as a polars data frame; needs polars.

        Returns
        -------
        polars.DataFrame
            One row per row of `columns`.
        """
        import polars

        return cast(polars.DataFrame, polars.from_arrow(self.to_arrow()))

    # --- as JSON ---------------------------------------------------------------------------------

    def to_json(self) -> str:
        """Return the whole result as one line of JSON.

        Returns
        -------
        str
            JSON; numbers that JSON does not have become "NaN", "Infinity" and "-Infinity".
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
            kind = Result._kinds[data["kind"]] if data.pop("format") == FORMAT else None
        except ValueError as error:
            raise InputError(
                "this is not a result of deniable: expected JSON that an analysis wrote with "
                f"-o FILE.json, or that save() wrote, but it is not JSON: {error}"
            ) from None
        except (KeyError, TypeError, AttributeError):
            raise InputError(
                "this is not a result of deniable: expected JSON that an analysis wrote with "
                "-o FILE.json, or that save() wrote"
            ) from None
        if kind is None or not issubclass(kind, cls):
            raise InputError(f"expected a {cls.__name__} in {FORMAT}, got {data['kind']}")
        return kind._from_json(data)

    def save(self, path: str | Path) -> None:
        """Write the result as JSON to a file.

        Parameters
        ----------
        path : str or Path
            File to write.
        """
        Path(path).write_text(self.to_json() + "\n", encoding="utf-8")

    def _json(self) -> dict[str, object]:
        """Return the data that `to_json` writes: everything that does not need the reports."""
        keys = {f.name: self._json_keys.get(f.name, f.name) for f in fields(self)}
        values = {key: to_json_value(getattr(self, name)) for name, key in keys.items()}
        return {"kind": type(self).__name__, **values}

    @classmethod
    def _from_json(cls, data: dict[str, object]) -> Self:
        """Return the result from the data that `_json` returned."""
        names = {key: name for name, key in cls._json_keys.items()}
        given = {names.get(key, key): value for key, value in data.items() if key != "kind"}
        return cls(**typed_fields(cls, given))

    # --- for people ------------------------------------------------------------------------------

    def heading(self) -> str:
        """Return one line that summarises the result.

        Returns
        -------
        str
            The line above the printed table.
        """
        return type(self).__name__

    def __str__(self) -> str:
        return text_table(self.heading(), self.columns())

    def _repr_html_(self) -> str:
        return f"<p>{html_text(self.heading())}</p>{html_table(self.columns())}"

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
