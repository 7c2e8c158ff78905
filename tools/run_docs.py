"""Run the code blocks of the documentation, as a reader would paste them into an empty folder.

    python -m tools.run_docs docs/tutorial.md            run a page and compare its outputs
    python -m tools.run_docs --update docs/tutorial.md   also write the outputs into the page
    python run_docs.py --no-home docs/tutorial.md        a copy of this file: the installed package

What happens to a block depends on the line that opens it:

| block | what is done |
| --- | --- |
| ```python | executed; all Python blocks of a page share one namespace |
| ```sh | run by bash; all shell blocks of a page share one session |
| ```toml title="survey.toml" | written to the file that the title names, whatever the language |
| ```text title="Output" | compared with the output of the block before it, except for numbers |
| anything else, such as ```bash | shown to the reader only |

A comment on the line before a block says that it needs more than Python, or why it is not run:
`<!-- needs: postgres -->`, `<!-- not run: it takes an hour -->`.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import os
import re
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import textwrap
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
FENCE = re.compile(
    r"^(?P<indent> *)```(?P<info>[^\n`]*)\n(?P<body>.*?)^(?P=indent)```[ ]*$", re.M | re.S
)
COMMENT = re.compile(r"<!-- (needs|not run): ([^>]*?) -->\s*\Z")
PORT = "8080"
SKIPPED_LINES = ("pip install ", "git clone ")
SHELL_CHARACTERS = set("|&;<>$`*?~(){}")
HEXADECIMAL = re.compile(r"\b[0-9a-f]{8,}\b")
NUMBER = re.compile(r"[-−+]?[\d,]*\.?\d+(?:e[-+]?\d+)?")
RULES = re.compile(r"[\s\u2500-\u257f]+")


class BlockFailed(AssertionError):
    """Raised when a block does not run, or does not print what the page says."""


@dataclass(frozen=True)
class Block:
    """One fenced block of a page.

    Attributes
    ----------
    language, title : the first word of the opening line, and its `title="…"`
    code : the text, without the indentation of the fence
    line : line number of the opening fence
    start, end : character positions of the text in the page
    needs : programs or packages that the block needs besides Python, such as "postgres"
    not_run : why the block is only shown, or ""
    """

    language: str
    title: str
    code: str
    line: int
    start: int
    end: int
    indent: str = ""
    needs: tuple[str, ...] = ()
    not_run: str = ""


def pages() -> list[Path]:
    """Return README.md and all pages of the documentation."""
    return [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


def blocks_of(text: str) -> list[Block]:
    """Return the fenced blocks of a page, in order."""
    blocks = []
    for match in FENCE.finditer(text):
        language, _, attributes = match["info"].strip().partition(" ")
        title = re.search(r'title="([^"]*)"', attributes)
        comment = COMMENT.search(text, 0, match.start())
        mark, value = (comment[1], comment[2]) if comment else ("", "")
        blocks.append(
            Block(
                language=language,
                title=title[1] if title else "",
                code=textwrap.dedent(match["body"]),
                line=text.count("\n", 0, match.start()) + 1,
                start=match.start("body"),
                end=match.end("body"),
                indent=match["indent"],
                needs=tuple(value.split()) if mark == "needs" else (),
                not_run=value if mark == "not run" else "",
            )
        )
    return blocks


def comparable(text: str) -> list[str]:
    """Return the lines of an output without what may differ: numbers, digests and layout."""
    lines = (
        RULES.sub(" ", NUMBER.sub("#", HEXADECIMAL.sub("#", line))).strip()
        for line in text.splitlines()
    )
    return [line for line in lines if line]


def same_output(expected: str, actual: str) -> bool:
    """Compare two outputs except for numbers; a line `…` stands for any number of lines."""
    remaining = comparable(actual)
    anchored = True
    for part in re.split(r"^\s*…\s*$", expected, flags=re.M):
        wanted = comparable(part)
        places = range(len(remaining) - len(wanted) + 1) if not anchored else range(1)
        place = next((i for i in places if remaining[i : i + len(wanted)] == wanted), None)
        if place is None:
            return False
        remaining = remaining[place + len(wanted) :]
        anchored = False
    return not remaining or expected.rstrip().endswith("…")


@dataclass
class PageRun:
    """A page that is being run: one Python namespace, one shell, one folder.

    Parameters
    ----------
    folder : empty folder that blocks run in
    home : folder that stands for the reader's home
    available : for each need that is met, texts to replace in the blocks that have it
    """

    folder: Path
    home: Path
    available: Mapping[str, Mapping[str, str]]
    namespace: dict[str, Any] = field(default_factory=lambda: {"__name__": "documentation"})
    shell: subprocess.Popen[str] | None = None

    def __post_init__(self) -> None:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = str(probe.getsockname()[1])
        self.scripts = self.folder.parent / "scripts"
        programs = self.scripts / "bin"
        programs.mkdir(parents=True, exist_ok=True)
        command = programs / "deniable"
        command.write_text(f'#!/bin/sh\nexec {sys.executable} -m deniable "$@"\n')
        command.chmod(0o755)
        self.environment = {
            **os.environ,
            "COLUMNS": "100",
            "DENIABLE_PORT": self.port,
            "HOME": str(self.home),
            "NO_COLOR": "1",
            "PATH": f"{programs}:{Path(sys.executable).parent}:{os.environ['PATH']}",
            "PYTHONPATH": f"{ROOT / 'src'}:{os.environ.get('PYTHONPATH', '')}",
        }

    def run(self, block: Block) -> str:
        """Run a block and return what it printed."""
        code = block.code.replace(PORT, self.port)
        for need in block.needs:
            for old, new in self.available[need].items():
                code = code.replace(old, new)
        if block.language == "python":
            return self._python(code, block)
        return self._commands(code) or self._bash(code)

    def _python(self, code: str, block: Block) -> str:
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            # Keep the line numbers of the page in tracebacks.
            exec(compile("\n" * block.line + code, "page", "exec"), self.namespace)
        return printed.getvalue()

    def _commands(self, code: str) -> str | None:
        """Run a block of plain `deniable` commands in this process, which saves their start-up."""
        from click.testing import CliRunner

        from deniable.cli.app import app

        lines = [
            line
            for line in code.replace("\\\n", " ").splitlines()
            if line.strip() and not line.lstrip().startswith(("#", *SKIPPED_LINES))
        ]
        arguments = [shlex.split(line, comments=True) for line in lines]
        plain = all(
            words[:1] == ["deniable"] and words[1] != "serve" and not SHELL_CHARACTERS & set(line)
            for words, line in zip(arguments, lines, strict=True)
        )
        if not plain:
            return None
        printed = ""
        for words in arguments:
            result = CliRunner(env={"COLUMNS": "100"}).invoke(app, words[1:])
            printed += result.output
            if result.exit_code:
                raise BlockFailed(f"{shlex.join(words)}: {result.exit_code}\n{printed}") from (
                    result.exception
                )
        return printed or "\n"

    def _bash(self, code: str) -> str:
        if self.shell is None:
            self.shell = subprocess.Popen(
                ["bash", "-e"],
                cwd=self.folder,
                env=self.environment,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                start_new_session=True,
            )
            assert self.shell.stdin is not None
            # When a command fails, what runs in the background must end with the shell.
            self.shell.stdin.write("trap 'trap - EXIT; kill 0' EXIT\n")
        assert self.shell.stdin is not None
        assert self.shell.stdout is not None
        marker = uuid.uuid4().hex
        script = self.scripts / f"{marker}.sh"
        kept = [line for line in code.splitlines() if not line.startswith(SKIPPED_LINES)]
        script.write_text("\n".join(kept) + "\n")
        self.shell.stdin.write(f"source {script} </dev/null\necho\necho {marker}\n")
        self.shell.stdin.flush()
        printed: list[str] = []
        for line in self.shell.stdout:
            if line.strip() == marker:
                return "".join(printed).rstrip("\n") + "\n"
            printed.append(line)
        raise BlockFailed(f"a command failed:\n{code}\nprinted:\n{''.join(printed)}")

    def close(self) -> None:
        """End the shell and what it started in the background."""
        if self.shell is None:
            return
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.shell.pid, signal.SIGTERM)
        try:
            self.shell.communicate(timeout=10)
        except subprocess.TimeoutExpired:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.shell.pid, signal.SIGKILL)
            self.shell.communicate()


@contextlib.contextmanager
def empty_folder(no_home: bool = False) -> Iterator[tuple[Path, Path]]:
    """Work in an empty folder, with a home folder next to it, and remove both afterwards.

    no_home : the home folder does not exist, and cannot be created
    """
    before, old_home = Path.cwd(), os.environ.get("HOME", "")
    with tempfile.TemporaryDirectory() as parent:
        folder, home = Path(parent, "empty"), Path(parent, "home")
        folder.mkdir()
        if no_home:
            home.touch()
            home /= "below-a-file"
        else:
            home.mkdir()
        os.chdir(folder)
        os.environ["HOME"] = str(home)
        try:
            yield folder, home
        finally:
            os.chdir(before)
            os.environ["HOME"] = old_home


def run_page(
    path: Path,
    available: Mapping[str, Mapping[str, str]] | None = None,
    *,
    update: bool = False,
    no_home: bool = False,
) -> list[Block]:
    """Run the blocks of a page in order and return those that were run.

    Parameters
    ----------
    path : the page
    available : needs that are met here, each with the texts to replace in its blocks
    update : write outputs into the page instead of comparing them
    no_home : run as a user whose home folder cannot be written

    Raises
    ------
    BlockFailed
        If a block fails or prints something else than the page says.
    """
    path = path.resolve()
    available = {} if available is None else available
    text = path.read_text(encoding="utf-8")
    ran: list[Block] = []
    outputs: list[tuple[Block, str]] = []
    with empty_folder(no_home) as (folder, home):
        page = PageRun(folder, home, available)
        printed: str | None = None
        try:
            for block in blocks_of(text):
                where = f"{path.name}, line {block.line}"
                if block.title == "Output":
                    if printed is None:
                        continue
                    if update and "\n…" not in f"\n{block.code}":
                        outputs.append((block, printed.replace(page.port, PORT)))
                    elif not same_output(block.code, printed):
                        raise BlockFailed(f"{where}: the block before it printed\n{printed}")
                elif block.title:
                    target = folder / block.title
                    target.parent.mkdir(parents=True, exist_ok=True)
                    target.write_text(block.code)
                elif block.language in ("python", "sh") and not block.not_run:
                    printed = None
                    if all(need in available for need in block.needs):
                        try:
                            printed = page.run(block)
                        except Exception as error:
                            error.add_note(f"in {where}")
                            raise
                        ran.append(block)
        finally:
            page.close()
    for block, output in reversed(outputs):
        body = textwrap.indent(tidy(output), block.indent)
        text = text[: block.start] + body + text[block.end :]
    if outputs:
        path.write_text(text, encoding="utf-8")
    return ran


def tidy(output: str) -> str:
    """Return an output without trailing blanks and without empty lines around it."""
    lines = [line.rstrip() for line in output.splitlines()]
    return "\n".join(lines).strip("\n") + "\n"


def main() -> None:
    """Run the pages named on the command line, or all of them."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else None)
    parser.add_argument("pages", nargs="*", type=Path)
    parser.add_argument("--update", action="store_true", help="write outputs into the pages")
    parser.add_argument("--no-home", action="store_true", help="as a user without a home folder")
    options = parser.parse_args()
    sys.path.insert(0, str(ROOT / "src"))  # this checkout, whichever one is installed
    met = {"checkout": {"CHECKOUT": str(ROOT)}}
    if shutil.which("curl"):
        met["curl"] = {}
    for path in options.pages or pages():
        ran = run_page(path, met, update=options.update, no_home=options.no_home)
        print(f"{path}: {len(ran)} blocks ran")


if __name__ == "__main__":
    main()
