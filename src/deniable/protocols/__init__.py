"""Protocols: which parts of a value each client reports, in which slots, at which ε."""

from typing import TYPE_CHECKING

from deniable.lazy import lazy_exports
from deniable.protocols.alphabet import Alphabet
from deniable.protocols.base import Part, Protocol, from_canonical, register
from deniable.protocols.single import Single

if TYPE_CHECKING:
    from deniable.protocols.bins import Bins
    from deniable.protocols.ngrams import NGrams
    from deniable.protocols.prefixes import Prefixes

__all__ = [
    "Alphabet",
    "Bins",
    "NGrams",
    "Part",
    "Prefixes",
    "Protocol",
    "Single",
    "from_canonical",
    "register",
]

# Clients of surveys with known dictionaries need none of these.
__getattr__ = lazy_exports(
    __name__,
    {
        "deniable.protocols.bins": ["Bins"],
        "deniable.protocols.ngrams": ["NGrams"],
        "deniable.protocols.prefixes": ["Prefixes"],
    },
)
