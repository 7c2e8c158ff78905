"""Run the tests of mutants, each in a temporary copy of the repository."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue
from typing import TypeVar

from tools.mutants.catalogue import ROOT, Mutant

MAX_SECONDS = 1000.0
"""Time after which tests count as endless, unless it is known how long they should take."""
PASSED, FAILED, INTERRUPTED = 0, 1, 2
"""Exit codes of pytest. It is interrupted if a module cannot be imported."""
FOLDERS: list[str] = []
"""Folders of copies, which are deleted at the end."""
RUNNING: set[int] = set()
"""Processes that run tests now; each leads a group of its own."""
Item = TypeVar("Item")
Result = TypeVar("Result")
TEST = re.compile(r"^(?:FAILED|ERROR) (\S+)", re.MULTILINE)


@dataclass(frozen=True)
class Outcome:
    """What the tests said about a mutant.

    Parameters
    ----------
    mutant : Mutant
        The mutant.
    caught : bool
        Whether a test failed.
    by : str
        The test, or why there is none.
    seconds : float
        Duration of the tests.
    """

    mutant: Mutant
    caught: bool
    by: str
    seconds: float


class NoTests(Exception):
    """Raised if the tests of a mutant cannot be run, or fail without any mutant."""


@contextmanager
def copies(count: int) -> Iterator[list[Path]]:
    """Copy the files of the repository that git does not ignore, so many times."""
    listing = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    names = subprocess.run(listing, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    with tempfile.TemporaryDirectory(prefix="deniable-mutants-") as folder:
        FOLDERS.append(folder)
        made = [Path(folder) / str(number) for number in range(count)]
        for copy in made:
            for name in filter(None, names.split("\0")):
                if (ROOT / name).is_file():
                    (copy / name).parent.mkdir(parents=True, exist_ok=True)
                    shutil.copy2(ROOT / name, copy / name)
            # A module that is changed twice within a second must be compiled twice.
            mode = ["--invalidation-mode", "checked-hash"]
            _python(copy, ["-m", "compileall", "-q", *mode, "src", "tests", "tools"])
        yield made


def warm(folders: Sequence[Path]) -> None:
    """Compile the kernels in each copy."""
    with ThreadPoolExecutor(len(folders)) as pool:
        list(pool.map(lambda folder: _python(folder, ["-m", "tests.warm_kernels"]), folders))


Limits = Mapping[tuple[str, ...], float]
"""Seconds after which tests, by their arguments, count as endless."""


def limits_of(mutants: Iterable[Mutant], folders: Sequence[Path]) -> Limits:
    """Measure how long the tests take without a mutant; raise NoTests if they do not pass."""

    def one(tests: tuple[str, ...], folder: Path) -> float:
        start = time.monotonic()
        code, output = _pytest(folder, tests, MAX_SECONDS)
        if code != PASSED:
            what = "do not end" if code is None else f"do not pass:\n{output[-3000:]}"
            raise NoTests(f"without a mutant, the tests {' '.join(tests)} {what}")
        return 30 + 5 * (time.monotonic() - start)

    different = dict.fromkeys(mutant.tests for mutant in mutants)
    return dict(zip(different, _spread(one, different, folders), strict=True))


def run(
    mutants: Iterable[Mutant],
    folders: Sequence[Path],
    limits: Limits,
    progress: Callable[[Outcome], None],
) -> list[Outcome]:
    """Run the tests of each mutant, in as many processes as there are copies."""
    printing = threading.Lock()

    def one(mutant: Mutant, folder: Path) -> Outcome:
        outcome = try_mutant(mutant, folder, limits.get(mutant.tests, MAX_SECONDS))
        with printing:
            progress(outcome)
        return outcome

    return _spread(one, mutants, folders)


def _spread(
    function: Callable[[Item, Path], Result], items: Iterable[Item], folders: Sequence[Path]
) -> list[Result]:
    """Return function(item, folder) for each item; no two of them use a folder at a time."""
    free: SimpleQueue[Path] = SimpleQueue()
    for folder in folders:
        free.put(folder)

    def one(item: Item) -> Result:
        folder = free.get()
        try:
            return function(item, folder)
        finally:
            free.put(folder)

    with ThreadPoolExecutor(len(folders)) as pool:
        return list(pool.map(one, items))


def try_mutant(mutant: Mutant, folder: Path, limit: float) -> Outcome:
    """Run the tests of a mutant in a copy, which is restored afterwards."""
    path = folder / mutant.file
    whole = path.read_bytes()
    start = time.monotonic()
    path.write_bytes(mutant.source(folder))
    try:
        code, output = _pytest(folder, mutant.tests, limit)
    finally:
        path.write_bytes(whole)
    seconds = time.monotonic() - start
    if code is None:
        return Outcome(mutant, True, "tests that do not end", seconds)
    if code not in (PASSED, FAILED, INTERRUPTED):
        raise NoTests(f"the tests of {mutant.name} cannot be run:\n{output[-2000:]}")
    found = TEST.search(output)
    return Outcome(mutant, code != PASSED, found[1] if found else "", seconds)


def _pytest(folder: Path, tests: Sequence[str], limit: float) -> tuple[int | None, str]:
    """Run tests until the first fails; return pytest's exit code, or None if it took too long."""
    options = ["-x", "-q", "-n", "0", "-p", "no:cacheprovider", "--tb=no", "-rfE"]
    return _python(folder, ["-m", "pytest", *options, *tests], limit)


def _python(
    folder: Path, arguments: Sequence[str], limit: float | None = None
) -> tuple[int | None, str]:
    """Run Python in a copy; return exit code and output."""
    # CI: a missing program is a failure, and tests draw the same examples each time.
    environment = os.environ | {"PYTHONPATH": f"{folder / 'src'}{os.pathsep}{folder}", "CI": "true"}
    with subprocess.Popen(
        [sys.executable, *arguments], cwd=folder, env=environment, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True,
    ) as process:  # fmt: skip
        RUNNING.add(process.pid)
        try:
            output, _ = process.communicate(timeout=limit)
            return process.returncode, output
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            return None, process.communicate()[0]
        finally:
            RUNNING.discard(process.pid)


def stop_on_signals() -> None:
    """End the processes that run tests before this one ends, if it is told to end."""

    def stop(number: int, frame: object) -> None:
        for group in list(RUNNING):
            with suppress(ProcessLookupError):
                os.killpg(group, signal.SIGKILL)
        for folder in FOLDERS:
            shutil.rmtree(folder, ignore_errors=True)
        os._exit(128 + number)

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, stop)
