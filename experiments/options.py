"""The command line of an experiment: options that all of them have, and the data they write."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from experiments.paper.records import Record


def arguments(text: str | None, *, seed: int, **more: dict[str, Any]) -> argparse.Namespace:
    """Parse --quick, --seed, -o, and the options of the experiment (name=settings).

    text : the description, shown by --help
    """
    parser = argparse.ArgumentParser(
        description=text, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="run few trials, to see how it works")
    parser.add_argument("--seed", type=int, default=seed, help=f"default: {seed}")
    parser.add_argument("-o", "--output", type=Path, help="write the data to this folder, as JSON")
    for name, settings in more.items():
        parser.add_argument(f"--{name.replace('_', '-')}", **settings)
    return parser.parse_args()


def finish(record: Record, options: argparse.Namespace) -> None:
    """Write the data of the experiment, if -o was given."""
    if options.output:
        record.write(options.output)
