"""Measure the structure of the project: `python tools/measure.py`.

Every figure that the project quotes about its own size and shape comes from here, and
`tests/test_structure.py` holds the code to the limits below and to the ceilings of
`tools/ceilings.toml`. `python tools/measure.py --record` lowers the ceilings to what was measured:
a folder's ceiling rises only if others fall by as much, and the total only falls.
"""

from __future__ import annotations

import ast
import io
import re
import sys
import tokenize
import tomllib
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "src" / "deniable"
CEILINGS = ROOT / "tools" / "ceilings.toml"

LIMITS = {
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


def code_tokens(text: str, tree: ast.Module) -> list[tokenize.TokenInfo]:
    """Return the tokens of code: no docstrings, comments or layout."""
    strings = [
        (node.lineno, node.end_lineno or node.lineno)
        for node in ast.walk(tree)
        if isinstance(node, ast.Expr) and isinstance(getattr(node.value, "value", None), str)
    ]
    docs = {line for first, last in strings for line in range(first, last + 1)}
    return [
        token
        for token in tokenize.generate_tokens(io.StringIO(text).readline)
        if token.type not in CODELESS and token.start[0] not in docs
    ]


def code_lines(text: str, tree: ast.Module) -> int:
    """Count the lines that hold code: no docstrings, comments or blank lines."""
    tokens = code_tokens(text, tree)
    return len({line for each in tokens for line in range(each.start[0], each.end[0] + 1)})


def lines_below(*folders: str) -> int:
    """Count the lines of Python code below some folders of the project."""
    return sum(code_lines(text, tree) for each in folders for _, text, tree in modules(ROOT / each))


def javascript_lines() -> int:
    """Count the lines of JavaScript in the wheel, without comments and blank lines."""
    files = [ROOT / "clients/js/deniable.js", *PACKAGE.rglob("*.js")]
    texts = (re.sub(r"/\*.*?\*/", "", path.read_text(), flags=re.DOTALL) for path in files)
    return sum(
        bool(line.strip()) and not line.strip().startswith("//")
        for text in texts
        for line in text.splitlines()
    )


def documentation_words() -> int:
    """Count the words of the documentation, without the generated reference of the commands."""
    pages = (ROOT / "docs").rglob("*.md")
    return sum(len(page.read_text().split()) for page in pages if page.name != "commands.md")


def folder_lines(root: Path = PACKAGE) -> dict[str, int]:
    """Return the lines of code of each top-level folder."""
    lines: Counter[str] = Counter()
    for path, text, tree in modules(root):
        parts = path.relative_to(root).parts
        lines[parts[0] if len(parts) > 1 else "(root modules)"] += code_lines(text, tree)
    return dict(sorted(lines.items()))


def sizes() -> dict[str, dict[str, int]]:
    """Return every figure that has a ceiling: lines by folder, and the size of everything else."""
    lines = folder_lines()
    every = list(modules())
    return {
        "src": {
            "total": sum(lines.values()),
            "files": len(every),
            "tokens": sum(len(code_tokens(text, tree)) for _, text, tree in every),
            "javascript": javascript_lines(),
            **lines,
        },
        "elsewhere": {
            "tests": lines_below("tests"),
            "experiments_benchmarks_tools": lines_below("experiments", "benchmarks", "tools"),
            "docs_words": documentation_words(),
        },
    }


def above_ceilings() -> list[str]:
    """List what has grown above its ceiling; what has no ceiling may have no lines."""
    ceilings = tomllib.loads(CEILINGS.read_text())
    return [
        f"{name}: {size:,}, ceiling {ceilings[group].get(name, 0):,}"
        for group, found in sizes().items()
        for name, size in found.items()
        if size > ceilings[group].get(name, 0)
    ]


def record() -> None:
    """Write what was measured as the new ceilings, unless the total has grown."""
    found = sizes()
    if CEILINGS.exists():
        before = tomllib.loads(CEILINGS.read_text())["src"]["total"]
        if found["src"]["total"] > before:
            sys.exit(f"{found['src']['total']:,} lines of code, {before:,} before: take some out")
    text = "# Largest sizes, written by `python tools/measure.py --record`.\n"
    for group, figures in found.items():
        text += f"\n[{group}]\n"
        text += "".join(f'"{name}" = {size}\n' for name, size in figures.items())
    CEILINGS.write_text(text)


def import_share(root: Path = PACKAGE) -> float:
    """Return the share of the lines of code that are imports."""
    lines = imports = 0
    for _, text, tree in modules(root):
        lines += code_lines(text, tree)
        imports += sum(
            (node.end_lineno or node.lineno) - node.lineno + 1
            for node in ast.walk(tree)
            if isinstance(node, ast.Import | ast.ImportFrom)
        )
    return imports / lines


def module_numbers(root: Path = PACKAGE) -> dict[str, int]:
    """Count the numbers that modules of each top-level folder give a name."""
    counts: Counter[str] = Counter()
    for path, _, tree in modules(root):
        parts = path.relative_to(root).parts
        for node in tree.body:
            value = node.value if isinstance(node, ast.Assign | ast.AnnAssign) else None
            inner = [] if value is None else [n for n in ast.walk(value) if _is_number(n)]
            counts[parts[0] if len(parts) > 1 else "(root modules)"] += bool(inner)
    return {name: count for name, count in sorted(counts.items()) if count}


def _is_number(node: ast.AST) -> bool:
    value = getattr(node, "value", None) if isinstance(node, ast.Constant) else None
    return isinstance(value, int | float) and not isinstance(value, bool)


def commands_and_options() -> tuple[int, int] | None:
    """Count the commands and their options; None where the command line is not installed."""
    try:
        from click import Command, Context, Group, Option

        from deniable.cli.app import app
    except ImportError:
        return None
    commands = options = 0
    waiting: list[Command] = [app]
    while waiting:
        command = waiting.pop()
        options += sum(isinstance(each, Option) for each in command.params)
        if isinstance(command, Group):
            context = Context(command)
            names = command.list_commands(context)
            waiting += filter(None, (command.get_command(context, name) for name in names))
        else:
            commands += 1
    return commands, options


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
    for path, _, tree in modules(root):
        if path.relative_to(root).parts[0] == "cli":
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
    """Return every figure of the shape that has a limit."""
    every = list(modules(root))
    return {
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
    """Print every size beside its ceiling, every limit, then what stands behind the figures."""
    if "--record" in sys.argv:
        record()
    root = PACKAGE
    ceilings = tomllib.loads(CEILINGS.read_text())
    for group, figures in sizes().items():
        for name, size in figures.items():
            print(f"{group + ' ' + name:54} {size:7,}   ceiling {ceilings[group].get(name, 0):,}")
    for name, value in measure(root).items():
        print(f"{name:54} {value:7,}   limit {LIMITS[name]:,}")
    print(f"{'share of imports':54} {import_share():7.1%}")
    numbers = module_numbers()
    print(f"{'named numbers of modules':54} {sum(numbers.values()):7,}")
    counted = commands_and_options()
    for name, count in zip(("commands", "options"), counted or ("?", "?"), strict=True):
        print(f"{name:54} {count:>7}")
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
        ("Named numbers of modules", [f"{name}: {count}" for name, count in numbers.items()]),
        ("Modules per folder", [f"{name}: {count}" for name, count in folders(root).items()]),
    ):
        print(f"\n{title}:")
        print("\n".join(f"  {line}" for line in lines))


if __name__ == "__main__":
    main()
