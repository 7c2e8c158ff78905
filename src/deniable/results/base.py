"""What every result can do: say where it came from, travel as JSON, become a table, draw itself."""

from __future__ import annotations

import json
import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from deniable.errors import InputError

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
    parameters: Mapping[str, Any]
    epsilon: Mapping[str, float]
    reports: int
    origin: str
    library: str


class Result(ABC):
    """Base of the results; a subclass supplies `columns`."""

    _kinds: ClassVar[dict[str, type[Result]]] = {}
    _hidden: ClassVar[tuple[str, ...]] = ()
    """Fields that do not travel: they refer to the reports themselves."""

    def __init_subclass__(cls) -> None:
        Result._kinds[cls.__name__] = cls

    # --- as a table ------------------------------------------------------------------------------

    @abstractmethod
    def columns(self) -> dict[str, Sequence[Any]]:
        """The result as columns of equal length, for tables and frames."""

    def to_arrow(self) -> pyarrow.Table:
        """As an Arrow table."""
        import pyarrow as pa

        return pa.table({name: pa.array(list(c)) for name, c in self.columns().items()})

    def to_pandas(self) -> pandas.DataFrame:
        """As a pandas frame; needs pandas."""
        return self.to_arrow().to_pandas()

    def to_polars(self) -> polars.DataFrame:
        """As a polars frame; needs polars."""
        import polars

        frame = polars.from_arrow(self.to_arrow())
        assert isinstance(frame, polars.DataFrame)
        return frame

    # --- as JSON ---------------------------------------------------------------------------------

    def to_json(self) -> str:
        """All of it, in one line; numbers that JSON lacks become "NaN" and "Infinity"."""
        return json.dumps({"format": FORMAT, **_plain(self)}, allow_nan=False)

    @classmethod
    def from_json(cls, text: str) -> Self:
        """What `to_json` wrote."""
        try:
            data = json.loads(text)
            kind = Result._kinds[data["kind"]] if data["format"] == FORMAT else None
        except (ValueError, KeyError, TypeError) as error:
            raise InputError(f"this is not a result of deniable: {error!r}") from None
        if kind is None or not issubclass(kind, cls):
            raise InputError(f"expected {cls.__name__} in {FORMAT}, got {data['kind']}")
        found = _typed(kind, {k: v for k, v in data.items() if k != "format"})
        assert isinstance(found, cls)
        return found

    def _travelling(self) -> Result:
        """What is written: all that can be known without the reports."""
        return self

    def save(self, path: str | Path) -> None:
        """Write the JSON."""
        Path(path).write_text(self.to_json() + "\n", encoding="utf-8")

    # --- for people ------------------------------------------------------------------------------

    def heading(self) -> str:
        """One line above the table."""
        return type(self).__name__

    def __str__(self) -> str:
        return text_table(self.heading(), self.columns())

    def _repr_html_(self) -> str:
        return html_table(self.heading(), self.columns())

    def plot(self, ax: Axes | None = None, **options: Any) -> Axes:
        """Draw it; needs matplotlib, the `plots` extra."""
        try:
            from importlib import import_module

            draw = import_module("deniable.render.plots").draw
        except ModuleNotFoundError as error:
            raise InputError(f"drawing needs {error.name}: pip install 'deniable[plots]'") from None
        axes: Axes = draw(self, ax, **options)
        return axes


def _plain(value: Any) -> Any:
    """Only what JSON has; a result says which it is."""
    if isinstance(value, Result):
        known = value._travelling()
        names = [f.name for f in fields(known) if f.name not in known._hidden]  # type: ignore[arg-type]
        inner = {name: _plain(getattr(known, name)) for name in names}
        return {"kind": type(known).__name__, **inner}
    if hasattr(value, "__dataclass_fields__"):
        return {f.name: _plain(getattr(value, f.name)) for f in fields(value)}
    if isinstance(value, np.ndarray):
        return _plain(value.tolist())
    if isinstance(value, np.generic):
        return _plain(value.item())
    if isinstance(value, Mapping):
        return {str(k): _plain(v) for k, v in value.items()}
    if isinstance(value, tuple | list):
        return [_plain(v) for v in value]
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else ("Infinity" if value > 0 else "-Infinity")
    return value


