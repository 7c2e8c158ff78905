"""Check the docstrings of the public API: `python -m tools.docstrings`.

The public API is what `docs/reference/python.md` lists. Every entry follows numpydoc: a summary,
every parameter with its type, what is returned, and an example, which pytest runs. Methods and
properties may leave the example to their class. Style inside the package is checked by ruff.
"""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Iterator
from enum import Enum
from pathlib import Path

from numpydoc.validate import validate

REFERENCE = Path(__file__).parent.parent / "docs" / "reference" / "python.md"

IGNORED = {
    "ES01": "a summary that says everything needs no second paragraph",
    "GL01": "the summary starts on the line of the quotes, as everywhere in this package",
    "SA01": "a list of related functions is left to the reference's headings",
}
OF_MEMBERS = {"EX01": "the class has the example"}
OF_ENUMERATIONS = {"PR01": "nobody calls an enumeration"}
OF_PROPERTIES = {"RT01": "a property's summary says what it is", "SS05": "it names a thing"}


def public_names(reference: Path = REFERENCE) -> list[str]:
    """Return the names that the Python reference lists."""
    return re.findall(r"^::: ([\w.]+)", reference.read_text(), flags=re.MULTILINE)


def members(name: str) -> Iterator[tuple[str, dict[str, str]]]:
    """Yield an entry of the reference and its own public methods, with the rules each may break."""
    module, _, attribute = name.rpartition(".")
    entry = getattr(__import__(module, fromlist=[attribute]), attribute)
    if not inspect.isclass(entry):
        yield name, IGNORED
        return
    yield name, IGNORED | OF_ENUMERATIONS if issubclass(entry, Enum) else IGNORED
    for member, value in vars(entry).items():
        if member.startswith("_"):
            continue
        if isinstance(value, property):
            yield f"{name}.{member}", IGNORED | OF_MEMBERS | OF_PROPERTIES
        elif isinstance(value, classmethod | staticmethod) or inspect.isfunction(value):
            yield f"{name}.{member}", IGNORED | OF_MEMBERS


def problems() -> Iterator[str]:
    """Yield one line per rule that a docstring breaks."""
    for entry in public_names():
        for name, ignored in members(entry):
            for code, message in validate(name)["errors"]:
                if code not in ignored:
                    yield f"{name}: {code} {message}"


def main() -> None:
    """Print every problem, and exit with 1 if there is one."""
    lines = list(problems())
    print("\n".join(lines) or f"{len(public_names())} public names are documented.")
    sys.exit(bool(lines))


if __name__ == "__main__":
    main()
