"""The code that runs on a person's device. Standard library only.

What only sending needs is imported when it is first used: an answer is ready sooner.
"""

from typing import TYPE_CHECKING, Any

from deniable.client.client import Client
from deniable.client.ledger import Ledger
from deniable.client.secret import load_or_create_secret, load_secret, new_secret

if TYPE_CHECKING:
    from deniable.client.fetch import fetch_survey
    from deniable.client.outbox import Outbox
    from deniable.client.sender import Sender, Sent

__all__ = [
    "Client",
    "Ledger",
    "Outbox",
    "Sender",
    "Sent",
    "fetch_survey",
    "load_or_create_secret",
    "load_secret",
    "new_secret",
]

_LATER = {
    "Outbox": "deniable.client.outbox",
    "Sender": "deniable.client.sender",
    "Sent": "deniable.client.sender",
    "fetch_survey": "deniable.client.fetch",
}


def __getattr__(name: str) -> Any:
    if name not in _LATER:
        raise AttributeError(f"module 'deniable.client' has no attribute {name!r}")
    import importlib

    return getattr(importlib.import_module(_LATER[name]), name)
