"""What is asked of each client about one value: which parts, in which slots, at which ε."""

from deniable.protocols.alphabet import Alphabet
from deniable.protocols.base import ClearField, Part, Protocol, Slot
from deniable.protocols.ngrams import NGrams
from deniable.protocols.prefixes import Prefixes
from deniable.protocols.registry import from_canonical
from deniable.protocols.single import Single

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
