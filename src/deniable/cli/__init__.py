"""The `deniable` command. Heavy imports stay inside commands, so that --help is quick."""

from __future__ import annotations

import sys


def main() -> None:
    """Run the command line; without the `cli` extra, say how to install it."""
    try:
        from deniable.cli.app import app
    except ModuleNotFoundError as error:
        if error.name not in ("click", "rich"):
            raise
        sys.exit("the command line needs the cli extra: pip install 'deniable[cli]'")
    except KeyboardInterrupt:
        sys.exit(130)
    app(prog_name="deniable")
