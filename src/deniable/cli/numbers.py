"""Numbers as people type them."""

from __future__ import annotations

import click


def a_share(text: str) -> float:
    """A share of the clients: 0.001 or 0.1%."""
    try:
        found = float(text.removesuffix("%")) / (100 if text.endswith("%") else 1)
    except ValueError:
        found = -1.0
    if not 0 < found < 1:
        raise click.BadParameter(
            f"expected a share between 0 and 1, such as 0.001 or 0.1%; got {text!r}"
        )
    return found


def a_count(text: str) -> int:
    """A number of clients, also as 1e6 or 1,000,000."""
    try:
        found = float(text.replace(",", ""))
    except ValueError:
        found = 0.0
    if not 1 <= found < 1e12:
        raise click.BadParameter(
            f"expected a number from 1 to 10^12, such as 1000000 or 1e6; got {text!r}"
        )
    return round(found)
