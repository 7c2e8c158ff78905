"""Populations to draw simulated clients from: common shapes, tables, and files.

A `Population` is a set of values with weights; a `JointPopulation` is a table of weights over the
values of several questions. Both draw clients. The functions that return weights give them in
decreasing order, so the first value is the most common.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from numbers import Integral
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from deniable.columns.partition import naming
from deniable.columns.spreadsheet import read_rows
from deniable.errors import InputError, check_number, did_you_mean
from deniable.formatting import counted
from deniable.kernels.array_types import Floats, Int32s
from deniable.kernels.random_generator import Randomness, generator_of
from deniable.simulation.coded import Coded, Levels

LETTERS = "abcdefghijklmnopqrstuvwxyz"
MAX_VALUES, MAX_CHARACTERS = 10_000_000, 100_000_000
"""Largest number of values of a population, and of characters of all random strings together."""
MAX_CELLS = 100_000_000
"""Largest number of cells of a table."""


def zipf(n: int = 100, s: float = 1.0) -> Floats:
    """Return Zipf's weights: the value of rank r has weight ∝ 1/r^s.

    Parameters
    ----------
    n : int, default 100
        Number of values.
    s : float, default 1.0
        Exponent; larger exponents give a more uneven population.

    Returns
    -------
    ndarray of float64, shape (n,)
        Weights in decreasing order, which add up to 1.

    Examples
    --------
    >>> zipf(3).round(3).tolist()
    [0.545, 0.273, 0.182]
    """
    _check_size(n)
    check_settings(s=s)
    return _normalised(np.arange(1, n + 1, dtype=float) ** -s)


def power(n: int = 100, exponent: float = 20.0, floor: float = 0.0) -> Floats:
    """Return weights ∝ i^exponent for i = n … 1, with a constant added.

    The weights are normalised, `floor` is added to each, and they are normalised again. The paper's
    "Zipfian" population has exponent 20; its simulation of unknown dictionaries adds 0.001.

    Parameters
    ----------
    n : int, default 100
        Number of values.
    exponent : float, default 20.0
        Exponent; larger exponents give a more uneven population.
    floor : float, default 0.0
        Constant that is added to every normalised weight.

    Returns
    -------
    ndarray of float64, shape (n,)
        Weights in decreasing order, which add up to 1.

    Examples
    --------
    >>> power(3, exponent=2).round(3).tolist()
    [0.643, 0.286, 0.071]
    """
    _check_size(n)
    check_settings(exponent=exponent, floor=floor)
    return _normalised(_normalised((np.arange(n, 0, -1) / n) ** exponent) + floor)


def geometric(n: int = 100, p: float = 0.3) -> Floats:
    """Return geometric weights: the value of rank r has weight ∝ (1 − p)^r.

    Parameters
    ----------
    n : int, default 100
        Number of values; the distribution is truncated after them.
    p : float, default 0.3
        Success probability of the geometric distribution.

    Returns
    -------
    ndarray of float64, shape (n,)
        Weights in decreasing order, which add up to 1.

    Examples
    --------
    >>> geometric(3, p=0.5).round(3).tolist()
    [0.571, 0.286, 0.143]
    """
    _check_size(n)
    check_settings(p=p)
    if p >= 1:
        raise InputError(f"p must be below 1, not {p:g}")
    return _normalised((1 - p) ** np.arange(n))


def step(n: int = 100) -> Floats:
    """Return a step function: four weights of 0.12, four of 0.06, and all others equal.

    This is the population of the paper's Appendix B.

    Parameters
    ----------
    n : int, default 100
        Number of values, at least 9.

    Returns
    -------
    ndarray of float64, shape (n,)
        Weights in decreasing order, which add up to 1.

    Raises
    ------
    InputError
        If n is less than 9.

    Examples
    --------
    >>> step(9).round(3).tolist()
    [0.12, 0.12, 0.12, 0.12, 0.06, 0.06, 0.06, 0.06, 0.28]
    """
    _check_size(n, at_least=9)
    return np.array([0.12] * 4 + [0.06] * 4 + [0.28 / (n - 8)] * (n - 8))


def uniform(n: int = 100) -> Floats:
    """Return equal weights.

    Parameters
    ----------
    n : int, default 100
        Number of values.

    Returns
    -------
    ndarray of float64, shape (n,)
        Weights of 1/n.

    Examples
    --------
    >>> uniform(4).tolist()
    [0.25, 0.25, 0.25, 0.25]
    """
    _check_size(n)
    return np.full(n, 1 / n)


def exponential(n: int = 100, scale: float = 25.0) -> Floats:
    """Return exponential weights: the value of rank r has weight ∝ exp(−r/scale).

    Parameters
    ----------
    n : int, default 100
        Number of values; the distribution is truncated after them.
    scale : float, default 25.0
        Number of ranks over which weights decrease by the factor e.

    Returns
    -------
    ndarray of float64, shape (n,)
        Weights in decreasing order, which add up to 1.

    Examples
    --------
    >>> exponential(3, scale=1).round(3).tolist()
    [0.665, 0.245, 0.09]
    """
    _check_size(n)
    check_settings(scale=scale)
    if not scale:
        raise InputError("scale must be above 0, not 0")
    return _normalised(np.exp(-np.arange(n) / scale))


_SHAPES = (zipf, power, geometric, step, uniform, exponential)
SHAPES: dict[str, Callable[..., Floats]] = {shape.__name__: shape for shape in _SHAPES}
"""Functions that return weights, by name."""


@dataclass(frozen=True, eq=False)
class Population:
    """Values of one question and how common each is.

    Parameters
    ----------
    values : tuple
        Distinct values.
    weights : ndarray of float64, shape (len(values),)
        Non-negative weights; they are normalised so that they add up to 1.

    Raises
    ------
    InputError
        If there are not as many weights as values, or a weight is negative or infinite.

    Examples
    --------
    >>> population = Population(("apple", "pear"), np.array([3, 1]))
    >>> population.share("pear")
    0.25
    >>> len(population.draw(1000, np.random.default_rng(1)))
    1000
    """

    values: Levels
    weights: Floats

    def __post_init__(self) -> None:
        w = _numbers(self.weights, "weights")
        if len(self.values) != len(w) or len(w) == 0:
            raise InputError(
                f"a population needs one weight per value and at least one value, got {len(w)} "
                f"weights and {len(self.values)} values"
            )
        object.__setattr__(self, "weights", _normalised(w, "weights"))

    def __repr__(self) -> str:
        return f"<Population of {counted(len(self), 'value')}>"

    def __len__(self) -> int:
        return len(self.values)

    def draw(self, clients: int, rng: Randomness = None) -> Coded:
        """Draw the values of independent clients.

        Parameters
        ----------
        clients : int
            Number of clients.
        rng : None, int or numpy.random.Generator, default None
            Source of randomness; not a seed that is also given to `simulate`, because answers
            would depend on the noise.

        Returns
        -------
        Coded
            One value per client.
        """
        return Coded(self.values, _drawn(self.weights, clients, rng))

    def share(self, value: object) -> float:
        """Return the probability of a value.

        Parameters
        ----------
        value : object
            Any value, also one that is not in the population.

        Returns
        -------
        float
            Share of clients with this value; 0 for a value that is not in the population.
        """
        return float(self.weights[self.values.index(value)]) if value in self.values else 0.0


@dataclass(frozen=True, eq=False)
class JointPopulation:
    """Values of several questions and how common each combination is.

    Parameters
    ----------
    values : mapping of str to tuple
        Distinct values per question.
    table : ndarray of float64
        Non-negative weights with one axis per question, in the order of `values`; they are
        normalised so that they add up to 1.

    Raises
    ------
    InputError
        If the shape of the table does not fit the values, or a weight is negative or infinite.

    Examples
    --------
    >>> values = {"browser": ("Firefox", "Safari"), "ads": (True, False)}
    >>> population = JointPopulation(values, np.array([[3, 1], [0, 4]]))
    >>> population.margin("ads").weights.round(3).tolist()
    [0.375, 0.625]
    >>> sorted(population.draw(10, np.random.default_rng(1)))
    ['ads', 'browser']
    """

    values: Mapping[str, Levels]
    table: Floats

    def __post_init__(self) -> None:
        t = _numbers(self.table, "a table")
        shape = tuple(len(v) for v in self.values.values())
        if t.shape != shape or t.size == 0:
            raise InputError(
                f"a joint population needs a table with one axis per question: the values have "
                f"shape {shape}, the table has {t.shape}"
            )
        object.__setattr__(self, "table", _normalised(t, "table entries"))

    def __repr__(self) -> str:
        shape = " × ".join(map(str, self.table.shape))
        return f"<JointPopulation {' × '.join(self.values)}: {shape} values>"

    def draw(self, clients: int, rng: Randomness = None) -> dict[str, Coded]:
        """Draw the values of independent clients for every question.

        Parameters
        ----------
        clients : int
            Number of clients.
        rng : None, int or numpy.random.Generator, default None
            Source of randomness; not a seed that is also given to `simulate`, because answers
            would depend on the noise.

        Returns
        -------
        dict of str to Coded
            One value per client for every question.
        """
        cells = _drawn(self.table.ravel(), clients, rng)
        codes = np.unravel_index(cells, self.table.shape)
        return {
            name: Coded(values, code.astype(np.int32))
            for (name, values), code in zip(self.values.items(), codes, strict=True)
        }

    def margin(self, question: str) -> Population:
        """Return the population of one question.

        Parameters
        ----------
        question : str
            Name of the question.

        Returns
        -------
        Population
            Marginal distribution: the table summed over all other questions.
        """
        axis = list(self.values).index(question)
        others = tuple(i for i in range(self.table.ndim) if i != axis)
        return Population(self.values[question], self.table.sum(axis=others))


def correlated(*weights: Floats, strength: float) -> Floats:
    """Return a joint table with given margins: independent at strength 0, comonotone at 1.

    The table is the mixture (1 − strength) · product of the margins + strength · comonotone
    coupling of the margins.

    Parameters
    ----------
    *weights : ndarray of float64
        Two or more margins.
    strength : float
        Share of the comonotone coupling, from 0 to 1.

    Returns
    -------
    ndarray of float64
        Table with one axis per margin.

    Raises
    ------
    InputError
        If there are fewer than two margins or the strength is outside 0 to 1.

    Examples
    --------
    >>> correlated(uniform(2), uniform(2), strength=0.5)
    array([[0.375, 0.125],
           [0.125, 0.375]])
    """
    if len(weights) < 2 or not 0 <= strength <= 1:
        raise InputError(
            f"a correlated table needs two or more margins and a strength from 0 to 1, got "
            f"{len(weights)} margins and strength {strength}"
        )
    if (cells := prod(map(len, weights))) > MAX_CELLS:
        raise InputError(f"a table has at most {MAX_CELLS:,} cells, not {cells:,}")
    independent = weights[0]
    for w in weights[1:]:
        independent = np.multiply.outer(independent, w)
    comonotone = np.zeros([len(w) for w in weights])
    # One uniform number picks the quantile of every variable, so the cells change only where the
    # cumulative weights of some margin do.
    tops = [np.cumsum(w) / w.sum() for w in weights]
    breaks = np.unique(np.concatenate([[0.0], *tops]))
    middles, sizes = (breaks[1:] + breaks[:-1]) / 2, np.diff(breaks)
    places = tuple(np.minimum(np.searchsorted(t, middles), len(t) - 1) for t in tops)
    np.add.at(comonotone, places, sizes)
    return (1 - strength) * independent + strength * comonotone


def contingency(table: ArrayLike, **values: Sequence[object]) -> JointPopulation:
    """Return the joint population of a contingency table.

    Parameters
    ----------
    table : array_like
        Counts or shares with one axis per question.
    **values : sequence
        Values of each question, by its name, in the order of the axes.

    Returns
    -------
    JointPopulation
        Population with these shares.

    Examples
    --------
    >>> contingency([[3, 1], [0, 4]], browser=["a", "b"], ads=[True, False]).table.tolist()
    [[0.375, 0.125], [0.0, 0.5]]
    """
    return JointPopulation({k: tuple(v) for k, v in values.items()}, _numbers(table, "a table"))


def random_strings(
    n: int, length: int, rng: Randomness = None, alphabet: str = LETTERS
) -> tuple[str, ...]:
    """Draw distinct random strings of one length.

    Parameters
    ----------
    n : int
        Number of strings.
    length : int
        Number of characters per string.
    rng : None, int or numpy.random.Generator, default None
        Source of randomness: a generator, a seed, or None for a new seed.
    alphabet : str, default "abcdefghijklmnopqrstuvwxyz"
        Characters to draw from.

    Returns
    -------
    tuple of str
        Strings that all differ.

    Raises
    ------
    InputError
        If the alphabet does not have that many strings of this length.

    Examples
    --------
    >>> strings = random_strings(3, 5, np.random.default_rng(1))
    >>> len(set(strings)), {len(s) for s in strings}
    (3, {5})
    """
    if not isinstance(length, Integral) or length < 0:
        raise InputError(f"length must be a whole number from 0, not {length!r:.80}")
    if n * length > MAX_CHARACTERS:
        raise InputError(
            f"{n:,} random strings of length {float(length):,.15g} have more than "
            f"{MAX_CHARACTERS:,} characters in total: choose fewer or shorter strings"
        )
    if n > len(alphabet) ** min(length, 64):  # no n is larger than a power of 64
        raise InputError(
            f"there are only {len(alphabet) ** length} different strings of length {length}, got "
            f"n = {n}; use longer strings or a larger alphabet"
        )
    rng = generator_of(rng)
    letters = np.array(list(alphabet))
    strings: dict[str, None] = {}
    while len(strings) < n:
        for row in letters[rng.integers(0, len(alphabet), (n, length))]:
            strings.setdefault("".join(row))
    return tuple(strings)[:n]


def from_csv(path: str | Path) -> Population:
    r"""Read a population from a CSV file with the header `value,weight`.

    Parameters
    ----------
    path : str or Path
        File to read.

    Returns
    -------
    Population
        One value per row.

    Raises
    ------
    InputError
        If the header or a row has another form.

    Examples
    --------
    >>> from tempfile import NamedTemporaryFile
    >>> with NamedTemporaryFile("w", suffix=".csv") as file:
    ...     _ = file.write("value,weight\napple,3\npear,1\n")
    ...     file.flush()
    ...     from_csv(file.name).weights.tolist()
    [0.75, 0.25]
    """
    rows = list(read_rows(path))
    if not rows or [c.strip() for c in rows[0][1]] != ["value", "weight"]:
        got = ",".join(rows[0][1]) if rows else "an empty file"
        raise InputError(f"{path}: expected the header value,weight; got {got}")
    values, weights = [], []
    for line, row in rows[1:]:
        if len(row) != 2:
            raise InputError(f"{path}, line {line}: expected value,weight; got {','.join(row)}")
        values.append(row[0])
        weights.append(_number(row[1], path, line))
    with naming(path):
        return Population(tuple(values), np.array(weights))


def table_from_csv(path: str | Path, first: str, second: str) -> JointPopulation:
    r"""Read a contingency table of two questions from a CSV file.

    The header has the values of the second question after an empty cell; each row has a value of
    the first question, then one weight per column.

    Parameters
    ----------
    path : str or Path
        File to read.
    first : str
        Name of the question whose values are the rows.
    second : str
        Name of the question whose values are the columns.

    Returns
    -------
    JointPopulation
        Population with these shares.

    Raises
    ------
    InputError
        If the file is not a table of numbers.

    Examples
    --------
    >>> from tempfile import NamedTemporaryFile
    >>> with NamedTemporaryFile("w", suffix=".csv") as file:
    ...     _ = file.write(",yes,no\nFirefox,3,1\nSafari,0,4\n")
    ...     file.flush()
    ...     table_from_csv(file.name, "browser", "ads").table.tolist()
    [[0.375, 0.125], [0.0, 0.5]]
    """
    rows = list(read_rows(path))
    if len(rows) < 2 or len(rows[0][1]) < 2:
        raise InputError(
            f"{path}: expected a header with the values of {second} and at least one row"
        )
    across = rows[0][1][1:]
    table = []
    for line, row in rows[1:]:
        if len(row) != len(across) + 1:
            raise InputError(
                f"{path}, line {line}: expected {len(across) + 1} columns, got {len(row)}"
            )
        table.append([_number(cell, path, line) for cell in row[1:]])
    down = tuple(row[0] for _, row in rows[1:])
    with naming(path):
        return JointPopulation({first: down, second: tuple(across)}, np.array(table))


def from_spec(spec: str, rng: Randomness = None) -> Population:
    """Return the population that a short text describes.

    Parameters
    ----------
    spec : str
        Name of a shape and its settings, as "zipf:n=100,s=1,length=6"; the values are random
        strings of `length` characters (6 by default). Or the path of a CSV file; see `from_csv`.
    rng : None, int or numpy.random.Generator, default None
        Source of randomness for the strings.

    Returns
    -------
    Population
        Values and weights.

    Raises
    ------
    InputError
        If the shape is unknown or does not have one of the settings.

    Examples
    --------
    >>> population = from_spec("zipf:n=3,length=4", np.random.default_rng(1))
    >>> population.weights.round(3).tolist()
    [0.545, 0.273, 0.182]
    """
    if spec.endswith(".csv"):
        return from_csv(spec)
    name, settings = parsed_spec(spec, SHAPES, "n=100,s=1", ("length",))
    for key in ("n", "length"):
        if key in settings and settings[key] == int(settings[key]):
            settings[key] = int(settings[key])
    length = settings.pop("length", 6)
    with naming(spec):
        weights = SHAPES[name](**settings)
        return Population(random_strings(len(weights), length, rng), weights)


def parsed_spec(
    spec: str,
    shapes: Mapping[str, Callable[..., Floats]],
    example: str,
    others: Sequence[str] = (),
) -> tuple[str, dict[str, Any]]:
    """Return the name of a shape and its settings; `others` are settings that all shapes have."""
    name, _, text = spec.partition(":")
    if name not in shapes:
        raise InputError(
            f"expected a .csv file or a shape ({', '.join(shapes)}), got {spec!r}."
            f"{did_you_mean(name, shapes)}"
        )
    settings: dict[str, float] = {}
    for item in filter(None, text.split(",")):
        key, equals, value = item.partition("=")
        try:
            settings[key.strip()] = float(value)
        except ValueError:
            equals = ""
        if not equals or not np.isfinite(settings[key.strip()]):
            raise InputError(f"expected settings such as {example} after {name}:, got {item!r}")
    known = [*inspect.signature(shapes[name]).parameters, *others]
    for key in settings:
        if key not in known:
            raise InputError(
                f"{name} has the settings {', '.join(known)}; got {key}.{did_you_mean(key, known)}"
            )
    return name, settings


def check_settings(**settings: float) -> None:
    """Raise InputError if a setting of a shape is negative or not a number."""
    for name, value in settings.items():
        check_number(name, value)
        if not 0 <= value < np.inf:
            raise InputError(f"{name} must be a number from 0, not {value:g}")


def _check_size(n: int, at_least: int = 1) -> None:
    """Raise InputError unless n is a possible number of values."""
    if isinstance(n, bool) or not isinstance(n, Integral) or not at_least <= n <= MAX_VALUES:
        raise InputError(
            f"n must be a whole number from {at_least} to {MAX_VALUES:,}, not {n!r:.80}"
        )


def _drawn(weights: Floats, clients: int, rng: Randomness) -> Int32s:
    """Draw int32[clients] indices with these probabilities."""
    check_number("clients", clients)
    if clients < 0:
        raise InputError(f"clients must be at least 0, got {clients}")
    tops = np.cumsum(weights)
    indices = np.searchsorted(tops / tops[-1], generator_of(rng).random(clients), side="right")
    return indices.astype(np.int32)


def _numbers(given: ArrayLike, name: str) -> Floats:
    """Return an array of numbers; raise InputError if it contains anything else, or is ragged."""
    try:
        return np.asarray(given, np.float64)
    except (TypeError, ValueError):
        raise InputError(f"{name} must consist of numbers, in rows of equal length") from None


def _normalised(weights: NDArray[np.floating], name: str = "weights") -> Floats:
    """Return weights that add up to 1, or raise InputError if they are no weights."""
    if not np.isfinite(weights).all() or (weights < 0).any() or not weights.any():
        raise InputError(f"{name} must be finite and at least 0, and one must be positive")
    scaled = weights / np.max(weights)  # so that the sum of huge weights stays finite
    return np.asarray(scaled / scaled.sum(), np.float64)


def _number(cell: str, path: str | Path, line: int) -> float:
    """Return the number in a cell of a CSV file."""
    try:
        return float(cell)
    except ValueError:
        raise InputError(f"{path}, line {line}: expected a number, got {cell!r}") from None
