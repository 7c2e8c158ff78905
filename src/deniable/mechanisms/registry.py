"""From a published mechanism back to the object, by its kind."""

from __future__ import annotations

from deniable.errors import InputError
from deniable.lazy import Registry
from deniable.mechanisms.base import Mechanism, Settings
from deniable.mechanisms.noise import Noise

# Local hashing is imported when a survey has it: most clients never do.
KINDS = Registry[Mechanism](
    "mechanism", lambda cls: cls.kind, {"localhash": "deniable.mechanisms.local_hash"}
)
register = KINDS.register


def from_canonical(data: Settings) -> Mechanism:
    """The mechanism that `Mechanism.canonical` described; every key must be one it knows."""
    settings = dict(data)
    kind = settings.pop("kind", None)
    cls = KINDS[kind]
    try:
        noise = Noise(settings.pop("flip"), settings.pop("p"), settings.pop("q"))
        return cls.from_settings(noise, settings)
    except (KeyError, TypeError) as error:
        raise InputError(f"a published {kind} mechanism cannot be read: {error}") from None
