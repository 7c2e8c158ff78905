"""The `deniable` command. Heavy imports stay inside commands, so that --help is quick."""

from __future__ import annotations

import gc
import sys

from deniable.errors import MissingPackage
from deniable.extras import needs_packages


def main() -> None:
    """Run the command line; without the `cli` extra, say how to install it."""
    try:
        with needs_packages("the command line", extra="cli"):
            from deniable.cli.app import app
    except MissingPackage as error:
        sys.exit(str(error))
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        sys.exit(130)
    try:
        app(prog_name="deniable")
    finally:
        gc.freeze()  # the process ends: there is no need to look for garbage in all modules
