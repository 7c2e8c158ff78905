"""The mutants that `mutants.toml` describes, found in the source files."""

from __future__ import annotations

import hashlib
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

from tools.mutants.edits import Edit, edit_of
from tools.mutants.javascript_operators import JavaScriptFunction
from tools.mutants.python_operators import PythonFunction

ROOT = Path(__file__).parents[2]
FILE = Path(__file__).with_name("mutants.toml")


@dataclass(frozen=True)
class Mutant:
    """One deliberate bug.

    Parameters
    ----------
    area : str
        Part of the project.
    file : str
        Path of the file in the repository.
    function : str
        Qualified name of the function.
    edit : Edit
        Change of the file.
    tests : tuple of str
        Arguments of pytest: the tests of which one must fail.
    equivalent : str
        Why no test can notice it; empty if one should.
    """

    area: str
    file: str
    function: str
    edit: Edit
    tests: tuple[str, ...]
    equivalent: str = ""

    @property
    def name(self) -> str:
        """What identifies the mutant."""
        short = self.file.removeprefix("src/deniable/")
        return f"{short}, {self.function}: {self.edit.operator}: {self.edit.shown}"

    def source(self, root: Path = ROOT) -> bytes:
        """Return the file with the bug."""
        return self.edit.applied((root / self.file).read_bytes())


def mutants(file: Path = FILE, root: Path = ROOT) -> list[Mutant]:
    """Return every mutant.

    Raises
    ------
    LookupError
        If a function, a piece of code or an equivalent mutant is no longer there; it names all.
    """
    data = tomllib.loads(file.read_text())
    problems: list[str] = []
    reasons = {each["mutant"]: each["reason"] for each in data.get("equivalent", [])}
    made = [
        mutant
        for area in data["area"]
        for part in area["part"]
        for mutant in _of_part(area["name"], part, data["seed"], reasons, root, problems)
    ]
    stale = reasons.keys() - {mutant.name for mutant in made}
    problems += [f"equivalent mutant is not drawn any more: {name}" for name in sorted(stale)]
    if problems:
        raise LookupError("\n".join(problems))
    return made


def _of_part(
    area: str,
    part: dict[str, Any],
    seed: int,
    reasons: dict[str, str],
    root: Path,
    problems: list[str],
) -> Iterator[Mutant]:
    """Yield the mutants of one file that have the same tests."""
    path = part["file"]

    def made(function: str, edit: Edit) -> Mutant:
        mutant = Mutant(area, path, function, edit, tuple(part["tests"]))
        return replace(mutant, equivalent=reasons.get(mutant.name, ""))

    for function, count in part.get("draw", {}).items():
        try:
            edits = function_of(root / path, function).edits()
        except (LookupError, OSError):
            problems.append(f"{path} has no function {function}")
            continue
        ranked = sorted((made(function, edit) for edit in edits), key=lambda m: _rank(seed, m.name))
        yield from ranked[:count]
    for function, before, after in part.get("write", []):
        try:
            found = function_of(root / path, function)
            start = found.source.index(before.encode(), found.start, found.stop)
        except (LookupError, OSError, ValueError):
            problems.append(f"{path} has no {before!r} in {function}")
            continue
        stop = start + len(before.encode())
        yield made(function, edit_of("written", found.source, start, stop, after))


def _rank(seed: int, name: str) -> bytes:
    """Return what decides which mutants are drawn."""
    return hashlib.sha256(f"{seed} {name}".encode()).digest()


@cache
def function_of(path: Path, name: str) -> PythonFunction | JavaScriptFunction:
    """Return a function of a file."""
    kind = JavaScriptFunction if path.suffix == ".js" else PythonFunction
    return kind(path.read_bytes(), name)
