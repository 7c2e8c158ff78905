"""Answers as people type them."""

from __future__ import annotations

from deniable.errors import InputError

TRUTH = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}


def typed(text: str, kind: str, where: str) -> str | bool:
    """Return the answer that this text is to a question of this kind."""
    if kind != "boolean":
        return text
    if text.lower() not in TRUTH:
        raise InputError(f"{where}: expected yes, no, true, false, 1 or 0; got {text!r}")
    return TRUTH[text.lower()]
