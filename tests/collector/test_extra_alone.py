"""The `collector` extra alone is enough to serve: nothing of the analysis is imported."""

from __future__ import annotations

import subprocess
import sys

SCRIPT = """
import sys
for name in ("scipy", "numba", "sklearn", "matplotlib", "distributed", "threadpoolctl"):
    sys.modules[name] = None  # importing it raises ImportError
import deniable.collector.app, deniable.collector.server, deniable.render.html
import deniable.cli.collector_commands
"""


def test_the_collector_runs_without_the_analysis_extra() -> None:
    done = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
