"""Ready populations: the shapes that the paper and its field test with, and a user's own.

A `Population` is values with weights; a `JointPopulation` is a table of weights over several
questions' values. Both draw clients. Weights are given in decreasing order, the first value the
most common.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike, NDArray

from deniable.columns.spreadsheet import read_rows
from deniable.errors import InputError
from deniable.kernels.array_types import Floats, Int32s
from deniable.simulation.coded import Coded, Levels

LETTERS = "abcdefghijklmnopqrstuvwxyz"


def zipf(n: int = 100, s: float = 1.0) -> Floats:
    """∝ 1/rank^s."""
    return _normalised(np.arange(1, n + 1, dtype=float) ** -s)


def power(n: int = 100, exponent: float = 20.0, floor: float = 0.0) -> Floats:
    """∝ i^exponent, i = n … 1, then `floor` added and rescaled: the paper's "Zipfian" is exponent
    20, and its dictionary simulation adds 0.001."""
    return _normalised(_normalised((np.arange(n, 0, -1) / n) ** exponent) + floor)


def geometric(n: int = 100, p: float = 0.3) -> Floats:
    """∝ (1−p)^rank, cut after n."""
    return _normalised((1 - p) ** np.arange(n))


def step(n: int = 100) -> Floats:
    """Four values of 0.12, four of 0.06, the others share the rest (the paper's Appendix B)."""
    if n < 9:
        raise InputError(f"expected a step population of at least 9 values, got {n}")
    return np.array([0.12] * 4 + [0.06] * 4 + [0.28 / (n - 8)] * (n - 8))


def uniform(n: int = 100) -> Floats:
    """All the same."""
    return np.full(n, 1 / n)


def exponential(n: int = 100, scale: float = 25.0) -> Floats:
    """∝ exp(−rank/scale)."""
    return _normalised(np.exp(-np.arange(n) / scale))


_SHAPES = (zipf, power, geometric, step, uniform, exponential)
SHAPES: dict[str, Callable[..., Floats]] = {shape.__name__: shape for shape in _SHAPES}


@dataclass(frozen=True, eq=False)
class Population:
    """Values and how common each is."""

    values: Levels
    weights: Floats

    def __post_init__(self) -> None:
        w = np.asarray(self.weights, float)
        if len(self.values) != len(w) or len(w) == 0:
            raise InputError(
                f"expected as many weights as values, at least one; got {len(w)} and "
                f"{len(self.values)}"
            )
        object.__setattr__(self, "weights", _checked(w, "weights"))

    def __len__(self) -> int:
        return len(self.values)

    def draw(self, clients: int, rng: np.random.Generator) -> Coded:
        """This many clients' values."""
        return Coded(self.values, _drawn(self.weights, clients, rng))

    def share(self, value: object) -> float:
        """How common the value is; 0 if it is not there."""
        return float(self.weights[self.values.index(value)]) if value in self.values else 0.0


@dataclass(frozen=True, eq=False)
class JointPopulation:
    """Several questions' values and how common each combination is."""

    values: Mapping[str, Levels]
    table: Floats

    def __post_init__(self) -> None:
        t = np.asarray(self.table, float)
        shape = tuple(len(v) for v in self.values.values())
        if t.shape != shape or t.size == 0:
            raise InputError(f"expected a table of {shape}, one axis a question, got {t.shape}")
        object.__setattr__(self, "table", _checked(t, "table entries"))

    def draw(self, clients: int, rng: np.random.Generator) -> dict[str, Coded]:
        """This many clients' values for every question."""
        cells = _drawn(self.table.ravel(), clients, rng)
        codes = np.unravel_index(cells, self.table.shape)
        return {
            name: Coded(values, code.astype(np.int32))
            for (name, values), code in zip(self.values.items(), codes, strict=True)
        }

    def margin(self, question: str) -> Population:
        """One question by itself."""
        axis = list(self.values).index(question)
        others = tuple(i for i in range(self.table.ndim) if i != axis)
        return Population(self.values[question], self.table.sum(axis=others))


def correlated(*weights: Floats, strength: float) -> Floats:
    """A table with these margins: independent at strength 0, moving together at 1.

    The mixture (1−strength)·product + strength·comonotone coupling, for two margins or more.

    >>> correlated(uniform(2), uniform(2), strength=0.5)
    array([[0.375, 0.125],
           [0.125, 0.375]])
    """
    if len(weights) < 2 or not 0 <= strength <= 1:
        raise InputError(
            f"expected two or more margins and a strength from 0 to 1, got {len(weights)} and "
            f"{strength}"
        )
    independent = weights[0]
    for w in weights[1:]:
        independent = np.multiply.outer(independent, w)
    together = np.zeros([len(w) for w in weights])
    # One uniform number picks every variable's quantile: its breaks are all margins' breaks.
    tops = [np.cumsum(w) / w.sum() for w in weights]
    breaks = np.unique(np.concatenate([[0.0], *tops]))
    middles, sizes = (breaks[1:] + breaks[:-1]) / 2, np.diff(breaks)
    cells = tuple(np.minimum(np.searchsorted(t, middles), len(t) - 1) for t in tops)
    np.add.at(together, cells, sizes)
    return (1 - strength) * independent + strength * together


def contingency(table: ArrayLike, **values: Sequence[object]) -> JointPopulation:
    """A given table of counts or shares over the named questions' values.

    >>> contingency([[3, 1], [0, 4]], browser=["a", "b"], ads=[True, False]).table.sum()
    np.float64(1.0)
    """
    return JointPopulation({k: tuple(v) for k, v in values.items()}, np.asarray(table, float))


def random_strings(
    n: int, length: int, rng: np.random.Generator, alphabet: str = LETTERS
) -> tuple[str, ...]:
    """n different strings of this length."""
    if n > len(alphabet) ** length:
        raise InputError(
            f"expected at most {len(alphabet) ** length} different strings of length {length}, "
            f"got {n}"
        )
    letters = np.array(list(alphabet))
    found: dict[str, None] = {}
    while len(found) < n:
        for row in letters[rng.integers(0, len(alphabet), (n, length))]:
            found.setdefault("".join(row))
    return tuple(found)[:n]


def from_csv(path: str | Path) -> Population:
    """Columns `value,weight`, with that header."""
    rows = list(read_rows(path))
    if not rows or [c.strip() for c in rows[0][1]] != ["value", "weight"]:
        got = rows[0][1] if rows else "an empty file"
        raise InputError(f"{path}: expected the header value,weight; got {got}")
    values, weights = [], []
    for line, row in rows[1:]:
        if len(row) != 2:
            raise InputError(f"{path}, line {line}: expected value,weight; got {row}")
        values.append(row[0])
        weights.append(_number(row[1], path, line))
    return Population(tuple(values), np.array(weights))


def table_from_csv(path: str | Path, first: str, second: str) -> JointPopulation:
    """A contingency table: the first question's values down, the second's across."""
    rows = list(read_rows(path))
    if len(rows) < 2 or len(rows[0][1]) < 2:
        raise InputError(f"{path}: expected a header of values and at least one row")
    across = rows[0][1][1:]
    table = []
    for line, row in rows[1:]:
        if len(row) != len(across) + 1:
            raise InputError(
                f"{path}, line {line}: expected {len(across) + 1} columns, got {len(row)}"
            )
        table.append([_number(cell, path, line) for cell in row[1:]])
    down = tuple(row[0] for _, row in rows[1:])
    return JointPopulation({first: down, second: tuple(across)}, np.array(table))


def from_spec(spec: str, rng: np.random.Generator) -> Population:
    """`zipf:n=100,s=1,length=6`: a shape of SHAPES with its settings, random strings for values; or
    the path of a CSV."""
    if spec.endswith(".csv"):
        return from_csv(spec)
    name, _, rest = spec.partition(":")
    if name not in SHAPES:
        raise InputError(f"expected a .csv file or a shape among {', '.join(SHAPES)}; got {spec!r}")
    settings: dict[str, float] = {}
    for item in filter(None, rest.split(",")):
        key, equals, value = item.partition("=")
        try:
            settings[key.strip()] = float(value)
        except ValueError:
            equals = ""
        if not equals or not np.isfinite(settings[key.strip()]):
            raise InputError(f"expected settings such as n=100,s=1 after {name}:, got {item!r}")
    length = int(settings.pop("length", 6))
    if "n" in settings:
        settings["n"] = int(settings["n"])
    try:
        weights = SHAPES[name](**settings)
    except TypeError:
        import inspect

        takes = ", ".join([*inspect.signature(SHAPES[name]).parameters, "length"])
        raise InputError(f"{name} takes {takes}; got {', '.join(settings)}") from None
    return Population(random_strings(len(weights), length, rng), weights)


def _drawn(weights: Floats, clients: int, rng: np.random.Generator) -> Int32s:
    tops = np.cumsum(weights)
    found = np.searchsorted(tops / tops[-1], rng.random(clients), side="right")
    return found.astype(np.int32)


def _checked(weights: Floats, name: str) -> Floats:
    """Normalised, if they can be."""
    if not np.isfinite(weights).all() or (weights < 0).any() or weights.max() == 0:
        raise InputError(f"expected {name} of 0 or more, some above 0, all finite")
    return _normalised(weights)


def _normalised(weights: NDArray[np.floating]) -> Floats:
    scaled = weights / np.max(weights)  # so that the sum of huge weights stays finite
    return np.asarray(scaled / scaled.sum(), np.float64)


def _number(cell: str, path: str | Path, line: int) -> float:
    try:
        return float(cell)
    except ValueError:
        raise InputError(f"{path}, line {line}: expected a number, got {cell!r}") from None
