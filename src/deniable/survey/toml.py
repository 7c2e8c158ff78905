"""Reading a TOML table while collecting every mistake, each with its place and a suggestion."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from deniable.errors import InputError, did_you_mean
from deniable.mechanisms.base import Settings

T = TypeVar("T")
REQUIRED = object()
HUGE = 1e300


@dataclass(frozen=True)
class Setting:
    """What may stand under a key: in words, as a test, and where the key is left out."""

    expected: str
    valid: Callable[..., bool]
    default: object = REQUIRED
    among: tuple[str, ...] = ()
    """The words that are allowed, where there are few."""


def text(
    expected: str, default: object = REQUIRED, *, fits: Callable[[str], object] = str.strip
) -> Setting:
    """A text that is not blank."""
    return Setting(expected, lambda x: isinstance(x, str) and bool(x.strip() and fits(x)), default)


def one_of(*among: str, default: object = REQUIRED) -> Setting:
    """One of these words."""
    return Setting(" or ".join(f'"{x}"' for x in among), lambda x: x in among, default, among)


def whole(low: int, high: int, default: object = REQUIRED) -> Setting:
    """An integer."""
    valid = lambda x: _is_number(x, int) and low <= x <= high  # noqa: E731
    return Setting(f"a whole number from {low} to {high}", valid, default)


def number(expected: str, fits: Callable[[float], bool]) -> Setting:
    """A number that may be left out."""
    valid = lambda x: _is_number(x) and abs(x) < HUGE and fits(x)  # noqa: E731
    return Setting(f"a number {expected}", valid, None)


def list_of(expected: str, fits: Callable[..., bool], default: object = REQUIRED) -> Setting:
    """A list that is not empty."""
    valid = lambda x: isinstance(x, list) and bool(x) and all(map(fits, x))  # noqa: E731
    return Setting(f"a list of {expected}", valid, default)


def numbers(default: Sequence[float]) -> Setting:
    """A list of numbers above 0."""
    return list_of("numbers above 0", lambda x: _is_number(x) and 0 < x < HUGE, default)


def integers(default: Sequence[int]) -> Setting:
    """A list of integers."""
    return list_of("whole numbers", lambda x: _is_number(x, int), default)


texts = list_of('texts, such as ["red", "blue"]', lambda x: isinstance(x, str))
flag = Setting("true or false", lambda x: isinstance(x, bool), default=False)
day = Setting(
    "a day without a time, such as 2027-12-31: the last on which clients answer",
    lambda x: type(x) is dt.date,
)
inner_table = Setting("a table", lambda x: isinstance(x, dict), None)


def _is_number(x: object, *kinds: type) -> bool:
    """Whether it is of these kinds. TOML's true is not a number, though Python's True is an int."""
    return isinstance(x, kinds or (int, float)) and not isinstance(x, bool)


def line_numbers(text: str) -> dict[str, int]:
    """Dotted path → line, for plain `[table]` and `key =` lines, which is how surveys look."""
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
    """A TOML table that hands out checked values, and remembers what it was never asked for."""

    data: Settings
    path: str
    mistakes: list[str]
    lines: Mapping[str, int]
    name: str = ""

    def __post_init__(self) -> None:
        self.known: list[str] = []

    def mistake(self, key: str, says: object) -> None:
        """Add a mistake at this key."""
        path = f"{self.path}.{key}".strip(".") or "survey"
        line = self.lines.get(path) or self.lines.get(self.path)
        self.mistakes.append(f"{path} (line {line}): {says}" if line else f"{path}: {says}")

    def attempt(self, key: str, build: Callable[[], T]) -> T | None:
        """What `build` makes, or None and its error among the mistakes."""
        try:
            return build()
        except InputError as error:
            self.mistake(key, error)
            return None

    def read(self, settings: Mapping[str, Setting]) -> Settings:
        """The values of these settings: defaults for those left out, None for mistakes."""
        return {key: self._value(key, setting) for key, setting in settings.items()}

    def _value(self, key: str, setting: Setting) -> object:
        self.known.append(key)
        if key not in self.data:
            if setting.default is REQUIRED:
                self.mistake(key, f"missing; expected {setting.expected}.")
                return None
            return setting.default
        got: object = self.data[key]
        if setting.valid(got):
            return got
        hint = did_you_mean(got, setting.among)
        self.mistake(key, f"expected {setting.expected}; got {got!r}.{hint}")
        return None

    def inner(self, key: str, data: Settings, name: str = "") -> Table:
        """The table inside this one."""
        return Table(data, f"{self.path}.{key}".strip("."), self.mistakes, self.lines, name)

    def tables(self, key: str) -> Iterator[Table]:
        """Every table inside the table of this name."""
        expected = Setting(f"tables [{key}.NAME]", lambda x: isinstance(x, dict))
        for name, data in (self.read({key: expected})[key] or {}).items():
            if isinstance(data, dict):
                yield self.inner(f"{key}.{name}", data, name)
            else:
                self.mistake(f"{key}.{name}", f"expected a table [{key}.{name}]; got {data!r}")

    def finish(self) -> None:
        """Everything that is in the file but means nothing is a mistake."""
        for key in self.data:
            if key not in self.known:
                hint = did_you_mean(key, self.known) or f" It takes {', '.join(self.known)}."
                self.mistake(key, f"unknown setting.{hint}")
