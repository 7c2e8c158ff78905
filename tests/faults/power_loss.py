"""Power loss: record what a program does to its files, and lose what it did not sync.

`record` runs a program under strace and returns its system calls. A `Disk` replays them, and knows
what the disk holds for certain and what it may hold:

* A write or truncation of a file is certain after the next fsync of the file.
* A new name, a rename or a deletion is certain after the next fsync of the folder.
* All else is lost, kept, or torn: some sectors are old, some are new, and some hold anything.

The program says what it has promised by lines on standard output that begin with `mark`.
"""

from __future__ import annotations

import hashlib
import os
import random
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path

import pytest

SECTOR = 512
CALLS = (
    "?open,openat,close,lseek,write,pwrite64,writev,ftruncate,fsync,fdatasync,"
    "?rename,?renameat,renameat2,?unlink,unlinkat,?link,linkat,?mkdir,mkdirat,?rmdir"
)
"""Calls that change files; some do not exist on every processor."""
LINE = re.compile(r"\d+ +(\w+)\((.*)\) += (\d+)$")
TEXT = re.compile(r'"((?:\\x[0-9a-f]{2})*)"')
MEMORY = "-shm"
"""Ending of files that SQLite shares between processes and never reads after a restart."""

needs_strace = pytest.mark.skipif(
    shutil.which("strace") is None and not os.environ.get("CI"),
    reason="strace is missing: bash .ci/setup installs it",
)


@dataclass(frozen=True)
class Call:
    """A system call that succeeded; `shown` are its arguments as strace shows them."""

    name: str
    texts: tuple[bytes, ...]
    shown: str
    result: int

    @property
    def descriptor(self) -> int:
        return int(self.shown.partition(",")[0])

    @property
    def last_number(self) -> int:
        return int(self.shown.rpartition(",")[2])


