"""Measure the structure of the installed package: `python tools/measure.py`.

Every figure that the project quotes about its own size and shape comes from here, and
`tests/test_structure.py` holds the code to the limits below.
"""

from __future__ import annotations

import ast
import io
import re
import sys
import tokenize
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path

PACKAGE = Path(__file__).parent.parent / "src" / "deniable"

LIMITS = {
    "lines of code": 33_850,
    "repeated class names": 0,
    "isinstance on mechanisms, protocols and categories": 12,
    "lines with Any": 150,
    "fmt: skip": 20,
    "functions with more than 8 parameters": 0,
}

TYPE_FOLDERS = ("mechanisms", "protocols", "inference/models")
"""Where the types are defined that others should not have to tell apart."""
OWN_FOLDERS = (*TYPE_FOLDERS, "survey")
VERBS = {"decode", "associate", "count", "discover", "plan", "simulate", "trend"}
MAX_PARAMETERS = 8
CODELESS = {
    tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT,
    tokenize.ENCODING, tokenize.ENDMARKER,
}  # fmt: skip


def modules(root: Path = PACKAGE) -> Iterator[tuple[Path, str, ast.Module]]:
    """Yield every module of a tree: its path, its text and its syntax tree."""
    for path in sorted(root.rglob("*.py")):
        text = path.read_text()
        yield path, text, ast.parse(text)


def code_lines(text: str, tree: ast.Module) -> int:
    """Count the lines that hold code: no docstrings, comments or blank lines."""
    lines = {
        line
        for token in tokenize.generate_tokens(io.StringIO(text).readline)
        if token.type not in CODELESS
        for line in range(token.start[0], token.end[0] + 1)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(getattr(node.value, "value", None), str):
            lines -= set(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    return len(lines)


def repeated_classes(root: Path = PACKAGE) -> dict[str, list[str]]:
    """Return the names of classes that are defined in more than one module, with the modules."""
    where = defaultdict(list)
    for path, _, tree in modules(root):
        for node in tree.body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                where[node.name].append(str(path.relative_to(root)))
    return {name: found for name, found in sorted(where.items()) if len(found) > 1}


def repeated_modules(root: Path = PACKAGE) -> dict[str, list[str]]:
    """Return the file names that several modules share, `__init__` aside, with their folders."""
    where = defaultdict(list)
    for path, _, _ in modules(root):
        if path.stem not in ("__init__", "__main__"):
            where[path.stem].append(str(path.parent.relative_to(root)))
    return {name: found for name, found in sorted(where.items()) if len(found) > 1}


def folders(root: Path = PACKAGE) -> dict[str, int]:
    """Return the number of modules in each folder, `__init__` aside."""
    counts = Counter(
        str(path.parent.relative_to(root))
        for path, _, _ in modules(root)
        if path.stem != "__init__"
    )
    return dict(sorted(counts.items()))


def type_tests(root: Path = PACKAGE) -> list[str]:
    """List each test of type on a mechanism, protocol or category outside its own folder."""
    types = {
        node.name
        for folder in TYPE_FOLDERS
        for _, _, tree in modules(root / folder)
        for node in tree.body
        if isinstance(node, ast.ClassDef)
    }
    found = []
    for path, _, tree in modules(root):
        if str(path.relative_to(root)).startswith(OWN_FOLDERS):
            continue
        for node in ast.walk(tree):
            tested: list[ast.AST] = []
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "isinstance":
                tested = list(ast.walk(node.args[1]))
            elif isinstance(node, ast.MatchClass):
                tested = [node.cls]
            names = {getattr(n, "id", getattr(n, "attr", "")) for n in tested}
            if names & types:
                found.append(f"{path.relative_to(root)}:{getattr(node, 'lineno', 0)}")
    return found


def wide_functions(root: Path = PACKAGE) -> list[str]:
    """List the functions with many parameters; verbs, commands and kernels are allowed them."""
    found = []
    for path, text, tree in modules(root):
        parts = path.relative_to(root).parts
        if parts[0] == "cli" or "import triton" in text:
            continue
        for node in ast.walk(tree):
            if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) or node.name in VERBS:
                continue
            decorated = {ast.unparse(d).split("(")[0] for d in node.decorator_list}
            if decorated & {"compiled", "compiled_sums", "inlined", "click.command"}:
                continue
            arguments = node.args
            names = [a.arg for a in arguments.posonlyargs + arguments.args + arguments.kwonlyargs]
            size = len([name for name in names if name not in ("self", "cls")])
            if size > MAX_PARAMETERS:
                found.append(f"{path.relative_to(root)}:{node.lineno} {node.name} ({size})")
    return found


def measure(root: Path = PACKAGE) -> dict[str, int]:
    """Return every figure that has a limit."""
    every = list(modules(root))
    return {
        "lines of code": sum(code_lines(text, tree) for _, text, tree in every),
        "repeated class names": len(repeated_classes(root)),
        "isinstance on mechanisms, protocols and categories": len(type_tests(root)),
        "lines with Any": sum(
            bool(re.search(r"^(?!from|import).*\bAny\b", line))
            for _, text, _ in every
            for line in text.splitlines()
        ),
        "fmt: skip": sum(text.count("# fmt: skip") for _, text, _ in every),
        "functions with more than 8 parameters": len(wide_functions(root)),
    }


def main() -> None:
    """Print every figure beside its limit, then what stands behind the figures."""
    root = Path(sys.argv[1]) if len(sys.argv) > 1 else PACKAGE
    for name, value in measure(root).items():
        print(f"{name:54} {value:7,}   limit {LIMITS[name]:,}")
    for title, rows in (
        ("Class names defined twice", repeated_classes(root)),
        ("Module names used twice", repeated_modules(root)),
    ):
        print(f"\n{title}:")
        for name, places in rows.items():
            print(f"  {name}: {', '.join(places)}")
    for title, lines in (
        ("Tests of type on mechanisms, protocols and categories", type_tests(root)),
        ("Functions with many parameters", wide_functions(root)),
        ("Modules per folder", [f"{name}: {count}" for name, count in folders(root).items()]),
    ):
        print(f"\n{title}:")
        print("\n".join(f"  {line}" for line in lines))


if __name__ == "__main__":
    main()
