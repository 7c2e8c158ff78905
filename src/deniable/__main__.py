"""`python -m deniable` is the command."""

from deniable.cli import main

main()
