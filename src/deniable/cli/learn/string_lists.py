"""Lists of strings as people keep them: candidates to look for, words to search with."""

from __future__ import annotations

from pathlib import Path

from deniable.errors import InputError


def read_strings(path: Path) -> list[str]:
    """The strings of a file: a line each; the column `value` of a CSV; or a result in JSON."""
    if path.suffix == ".csv":
        return [row[0] for row in _columns(path, ("value",))]
    if path.suffix == ".json":
        return _of_result(path)
    strings = [line for line in _text(path).replace("\r\n", "\n").split("\n") if line]
    if not strings:
        raise InputError(f"{path} is empty: expected a string on each line")
    return strings


def read_words(path: Path) -> dict[str, float]:
    """Words and weights: a word a line, or the columns `value,weight` of a CSV."""
    if path.suffix != ".csv":
        return dict.fromkeys(read_strings(path), 1.0)
    try:
        return {word: float(weight) for word, weight in _columns(path, ("value", "weight"))}
    except ValueError as error:
        raise InputError(f"{path}: expected weights that are numbers: {error}") from None


def _columns(path: Path, names: tuple[str, ...]) -> list[list[str]]:
    from deniable.columns.spreadsheet import read_rows

    rows = read_rows(path)
    _, header = next(rows, (0, []))
    if missing := [name for name in names if name not in header]:
        raise InputError(f"{path}: expected a column {missing[0]!r} in the header, got {header}")
    places = [header.index(name) for name in names]
    chosen = []
    for line, row in rows:
        if len(row) != len(header):
            raise InputError(f"{path}, line {line}: expected {len(header)} cells, got {len(row)}")
        chosen.append([row[place] for place in places])
    return chosen


def _of_result(path: Path) -> list[str]:
    from deniable.results import Discovery, Marginal, Result

    result = Result.from_json(_text(path))
    if isinstance(result, Discovery):
        return list(result.strings)
    if isinstance(result, Marginal):
        labels = result.labels or ()
        return [name for name, there in zip(labels, result.detected, strict=True) if there]
    raise InputError(f"{path}: expected what decode or discover found, got {type(result).__name__}")


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(f"{path} is not UTF-8 text: {error}") from None
