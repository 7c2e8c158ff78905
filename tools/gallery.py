"""Write the gallery of examples: `make gallery` (about a minute).

Every script of `examples/gallery` runs in an empty folder and leaves one picture. The page shows
each script's title and paragraph (its docstring) and the picture, and includes the code.
"""

from __future__ import annotations

import ast
import os
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parent.parent
SCRIPTS = ROOT / "examples" / "gallery"
PAGE = ROOT / "docs" / "gallery" / "index.md"
ORDER = (
    "marginal",
    "unknown_strings",
    "joint_table",
    "association_over_time",
    "choose_epsilon",
    "plan_survey",
    "poisoning",
    "repeated_collection",
    "hundred_million",
)
INTRODUCTION = """\
# Gallery

Each example is a complete script of `examples/gallery/` that saves the picture above it.
"""


def section(name: str) -> str:
    """Return one example's part of the page: title, paragraph, picture, and code by inclusion."""
    path = SCRIPTS / f"{name}.py"
    tree = ast.parse(path.read_text())
    title, _, paragraph = (ast.get_docstring(tree) or "").partition("\n\n")
    code = f'--8<-- "{path.relative_to(ROOT)}:{tree.body[1].lineno}"'  # from this line on
    return f"## {title}\n\n{paragraph}\n\n![{title}]({name}.png)\n\n```python\n{code}\n```\n"


def page() -> str:
    """Return the whole page."""
    return "\n".join([INTRODUCTION, *map(section, ORDER)])


def draw(name: str) -> None:
    """Run one script in an empty folder and keep its picture."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, str(SCRIPTS / f"{name}.py")]
        environment = {**os.environ, "MPLBACKEND": "Agg"}
        subprocess.run(command, cwd=folder, env=environment, check=True)
        picture = Path(folder, f"{name}.png").read_bytes()
    PAGE.with_name(f"{name}.png").write_bytes(picture)


def main() -> None:
    """Draw the pictures of the scripts named on the command line, or of all; write the page."""
    PAGE.parent.mkdir(exist_ok=True)
    for name in sys.argv[1:] or ORDER:
        print(name, flush=True)
        draw(name)
    PAGE.write_text(page())


if __name__ == "__main__":
    main()
