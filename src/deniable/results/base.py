"""What every result can do: say where it came from, travel as JSON, become a table, draw itself."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, fields
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self, cast

from deniable.errors import InputError
from deniable.formatting import Columns, html_table, html_text, text_table
from deniable.results.json_values import to_json_value, typed_fields

if TYPE_CHECKING:
    import pandas
    import polars
    import pyarrow
    from matplotlib.axes import Axes

FORMAT = "deniable-result/1"


@dataclass(frozen=True)
class Provenance:
    """Where a result came from.

    survey, version, digest : of the published survey; questions : which were read;
    parameters : of each question's mechanism, as published; epsilon : each question's ε once;
    reports : N; origin : what the reports say of themselves ("simulated, seed 7"), or "";
    library : the release of this library that made the result.
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


@dataclass(frozen=True, eq=False)
class Result(ABC):
    """Base of the results; a subclass supplies `columns`, and may change what its JSON holds."""

    _kinds: ClassVar[dict[str, type[Result]]] = {}
    _json_keys: ClassVar[Mapping[str, str]] = {}
    """Keys of fields whose name in JSON is another."""

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        Result._kinds[cls.__name__] = cls

    @property
    def provenance(self) -> Provenance | None:
        """Where the result came from, if it came from reports."""
        return None

    # --- as a table ------------------------------------------------------------------------------

    @abstractmethod
    def columns(self) -> Columns:
        """Return the result as columns of equal length, for tables and frames."""

    def to_arrow(self) -> pyarrow.Table:
        """Return the columns as an Arrow table."""
        import pyarrow as pa

        return pa.table({name: pa.array(list(c)) for name, c in self.columns().items()})

    def to_pandas(self) -> pandas.DataFrame:
        """Return the columns as a pandas frame; needs pandas."""
        return self.to_arrow().to_pandas()

    def to_polars(self) -> polars.DataFrame:
        """Return the columns as a polars frame; needs polars."""
        import polars

        return cast(polars.DataFrame, polars.from_arrow(self.to_arrow()))

    # --- as JSON ---------------------------------------------------------------------------------

    def to_json(self) -> str:
        """Return all of it in one line; numbers that JSON lacks become "NaN" and "Infinity"."""
        return json.dumps({"format": FORMAT, **self._json()}, allow_nan=False)

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Return the result that `to_json` wrote."""
        try:
            data = json.loads(text)
            found = Result._kinds[data["kind"]] if data.pop("format") == FORMAT else None
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise InputError(f"this is not a result of deniable: {error!r}") from None
        if found is None or not issubclass(found, cls):
            raise InputError(f"expected {cls.__name__} in {FORMAT}, got {data['kind']}")
        return found._from_json(data)

    def save(self, path: str | Path) -> None:
        """Write the JSON."""
        Path(path).write_text(self.to_json() + "\n", encoding="utf-8")

    def _json(self) -> dict[str, object]:
        """Return what is written: all that can be known without the reports."""
        keys = {f.name: self._json_keys.get(f.name, f.name) for f in fields(self)}
        values = {key: to_json_value(getattr(self, name)) for name, key in keys.items()}
        return {"kind": type(self).__name__, **values}

    @classmethod
    def _from_json(cls, data: dict[str, object]) -> Self:
        """Return the result whose `_json` this is."""
        names = {key: name for name, key in cls._json_keys.items()}
        given = {names.get(key, key): value for key, value in data.items() if key != "kind"}
        return cls(**typed_fields(cls, given))

    # --- for people ------------------------------------------------------------------------------

    def heading(self) -> str:
        """Return one line that stands above the table."""
        return type(self).__name__

    def __str__(self) -> str:
        return text_table(self.heading(), self.columns())

    def _repr_html_(self) -> str:
        return f"<p>{html_text(self.heading())}</p>{html_table(self.columns())}"

    def plot(self, ax: Axes | None = None, **options: Any) -> Axes:
        """Draw it; needs matplotlib, the `plots` extra."""
        try:
            axes: Axes = import_module("deniable.render.plots").draw(self, ax, **options)
        except ModuleNotFoundError as error:
            raise InputError(f"drawing needs {error.name}: pip install 'deniable[plots]'") from None
        return axes
