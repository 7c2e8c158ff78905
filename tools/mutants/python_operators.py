"""Mutation operators for functions in Python, on the syntax tree."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import lru_cache
from itertools import pairwise

from tools.mutants.edits import Edit, edit_of, numbered

COMPARISONS: dict[type[ast.cmpop], tuple[str, ...]] = {
    ast.Lt: ("<=", ">="), ast.LtE: ("<", ">"), ast.Gt: (">=", "<="), ast.GtE: (">", "<"),
    ast.Eq: ("!=",), ast.NotEq: ("==",), ast.In: ("not in",), ast.NotIn: ("in",),
    ast.Is: ("is not",), ast.IsNot: ("is",),
}  # fmt: skip
ARITHMETIC: dict[type[ast.operator], str] = {
    ast.Add: "-", ast.Sub: "+", ast.Mult: "/", ast.Div: "*", ast.FloorDiv: "%", ast.Mod: "//",
    ast.LShift: ">>", ast.RShift: "<<", ast.BitAnd: "|", ast.BitOr: "&", ast.BitXor: "&",
}  # fmt: skip
OPPOSITES = {"min": "max", "any": "all", "floor": "ceil", "minimum": "maximum", "argmin": "argmax"}
OPPOSITES |= {opposite: name for name, opposite in OPPOSITES.items()} | {"sorted": "list"}
COMMUTATIVE = {"min", "max", "minimum", "maximum", "isinstance", "zip", "map", "reduce", "partial"}
SIDES = {"left": "right", "right": "left"}
OPERATOR = re.compile(rb"not in|is not|and|or|in|is|[^\s()\\]+")
"""What stands between two operands, besides parentheses."""
FIXED_KEYWORDS = {"strict", "timeout"}
"""Arguments whose values matter only if something else is wrong."""
NOT_MUTATED = (ast.Raise, ast.JoinedStr, ast.Import, ast.ImportFrom)
"""What has no bugs that a test should find: the words of messages, and imports."""


class PythonFunction:
    """A function or method of a file, by its qualified name; KeyError if there is none."""

    def __init__(self, source: bytes, name: str) -> None:
        self.source = source
        self._lines = [0]
        for line in source.splitlines(keepends=True):
            self._lines.append(self._lines[-1] + len(line))
        node: ast.AST = _parsed(source)
        for part in name.split("."):
            node = _members(node)[part]
        assert isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        body = node.body[1:] if ast.get_docstring(node) is not None else node.body
        self.start, self.stop = self._place(body[0])[0], self._place(body[-1])[1]
        self._body = body

    def edits(self) -> list[Edit]:
        """Return every edit that an operator makes of the function."""
        return numbered(edit for statement in self._body for edit in self._of(statement))

    # --- text ------------------------------------------------------------------------------------

    def _place(self, node: ast.AST) -> tuple[int, int]:
        """Return where a node begins and ends, in bytes."""
        assert isinstance(node, ast.expr | ast.stmt)
        assert node.end_lineno is not None and node.end_col_offset is not None
        return (
            self._lines[node.lineno - 1] + node.col_offset,
            self._lines[node.end_lineno - 1] + node.end_col_offset,
        )

    def _text(self, node: ast.AST) -> str:
        start, stop = self._place(node)
        return self.source[start:stop].decode()

    def _replaced(self, operator: str, node: ast.AST, text: str) -> Edit:
        return edit_of(operator, self.source, *self._place(node), text)

    def _between(self, operator: str, left: ast.AST, right: ast.AST, text: str) -> Edit:
        """Replace the operator between two operands, which may be in parentheses."""
        (_, start), (stop, _) = self._place(left), self._place(right)
        found = OPERATOR.search(self.source, start, stop)
        assert found is not None
        return edit_of(operator, self.source, *found.span(), text)

    # --- operators -------------------------------------------------------------------------------

    def _of(self, node: ast.AST) -> Iterator[Edit]:
        """Yield the edits of a node and of everything in it."""
        if isinstance(node, NOT_MUTATED):
            return
        for operator in (self._expression, self._value, self._statement):
            yield from operator(node)
        for name, value in ast.iter_fields(node):
            if name in ("annotation", "returns", "decorator_list"):
                continue
            if isinstance(node, ast.keyword) and node.arg in FIXED_KEYWORDS:
                continue
            for child in value if isinstance(value, list) else [value]:
                if isinstance(child, ast.AST):
                    yield from self._of(child)

    def _expression(self, node: ast.AST) -> Iterator[Edit]:
        """Yield changed comparisons, sums, conditions, signs and calls."""
        match node:
            case ast.Compare():
                parts = [node.left, *node.comparators]
                for op, (left, right) in zip(node.ops, pairwise(parts), strict=True):
                    for other in COMPARISONS[type(op)]:
                        yield self._between("comparison changed", left, right, other)
            case ast.BinOp(left, op, right) if type(op) in ARITHMETIC and not _is_text(node):
                yield self._between("arithmetic changed", left, right, ARITHMETIC[type(op)])
            case ast.BoolOp(op, values):
                other = "or" if isinstance(op, ast.And) else "and"
                for left, right in pairwise(values):
                    yield self._between("and, or", left, right, other)
            case ast.UnaryOp(ast.Not() | ast.USub()):
                text = self._text(node).removeprefix("not").removeprefix("-")
                yield self._replaced("sign changed", node, f"({text.strip()})")
            case ast.If(test) | ast.While(test) | ast.IfExp(test) if not _is_comparison(test):
                yield self._replaced("condition negated", test, f"(not ({self._text(test)}))")
            case ast.comprehension(ifs=[test, *_]) if not _is_comparison(test):
                yield self._replaced("condition negated", test, f"(not ({self._text(test)}))")
            case ast.Call():
                yield from self._call(node)

    def _call(self, node: ast.Call) -> Iterator[Edit]:
        """Yield calls of an opposite function, and with the first arguments swapped."""
        name = _called(node)
        if name in OPPOSITES:
            text = self._text(node.func).removesuffix(name) + OPPOSITES[name]
            yield self._replaced("other function", node.func, text)
        first = node.args[:2]
        if len(first) == 2 and name not in COMMUTATIVE and all(map(_is_simple, first)):
            (start, _), (_, stop) = map(self._place, first)
            old, new = (", ".join(map(self._text, pair)) for pair in (first, first[::-1]))
            if old != new:
                yield edit_of("arguments swapped", self.source, start, stop, new)

    def _value(self, node: ast.AST) -> Iterator[Edit]:
        """Yield changed constants."""
        if not isinstance(node, ast.Constant):
            return
        value = node.value
        if isinstance(value, bool):
            yield self._replaced("constant changed", node, str(not value))
        elif isinstance(value, int):
            for other in (value + 1, value - 1) if value > 1 else (value + 1,):
                yield self._replaced("constant changed", node, str(other))
        elif isinstance(value, float):
            yield self._replaced("constant changed", node, repr(2 * value if value else 1.0))
        elif isinstance(value, str) and value in SIDES:
            yield self._replaced("constant changed", node, repr(SIDES[value]))

    def _statement(self, node: ast.AST) -> Iterator[Edit]:
        """Yield dropped statements, and loops that end early."""
        match node:
            case ast.Expr(ast.Call() | ast.Await()) | ast.AugAssign():
                yield self._replaced("statement dropped", node, "pass")
            case ast.Continue():
                yield self._replaced("loop ends early", node, "break")
            case ast.For(body=body) | ast.AsyncFor(body=body):
                if isinstance(body[-1], ast.Return | ast.Raise | ast.Break | ast.Continue):
                    return
                _, stop = self._place(body[-1])
                text = f"\n{' ' * body[0].col_offset}break"
                shown = f"for {self._text(node.target)} in …: [ends after one step]"
                yield Edit("loop ends early", stop, stop, text, shown)


@lru_cache(maxsize=4)
def _parsed(source: bytes) -> ast.Module:
    return ast.parse(source)


def _members(node: ast.AST) -> dict[str, ast.AST]:
    """Return the functions and classes in a module, class or function, by name."""
    kinds = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
    return {each.name: each for each in getattr(node, "body", ()) if isinstance(each, kinds)}


def _called(node: ast.Call) -> str:
    """Return the last part of the name of the called function."""
    return getattr(node.func, "attr", getattr(node.func, "id", ""))


def _is_comparison(node: ast.AST) -> bool:
    """Return whether the operator of comparisons negates a condition, too."""
    return isinstance(node, ast.Compare) and len(node.ops) == 1


def _is_simple(node: ast.AST) -> bool:
    """Return whether an argument might be taken for another."""
    return isinstance(node, ast.Name | ast.Attribute | ast.BinOp | ast.Subscript)


def _is_text(node: ast.BinOp) -> bool:
    """Return whether a sum is one of texts, as far as the code shows."""
    parts = (node.left, node.right)
    return any(
        isinstance(part, ast.JoinedStr)
        or (isinstance(part, ast.Constant) and isinstance(part.value, str | bytes))
        for part in parts
    )