def record(arguments: Sequence[str], folder: Path) -> list[Call]:
    """Run `python ARGUMENTS` under strace, and return its calls that concern files."""
    trace = folder / "trace"
    options = ["-f", "--seccomp-bpf", "-qq", "-xx", "-s", "9999999", "-e", f"trace={CALLS}"]
    command = ["strace", *options, "-o", str(trace), sys.executable, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    calls = []
    for line in trace.read_text().splitlines():
        assert "unfinished" not in line or "fsync" not in line, "the program must have one thread"
        if found := LINE.match(line):
            texts = (bytes.fromhex(text.replace("\\x", "")) for text in TEXT.findall(found[2]))
            calls.append(Call(found[1], tuple(texts), TEXT.sub('""', found[2]), int(found[3])))
    return calls


@dataclass(eq=False)
class File:
    """A file: bytes that are certain, then writes (offset and bytes) and truncations (size)."""

    synced: bytes = b""
    pending: list[tuple[int, bytes] | int] = field(default_factory=list)

    def content(self, kept: float, rng: random.Random) -> bytes:
        """Return the bytes after a power loss; `kept` is 0, 1, or between them for a torn file."""
        data = bytearray(self.synced)
        for change in self.pending:
            if isinstance(change, int):
                if rng.random() < kept:
                    data = data[:change].ljust(change, b"\0")
                continue
            offset, written = change
            for start in range(0, len(written), SECTOR):
                piece = written[start : start + SECTOR]
                if rng.random() < kept:
                    if kept < 1 and rng.random() < 0.1:
                        piece = rng.randbytes(len(piece))
                    at = offset + start
                    data = data.ljust(at, b"\0")
                    data[at : at + len(piece)] = piece
        return bytes(data)

    def sync(self) -> None:
        self.synced, self.pending = self.content(1, random.Random()), []


@dataclass(eq=False)
class Folder:
    """A folder: names that are certain, then changes of names, each of which happens as a whole."""

    synced: dict[str, File | Folder] = field(default_factory=dict)
    pending: list[dict[str, File | Folder | None]] = field(default_factory=list)

    def entries(self, kept: float, rng: random.Random) -> dict[str, File | Folder]:
        """Return what is in the folder after a power loss."""
        entries: dict[str, File | Folder | None] = dict(self.synced)
        for change in self.pending:
            if rng.random() < kept:
                entries |= change
        return {name: node for name, node in entries.items() if node is not None}

    @property
    def current(self) -> dict[str, File | Folder]:
        return self.entries(1, random.Random())

    def sync(self) -> None:
        self.synced, self.pending = self.current, []


Tree = dict[str, bytes | None]
"""Content of files by path; None for a folder."""


class Disk:
    """Files below a folder that is on the disk, and what may have happened to them."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.top = Folder()
        self.marks: list[list[str]] = []
        self._open: dict[int, tuple[File | Folder, int]] = {}

    def apply(self, call: Call) -> bool:
        """Replay a call, and return whether it concerns this disk."""
        match call.name:
            case "open" | "openat":
                return self._opened(call)
            case "close" | "lseek" | "write" | "writev" | "pwrite64" | "ftruncate":
                return self._used(call)
            case "fsync" | "fdatasync":
                if found := self._open.get(call.descriptor):
                    found[0].sync()
                return found is not None
            case "unlink" | "unlinkat" | "rmdir":
                return self._changed(call, lambda nodes: [None])
            case "mkdir" | "mkdirat":
                return self._changed(call, lambda nodes: [Folder()])
            case "link" | "linkat":
                return self._changed(call, lambda nodes: [nodes[0], nodes[0]])
            case _:
                return self._changed(call, lambda nodes: [None, nodes[0]])

    def _place(self, path: bytes) -> tuple[Folder, str] | None:
        """Return the folder and the name of a path below the root."""
        given = Path(path.decode())
        if not given.is_relative_to(self.root) or given == self.root:
            return None
        *above, name = given.relative_to(self.root).parts
        folder = self.top
        for each in above:
            inner = folder.current[each]
            assert isinstance(inner, Folder)
            folder = inner
        return folder, name

    def _opened(self, call: Call) -> bool:
        self._open.pop(call.result, None)
        path = call.texts[0]
        if path.decode() == str(self.root):
            self._open[call.result] = self.top, 0
            return False
        if (place := self._place(path)) is None:
            return False
        folder, name = place
        node = folder.current.get(name)
        if created := node is None:
            node = File()
            folder.pending.append({name: node})
        elif "O_TRUNC" in call.shown and isinstance(node, File):
            node.pending.append(0)
        self._open[call.result] = node, 0
        return created

    def _used(self, call: Call) -> bool:
        number = call.descriptor
        if call.name == "write" and number == 1 and call.texts[0].startswith(b"mark "):
            self.marks += [line.split()[1:] for line in call.texts[0].decode().splitlines()]
            return True
        node, offset = self._open.get(number, (None, 0))
        if not isinstance(node, File):
            return False
        match call.name:
            case "close":
                del self._open[number]
            case "lseek":
                self._open[number] = node, call.result
            case "write" | "writev":
                node.pending.append((offset, b"".join(call.texts)[: call.result]))
                self._open[number] = node, offset + call.result
            case "pwrite64":
                node.pending.append((call.last_number, call.texts[0][: call.result]))
            case "ftruncate":
                node.pending.append(call.last_number)
        return call.name not in ("close", "lseek")

    def _changed(self, call: Call, become: object) -> bool:
        """Change the names of a call; names in one folder change together."""
        places = [self._place(path) for path in call.texts]
        if None in places:
            return False
        found = [place for place in places if place is not None]
        nodes = [folder.current.get(name) for folder, name in found]
        changes: dict[int, tuple[Folder, dict[str, File | Folder | None]]] = {}
        for (folder, name), node in zip(found, become(nodes), strict=True):  # type: ignore[operator]
            changes.setdefault(id(folder), (folder, {}))[1][name] = node
        for folder, change in changes.values():
            folder.pending.append(change)
        return True

    def after(self, names_kept: float, data_kept: float, rng: random.Random) -> Tree:
        """Return what is on the disk after a power loss."""
        tree: Tree = {}

        def add(folder: Folder, path: str) -> None:
            for name, node in folder.entries(names_kept, rng).items():
                if isinstance(node, Folder):
                    tree[path + name] = None
                    add(node, f"{path}{name}/")
                elif not name.endswith(MEMORY):
                    tree[path + name] = node.content(data_kept, rng)

        add(self.top, "")
        return tree


def losses(
    calls: Sequence[Call], root: Path, rng: random.Random, torn: int = 1
) -> Iterator[tuple[Tree, list[list[str]]]]:
    """Yield every different state of the disk after a power loss, and what was promised by then.

    After each call, names and data that are not synced are lost or kept, and `torn` times any of
    them.
    """
    disk, seen = Disk(root), set()
    for call in calls:
        if not disk.apply(call):
            continue
        for names, data in [*product((0, 1), (0, 1)), *[(0.5, 0.5)] * torn]:
            tree = disk.after(names, data, rng)
            digest = hashlib.sha256(repr((sorted(tree.items()), len(disk.marks))).encode()).digest()
            if digest not in seen:
                seen.add(digest)
                yield tree, list(disk.marks)


def write_tree(tree: Tree, folder: Path) -> None:
    """Write a state of the disk to a new folder, readable by its owner only."""
    folder.mkdir()
    for name, content in tree.items():
        path = folder / name
        if content is None:
            path.mkdir(0o700)
        else:
            path.write_bytes(content)
            path.chmod(0o600)
