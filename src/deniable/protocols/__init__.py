"""What is asked of each client about one value: which parts, in which slots, at which ε."""

from typing import TYPE_CHECKING, Any

from deniable.protocols.alphabet import Alphabet
from deniable.protocols.base import ClearField, Part, Protocol, Slot
from deniable.protocols.registry import from_canonical
from deniable.protocols.single import Single

if TYPE_CHECKING:
    from deniable.protocols.ngrams import NGrams
    from deniable.protocols.prefixes import Prefixes

__all__ = [
    "Alphabet",
    "ClearField",
    "NGrams",
    "Part",
    "Prefixes",
    "Protocol",
    "Single",
    "Slot",
    "from_canonical",
]


def __getattr__(name: str) -> Any:
    # Imported when first asked for: a client of a plain survey never does.
    if name not in ("NGrams", "Prefixes"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"deniable.protocols.{name.lower()}"), name)
