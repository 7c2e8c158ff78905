"""Random number generators, as users give them."""

import numpy as np

from deniable.errors import InputError

Randomness = np.random.Generator | int | None
"""A generator, a seed, or None for the randomness of the system."""


def generator_of(rng: Randomness) -> np.random.Generator:
    """Return the generator itself, a new one with this seed, or one that is seeded at random.

    >>> int(generator_of(7).integers(100)), int(np.random.default_rng(7).integers(100))
    (94, 94)
    """
    try:
        return np.random.default_rng(rng)
    except (TypeError, ValueError):
        raise InputError(
            "rng must be None, an integer that is at least 0, or a numpy.random.Generator, "
            f"not {rng!r:.80}"
        ) from None
