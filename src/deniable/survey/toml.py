"""Reading a TOML table while collecting every mistake, each with its place and a suggestion."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

from deniable.errors import InputError

T = TypeVar("T")
REQUIRED: Any = object()
HUGE = 1e300


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


class Table:
    """A TOML table that hands out checked values, and remembers what it was never asked for."""

    def __init__(
        self, data: Mapping[str, Any], path: str, mistakes: list[str], lines: Mapping[str, int],
        name: str = "",
    ) -> None:  # fmt: skip
        self.data, self.path, self.mistakes, self.lines = data, path, mistakes, lines
        self.name = name
        self.known: list[str] = []

    def place(self, key: str) -> str:
        path = f"{self.path}.{key}".strip(".") or "survey"
        line = self.lines.get(path) or self.lines.get(self.path)
        return f"{path} (line {line})" if line else path

    def mistake(self, key: str, expected: str, got: Any) -> None:
        self.mistakes.append(f"{self.place(key)}: expected {expected}; got {got!r}")

    def attempt(self, key: str, build: Callable[[], T]) -> T | None:
        """What `build` makes, or None and its error among the mistakes."""
        try:
            return build()
        except InputError as error:
            self.mistakes.append(f"{self.place(key)}: {error}")
            return None

    def value(
        self, key: str, kind: type[T] | tuple[type, ...], expected: str, default: Any = REQUIRED,
        valid: Callable[[Any], bool] = lambda _: True,
    ) -> Any:  # fmt: skip
        """data[key] if it is of this kind and valid; else the default, or None and a mistake."""
        self.known.append(key)
        if key not in self.data:
            if default is REQUIRED:
                self.mistakes.append(f"{self.place(key)}: missing; expected {expected}")
                return None
            return default
        got = self.data[key]
        # TOML's true is not a number, though Python's True is an int.
        wrong_bool = isinstance(got, bool) and kind is not bool
        if not isinstance(got, kind) or wrong_bool or not valid(got):
            self.mistake(key, expected, got)
            return None
        return got

    def text(
        self, key: str, expected: str, default: Any = REQUIRED,
        valid: Callable[[str], bool] = lambda _: True,
    ) -> str | None:  # fmt: skip
        found: str | None = self.value(
            key, str, expected, default, lambda s: bool(s.strip()) and valid(s)
        )
        return found

    def choice(self, key: str, among: Sequence[str], default: Any = REQUIRED) -> str | None:
        expected = " or ".join(f'"{x}"' for x in among)
        got = self.data.get(key)
        if isinstance(got, str) and got not in among and (close := _close(got, among)):
            expected += f' (did you mean "{close}"?)'
        found: str | None = self.value(key, str, expected, default, lambda s: s in among)
        return found

    def integer(self, key: str, low: int, high: int, default: Any = REQUIRED) -> int | None:
        expected = f"a whole number from {low} to {high}"
        found: int | None = self.value(key, int, expected, default, lambda n: low <= n <= high)
        return found

    def number(
        self, key: str, low: float | None = None, high: float | None = None,
        above: float | None = None, default: Any = REQUIRED,
    ) -> float | None:  # fmt: skip
        def valid(x: float) -> bool:
            finite = abs(x) < HUGE
            return (
                finite
                and (low is None or high is None or low <= x <= high)
                and (above is None or x > above)
            )

        expected = f"a number above {above}" if low is None else f"a number from {low} to {high}"
        found = self.value(key, (int, float), expected, default, valid)
        return None if found is None else float(found)

    def _list(self, key: str, kind: Any, expected: str, default: Any) -> list[Any]:
        def valid(items: list[Any]) -> bool:
            return bool(items) and all(
                isinstance(x, kind) and not isinstance(x, bool) for x in items
            )

        return list(self.value(key, list, expected, default, valid) or [])

    def texts(self, key: str) -> list[str]:
        return self._list(key, str, 'a list of texts, such as ["red", "blue"]', REQUIRED)

    def integers(self, key: str, default: list[int]) -> list[int]:
        return self._list(key, int, "a list of whole numbers", default)

    def numbers(self, key: str, default: list[float]) -> list[float]:
        items = self._list(key, (int, float), "a list of numbers above 0", default)
        if any(not 0 < x < HUGE for x in items):
            self.mistake(key, "a list of numbers above 0", items)
            return default
        return [float(x) for x in items]

    def table(self, key: str) -> Table | None:
        """The table of this name, if there is one."""
        found = self.value(key, dict, "a table", None)
        return None if found is None else self._inner(key, found)

    def tables(self, key: str) -> Iterator[Table]:
        """Every table inside the table of this name."""
        for name, inner in (self.value(key, dict, "tables [questions.NAME]") or {}).items():
            if isinstance(inner, dict):
                yield self._inner(f"{key}.{name}", inner, name)
            else:
                self.mistake(f"{key}.{name}", f"a table [{key}.{name}]", inner)

    def _inner(self, key: str, data: Mapping[str, Any], name: str = "") -> Table:
        return Table(data, f"{self.path}.{key}".strip("."), self.mistakes, self.lines, name)

    def finish(self) -> None:
        """Everything that is in the file but means nothing is a mistake."""
        for key in self.data:
            if key not in self.known:
                close = _close(key, self.known)
                hint = f'did you mean "{close}"?' if close else f"it takes {', '.join(self.known)}"
                self.mistakes.append(f"{self.place(key)}: unknown setting; {hint}")


def _close(word: str, among: Sequence[str]) -> str | None:
    from difflib import get_close_matches

    return next(iter(get_close_matches(word, among, 1)), None)
