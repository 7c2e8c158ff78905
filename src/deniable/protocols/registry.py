"""From a published protocol back to the object."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from deniable import mechanisms
from deniable.errors import InputError
from deniable.protocols.alphabet import Alphabet
from deniable.protocols.base import Protocol
from deniable.protocols.single import Single


def from_canonical(data: Mapping[str, Any]) -> Protocol:
    """The protocol that `Protocol.canonical` described; every key must be one it knows."""
    rest = dict(data)
    name = rest.pop("name", None)
    try:
        if name == "single":
            return Single(mechanisms.from_canonical(rest.pop("mechanism")), **rest)
        if name in ("ngrams", "prefixes"):
            rest["alphabet"] = Alphabet(rest["alphabet"])
        if name == "ngrams":
            from deniable.protocols.ngrams import NGrams

            rest["full"] = mechanisms.from_canonical(rest["full"])
            rest["grams"] = tuple(mechanisms.from_canonical(m) for m in rest["grams"])
            return NGrams(**rest)
        if name == "prefixes":
            from deniable.protocols.prefixes import Level, Prefixes

            rest["mechanism"] = mechanisms.from_canonical(rest["mechanism"])
            rest["levels"] = tuple(Level(*level) for level in rest["levels"])
            return Prefixes(**rest)
    except (KeyError, TypeError) as error:
        raise InputError(f"a published {name} protocol cannot be read: {error}") from None
    raise InputError(f"expected a protocol single, ngrams or prefixes, got {name!r}")
