"""What observers learn: of the shuffled store as a whole, and of one client by guessing.

Names are imported on first use, because only some of them need NumPy.
"""

from typing import TYPE_CHECKING

from deniable.lazy import lazy_exports

if TYPE_CHECKING:
    from deniable.observers.amplification import Amplification, amplified
    from deniable.observers.guessing import Guesses, guessed

__all__ = ["Amplification", "Guesses", "amplified", "guessed"]

_LATER = {
    "deniable.observers.amplification": ["Amplification", "amplified"],
    "deniable.observers.guessing": ["Guesses", "guessed"],
}
__getattr__ = lazy_exports(__name__, _LATER)
