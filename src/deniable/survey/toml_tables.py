"""Read TOML tables and collect all mistakes, each with its place and a suggestion."""

from __future__ import annotations

import datetime as dt
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from deniable.errors import InputError, did_you_mean
from deniable.mechanisms.base import Settings

T = TypeVar("T")
REQUIRED = object()
"""Default of a setting that must not be left out."""
MAX_NUMBER = 1e300


@dataclass(frozen=True)
class Setting:
    """What a key of a table accepts.

    Parameters
    ----------
    expected : str
        The accepted values in words; completes "must be …".
    valid : callable
        Returns whether a value is accepted.
    default : object, default REQUIRED
        Value if the key is left out.
    among : tuple of str, default ()
        The accepted words, if there are only a few.
    """

    expected: str
    valid: Callable[..., bool]
    default: object = REQUIRED
    among: tuple[str, ...] = ()


def text(
    expected: str, default: object = REQUIRED, *, fits: Callable[[str], object] = str.strip
) -> Setting:
    """Return a setting that accepts texts that are not blank."""
    return Setting(expected, lambda x: isinstance(x, str) and bool(x.strip() and fits(x)), default)


def one_of(*among: str, default: object = REQUIRED) -> Setting:
    """Return a setting that accepts one of these words."""
    *others, last = (f'"{word}"' for word in among)
    expected = f"{', '.join(others)} or {last}"
    return Setting(expected, lambda x: x in among, default, among)


def integer(low: int, high: int, default: object = REQUIRED) -> Setting:
    """Return a setting that accepts integers from `low` to `high`."""
    valid = lambda x: _is_number(x, int) and low <= x <= high  # noqa: E731
    return Setting(f"an integer from {low} to {high}", valid, default)


def number(expected: str, fits: Callable[[float], bool]) -> Setting:
    """Return a setting that accepts numbers and may be left out."""
    valid = lambda x: _is_number(x) and abs(x) < MAX_NUMBER and fits(x)  # noqa: E731
    return Setting(f"a number {expected}".rstrip(), valid, None)


def list_of(expected: str, fits: Callable[..., bool], default: object = REQUIRED) -> Setting:
    """Return a setting that accepts lists that are not empty."""
    valid = lambda x: isinstance(x, list) and bool(x) and all(map(fits, x))  # noqa: E731
    return Setting(f"a list of {expected}", valid, default)


def numbers(default: Sequence[float]) -> Setting:
    """Return a setting that accepts lists of positive numbers."""
    return list_of("numbers above 0", lambda x: _is_number(x) and 0 < x < MAX_NUMBER, default)


def any_numbers(default: object = REQUIRED) -> Setting:
    """Return a setting that accepts lists of numbers."""
    fits = lambda x: _is_number(x) and abs(x) < MAX_NUMBER  # noqa: E731
    return list_of("numbers, such as [0, 10, 20, 50]", fits, default)


def integers(default: Sequence[int]) -> Setting:
    """Return a setting that accepts lists of integers."""
    return list_of("integers", lambda x: _is_number(x, int), default)


texts = list_of('strings, such as ["red", "blue"]', lambda x: isinstance(x, str))
flag = Setting("true or false", lambda x: isinstance(x, bool), default=False)
day = Setting("a date without quotes or time, such as 2027-12-31", lambda x: type(x) is dt.date)
inner_table = Setting("a table", lambda x: isinstance(x, dict), None)


def _is_number(x: object, *kinds: type) -> bool:
    """Return whether `x` is of these types; unlike for Python, true is no number in TOML."""
    return isinstance(x, kinds or (int, float)) and not isinstance(x, bool)


def as_written(value: object) -> str:
    """Return a TOML value about as it is written in a file, at most 100 characters.

    >>> as_written("red"), as_written(True), as_written([1, 2])
    ('"red"', 'true', '[1, 2]')
    """
    if isinstance(value, dt.date | dt.time):
        return value.isoformat()
    return json.dumps(value, default=str, ensure_ascii=False)[:100]


def line_numbers(text: str) -> dict[str, int]:
    """Return the line of each dotted path that a plain `[table]` or `key =` line defines."""
    lines: dict[str, int] = {}
    table = ""
    for number, line in enumerate(text.splitlines(), 1):
        if header := re.match(r"\s*\[([^\[\]]+)\]\s*(#.*)?$", line):
            table = re.sub(r"\s|\"", "", header[1])
            lines.setdefault(table, number)
        elif key := re.match(r"\s*([\w\"-]+)\s*=", line):
            lines.setdefault(f"{table}.{key[1]}".strip('."'), number)
    return lines


@dataclass
class Table:
    """A TOML table that checks its values and remembers which keys were read.

    Parameters
    ----------
    data : dict
        The parsed table.
    path : str
        Its dotted path in the file; empty for the root.
    mistakes : list of str
        All mistakes of the file so far; shared by all its tables.
    lines : mapping
        Line numbers by dotted path.
    name : str, default ""
        Last part of the path, for tables whose name is chosen by the user.
    """

    data: Settings
    path: str
    mistakes: list[str]
    lines: Mapping[str, int]
    name: str = ""
    known: list[str] = field(default_factory=list)

    def mistake(self, key: str, message: object) -> None:
        """Add a mistake at this key; at the table itself if the key is empty."""
        path = f"{self.path}.{key}".strip(".") or "survey"
        line = self.lines.get(path) or self.lines.get(self.path)
        where = f"{path} (line {line})" if line else path
        end = "" if str(message).endswith((".", "?")) else "."
        self.mistakes.append(f"{where}: {message}{end}")

    def attempt(self, key: str, build: Callable[[], T]) -> T | None:
        """Return what `build` returns; on InputError add the mistake and return None."""
        try:
            return build()
        except InputError as error:
            self.mistake(key, error)
            return None

    def read(self, settings: Mapping[str, Setting]) -> Settings:
        """Return the values of these settings: the default if left out, None if invalid."""
        return {key: self._value(key, setting) for key, setting in settings.items()}

    def _value(self, key: str, setting: Setting) -> object:
        """Return the value of one setting, as `read` does."""
        self.known.append(key)
        if key not in self.data:
            if setting.default is REQUIRED:
                self.mistake(key, f"missing; must be {setting.expected}")
                return None
            return setting.default
        value: object = self.data[key]
        if setting.valid(value):
            return value
        hint = did_you_mean(value, setting.among)
        self.mistake(key, f"must be {setting.expected}, not {as_written(value)}.{hint}")
        return None

    def inner(self, key: str, data: Settings, name: str = "") -> Table:
        """Return the table under this key."""
        return Table(data, f"{self.path}.{key}".strip("."), self.mistakes, self.lines, name)

    def tables(self, key: str) -> Iterator[Table]:
        """Yield every table inside the table under this key."""
        setting = Setting(f"tables [{key}.NAME]", lambda x: isinstance(x, dict))
        for name, data in (self.read({key: setting})[key] or {}).items():
            if isinstance(data, dict):
                yield self.inner(f"{key}.{name}", data, name)
            else:
                self.mistake(
                    f"{key}.{name}", f"must be a table [{key}.{name}], not {as_written(data)}"
                )

    def finish(self, noun: str) -> None:
        """Add a mistake for every key that was never read; `noun` says what the table describes."""
        for key in self.data:
            if key not in self.known:
                known = f" Its settings are {', '.join(self.known)}."
                hint = did_you_mean(key, self.known) or known
                self.mistake(key, f"unknown setting of a {noun}.{hint}")
