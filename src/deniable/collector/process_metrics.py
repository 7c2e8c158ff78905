"""Metrics of the process: its memory, its processor time and its open files.

Names and meanings are those of Prometheus' own client libraries. Connections are open files, so
`process_open_fds` shows them.
"""

from __future__ import annotations

import os
import time
from contextlib import suppress
from pathlib import Path

START_TIME = time.time()
PROC = Path("/proc/self")

Metric = tuple[str, str, float]
"""Type, help and value."""


def process_metrics() -> dict[str, Metric]:
    """Return metrics of this process, by name; where there is no /proc, some are left out."""
    found: dict[str, Metric] = {
        "process_start_time_seconds": ("gauge", "Start of the process, in Unix time.", START_TIME),
        "process_cpu_seconds_total": ("counter", "Processor time used.", time.process_time()),
    }
    with suppress(OSError, ModuleNotFoundError):
        import resource

        pages = int((PROC / "statm").read_text().split()[1])
        memory = float(pages * os.sysconf("SC_PAGE_SIZE"))
        files, limit = len(os.listdir(PROC / "fd")), resource.getrlimit(resource.RLIMIT_NOFILE)[0]
        found |= {
            "process_resident_memory_bytes": ("gauge", "Memory in use.", memory),
            "process_open_fds": ("gauge", "Open files and connections.", files),
            "process_max_fds": ("gauge", "Largest number of open files.", limit),
        }
    return found
