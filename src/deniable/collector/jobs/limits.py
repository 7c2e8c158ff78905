"""Limits of a job: its memory and time, its candidates, and the size of its result."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from deniable.errors import InputError

MAX_CANDIDATES = 50_000
"""Largest number of candidate strings per job; results with more would be too large."""
MAX_RESULT_BYTES = 16 << 20
"""Largest result, in all its formats together."""
CHECK_SECONDS = 0.1
"""How often the memory and time of a process are checked."""
USED_MEMORY = ("RssAnon:", "RssShmem:", "VmSwap:")
"""What counts as the memory of a process; pages of files do not, because they can be read again."""
LIMIT = "the limit of this collector"
ADVICE = "try fewer candidates, questions or days, or use the command line"


@dataclass(frozen=True)
class JobLimits:
    """What an analysis may use. memory : bytes; seconds : running time."""

    memory: int
    seconds: float

    def exceeded(self, pid: int, seconds: float) -> str | None:
        """Return which limit a process exceeded after so many seconds, for analysts, or None."""
        if seconds > self.seconds:
            minutes = f"{self.seconds / 60:.3g} minutes"
            return f"the analysis took longer than {minutes}, {LIMIT}: {ADVICE}"
        if memory_of(pid) > self.memory:
            memory = f"{self.memory / 2**30:.3g} GiB of memory"
            return f"the analysis needed more than {memory}, {LIMIT}: {ADVICE}"
        return None


def memory_of(pid: int) -> int:
    """Return the bytes of memory that a process uses; 0 if it has ended, or outside Linux."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return 0
    return sum(int(line.split()[1]) << 10 for line in lines if line.startswith(USED_MEMORY))


def check_result(size: int) -> None:
    """Raise InputError if a result has too many bytes."""
    if size >= MAX_RESULT_BYTES:
        sizes = f"{size / 2**20:.3g} MiB in all its formats, more than {MAX_RESULT_BYTES >> 20}"
        raise InputError(f"the result has {sizes}, {LIMIT}: {ADVICE}")
