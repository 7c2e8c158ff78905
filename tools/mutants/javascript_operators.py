"""Mutation operators for functions in JavaScript, on its text.

There is no parser here. Strings and comments are masked, and the code writes spaces around binary
operators, so that they can be told from other uses of the same characters.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from tools.mutants.edits import Edit, edit_of, numbered

MASKED = re.compile(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\])*"|`(?:\\.|[^`\\])*`', re.DOTALL)
OPERATORS = {
    "<": ("<=", ">="), "<=": ("<", ">"), ">": (">=", "<="), ">=": (">", "<"),
    "===": ("!==",), "!==": ("===",), "&&": ("||",), "||": ("&&",), "+": ("-",), "-": ("+",),
    "*": ("+",), "/": ("*",), "%": ("/",), ">>": ("<<",), "<<": (">>",), "&": ("|",), "|": ("&",),
    "^": ("|",), "+=": ("-=",), "-=": ("+=",), "|=": ("&=",), "&=": ("|=",),
}  # fmt: skip
BINARY = re.compile(rf" ({'|'.join(map(re.escape, sorted(OPERATORS, key=len, reverse=True)))}) ")
NUMBER = re.compile(r"(?<![\w.\-\"])(\d+)(n?)(?![\w.])")
OPPOSITES = {
    "Math.min": "Math.max",
    "Math.max": "Math.min",
    ".every(": ".some(",
    ".some(": ".every(",
}
DROPPED = re.compile(r"(?<=\n)[ ]+((?:await )?[\w.]+\([^\n]*\);)(?=\n)")
CONDITION = re.compile(r"\b(?:if|while) \(")
NEGATION = re.compile(r"!(?=[\w(])")
CLOSING = {"(": ")", "{": "}", "[": "]"}


class JavaScriptFunction:
    """A function of a file, also an arrow function, by its name; KeyError if there is none."""

    def __init__(self, source: bytes, name: str) -> None:
        self.source = source
        self._whole = source.decode()
        self._code = MASKED.sub(lambda found: re.sub(r"[^\n]", " ", found[0]), self._whole)
        found = re.search(
            rf"\bfunction {re.escape(name)}\(|\bconst {re.escape(name)} =", self._code
        )
        if found is None:
            raise KeyError(name)
        if found[0].startswith("function"):
            begin = self._code.index("{", self._matching(found.end() - 1))
            end = self._matching(begin)
        else:
            begin, end = found.end(), self._code.index(";\n", found.end())
        self.start, self.stop = (len(self._whole[:at].encode()) for at in (begin, end))
        self._begin, self._end = begin, end

    def edits(self) -> list[Edit]:
        """Return every edit that an operator makes of the function."""
        return numbered(self._all())

    def _all(self) -> Iterator[Edit]:
        for found in BINARY.finditer(self._code, self._begin, self._end):
            for other in OPERATORS[found[1]]:
                yield self._replaced("operator changed", *found.span(1), other)
        for found in NUMBER.finditer(self._code, self._begin, self._end):
            yield self._replaced(
                "constant changed", *found.span(), f"{int(found[1]) + 1}{found[2]}"
            )
        for name, opposite in OPPOSITES.items():
            for found in re.finditer(re.escape(name), self._code[: self._end]):
                if found.start() >= self._begin:
                    yield self._replaced("other function", *found.span(), opposite)
        for found in CONDITION.finditer(self._code, self._begin, self._end):
            open_at = found.end() - 1
            close = self._matching(open_at)
            negated = f"(!{self._whole[open_at : close + 1]})"
            yield self._replaced("condition negated", open_at, close + 1, negated)
        for found in NEGATION.finditer(self._code, self._begin, self._end):
            yield self._replaced("sign changed", *found.span(), "")
        for found in DROPPED.finditer(self._code, self._begin, self._end):
            yield self._replaced("statement dropped", *found.span(1), ";")

    def _matching(self, at: int) -> int:
        """Return where the bracket at a place is closed."""
        opened, depth = self._code[at], 0
        for place in range(at, len(self._code)):
            depth += (self._code[place] == opened) - (self._code[place] == CLOSING[opened])
            if not depth:
                return place
        raise KeyError(f"no {CLOSING[opened]!r}")

    def _replaced(self, operator: str, start: int, stop: int, text: str) -> Edit:
        first, last = (len(self._whole[:at].encode()) for at in (start, stop))
        return edit_of(operator, self.source, first, last, text)
