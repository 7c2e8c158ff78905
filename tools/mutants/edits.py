"""An edit: a piece of a source file that a mutation operator would replace."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace

CONTEXT, LONGEST = 25, 60
"""Characters that are shown of the line around an edit, and of the edit itself."""


@dataclass(frozen=True)
class Edit:
    """Bytes `start` to `stop` of a file become `text`.

    Parameters
    ----------
    operator : str
        What kind of bug this is.
    start, stop : int
        Place in the file, in bytes.
    text : str
        Replacement.
    shown : str
        The change in one line, which identifies it within its function.
    """

    operator: str
    start: int
    stop: int
    text: str
    shown: str

    def applied(self, source: bytes) -> bytes:
        """Return the file after the edit."""
        return source[: self.start] + self.text.encode() + source[self.stop :]


def numbered(edits: Iterable[Edit]) -> list[Edit]:
    """Return the edits in order, with a number after those that would look like an earlier one."""
    seen: Counter[str] = Counter()
    made = []
    for edit in sorted(set(edits), key=lambda edit: (edit.start, edit.stop, edit.text)):
        seen[edit.shown] += 1
        number = f" (number {seen[edit.shown]})" if seen[edit.shown] > 1 else ""
        made.append(replace(edit, shown=edit.shown + number))
    return made


def edit_of(operator: str, source: bytes, start: int, stop: int, text: str) -> Edit:
    """Return an edit, shown with what is around it on its line: `if [a < b → a <= b]:`."""
    line_start = source.rfind(b"\n", 0, start) + 1
    line_stop = source.find(b"\n", stop) % (len(source) + 1)
    before = source[line_start:start].decode().lstrip()[-CONTEXT:]
    after = source[stop:line_stop].decode().rstrip()[:CONTEXT]
    shown = f"{before}[{_one_line(source[start:stop].decode())} → {_one_line(text)}]{after}"
    return Edit(operator, start, stop, text, shown)


def _one_line(text: str) -> str:
    """Return text on one line, cut if it is long."""
    line = " ".join(text.split())
    return line if len(line) <= LONGEST else f"{line[: LONGEST - 1]}…"
