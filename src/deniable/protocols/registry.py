"""From a published protocol back to the object, by its name."""

from __future__ import annotations

from deniable.errors import InputError
from deniable.lazy import Registry
from deniable.mechanisms.base import Settings
from deniable.protocols.base import Protocol

# These are imported when a survey has them: a client of a plain survey never does.
LATER = {"ngrams": "deniable.protocols.ngrams", "prefixes": "deniable.protocols.prefixes"}
NAMES = Registry[Protocol]("protocol", lambda cls: cls.name, LATER)
register = NAMES.register


def from_canonical(data: Settings) -> Protocol:
    """The protocol that `Protocol.canonical` described; every key must be one it knows."""
    settings = dict(data)
    name = settings.pop("name", None)
    cls = NAMES[name]
    try:
        return cls.from_settings(settings)
    except (KeyError, TypeError) as error:
        raise InputError(f"a published {name} protocol cannot be read: {error}") from None