def _typed(kind: Any, value: Any) -> Any:
    """The value as the type that a field declares."""
    from types import UnionType
    from typing import Union, get_args, get_origin, get_type_hints

    origin, args = get_origin(kind), get_args(kind)
    if kind is Any or kind is None:
        return value
    if origin in (Union, UnionType):
        options = [a for a in args if a is not type(None)]
        return None if value is None else _typed(options[0], value)
    if origin is np.ndarray:
        dtype = get_args(args[1])[0]
        return np.array(_numbers(value), dtype=dtype)
    if origin is tuple:
        inner = args[0] if len(args) == 2 and args[1] is Ellipsis else None
        return tuple(_typed(inner if inner else a, v) for a, v in _paired(args, inner, value))
    if origin is not None and issubclass(origin, Mapping):
        return {k: _typed(args[1], v) for k, v in value.items()}
    if isinstance(kind, type) and issubclass(kind, Result):
        kind, value = Result._kinds[value["kind"]], {k: v for k, v in value.items() if k != "kind"}
    if hasattr(kind, "__dataclass_fields__"):
        hints = get_type_hints(kind)
        given = {k: _typed(hints[k], v) for k, v in value.items()}
        return kind(**given)
    if kind is float and isinstance(value, str | int):
        return float(value)
    return value


def _paired(args: tuple[Any, ...], inner: Any, value: Sequence[Any]) -> list[tuple[Any, Any]]:
    return list(zip([inner] * len(value) if inner else args, value, strict=True))


def _numbers(value: Any) -> Any:
    if isinstance(value, list):
        return [_numbers(v) for v in value]
    return float(value) if isinstance(value, str) else value


def cell(value: Any) -> str:
    """One value as people read it."""
    if isinstance(value, bool | np.bool_):
        return "yes" if value else ""
    if isinstance(value, float | np.floating):
        number = float(value)
        if not math.isfinite(number):
            return "–" if math.isnan(number) else ("∞" if number > 0 else "−∞")
        return f"{number:.3g}" if abs(number) < 0.01 else f"{number:.4f}"
    if isinstance(value, str) and value != value.strip():
        return repr(value)  # blanks at an end would not be seen
    return str(value)


ROWS_SHOWN = 40


def text_table(heading: str, columns: Mapping[str, Sequence[Any]]) -> str:
    """A plain table for a terminal; long ones are cut, and say so."""
    names = list(columns)
    count = len(next(iter(columns.values()), ()))
    rows = [[cell(columns[n][i]) for n in names] for i in range(min(count, ROWS_SHOWN))]
    widths = [max(map(len, [n, *(r[j] for r in rows)])) for j, n in enumerate(names)]
    numeric = [bool(rows) and isinstance(columns[n][0], float | int | np.number) for n in names]

    def line(cells: Sequence[str]) -> str:
        parts = [
            c.rjust(w) if right else c.ljust(w)
            for c, w, right in zip(cells, widths, numeric, strict=True)
        ]
        return "  ".join(parts).rstrip()

    body = [heading, "", line(names), line(["-" * w for w in widths]), *map(line, rows)]
    if count > ROWS_SHOWN:
        body.append(f"… and {count - ROWS_SHOWN:,} more rows: to_arrow() has them all")
    return "\n".join(body)


def html_table(heading: str, columns: Mapping[str, Sequence[Any]]) -> str:
    """The same for a notebook. Decoded strings are hostile input: everything is escaped."""
    from html import escape

    names = list(columns)
    count = len(next(iter(columns.values()), ()))
    head = "".join(f"<th>{escape(n)}</th>" for n in names)
    rows = "".join(
        "<tr>" + "".join(f"<td>{escape(cell(columns[n][i]))}</td>" for n in names) + "</tr>"
        for i in range(min(count, ROWS_SHOWN))
    )
    more = f"<p>… and {count - ROWS_SHOWN:,} more rows</p>" if count > ROWS_SHOWN else ""
    return f"<p>{escape(heading)}</p><table><tr>{head}</tr>{rows}</table>{more}"
