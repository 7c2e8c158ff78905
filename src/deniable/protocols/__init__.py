"""What is asked of each client about one value: which parts, in which slots, at which ε."""

from typing import TYPE_CHECKING

from deniable.lazy import lazy_exports
from deniable.protocols.alphabet import Alphabet, TextProtocol
from deniable.protocols.base import ClearField, Part, Protocol, Slot, from_canonical, register
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
    "TextProtocol",
    "from_canonical",
    "register",
]

# A client of a plain survey never needs these.
__getattr__ = lazy_exports(
    __name__,
    {
        "deniable.protocols.ngrams": ["NGrams"],
        "deniable.protocols.prefixes": ["Prefixes"],
    },
)
