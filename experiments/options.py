"""The options that every experiment's command line has."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any


def arguments(text: str | None, *, seed: int, **more: dict[str, Any]) -> argparse.Namespace:
    """An experiment's command line: --quick, --seed, -o, and its own options (name=settings)."""
    parser = argparse.ArgumentParser(
        description=text, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="few replications, to see it run")
    parser.add_argument("--seed", type=int, default=seed)
    parser.add_argument("-o", "--output", type=Path, help="folder for the data, as JSON")
    for name, settings in more.items():
        parser.add_argument(f"--{name.replace('_', '-')}", **settings)
    return parser.parse_args()
