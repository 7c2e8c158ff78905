"""Arrays with one entry per string."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Self

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Rows = NDArray[np.uint8]
"""u8[n, M]: strings as symbols, padded to the greatest length."""
Chosen = NDArray[np.intp] | NDArray[np.int64] | NDArray[np.bool_]
"""Some of n strings: their indices, or bool[n]."""


@dataclass(frozen=True, eq=False)
class StringArrays:
    """Base of records whose fields are all arrays with one entry per string."""

    rows: Rows

    def __len__(self) -> int:
        return len(self.rows)

    def take(self, chosen: Chosen) -> Self:
        """Return some of the strings."""
        return type(self)(*(vars(self)[each.name][chosen] for each in fields(self)))

    @classmethod
    def joined(cls, parts: Sequence[Self]) -> Self:
        """Return the strings of all parts, in order."""
        names = [each.name for each in fields(cls)]
        return cls(*(np.concatenate([vars(part)[name] for part in parts]) for name in names))


@dataclass(frozen=True, eq=False)
class FoundStrings(StringArrays):
    """Strings that passed their test.

    p_value, cutoff : float64[n], the p-value, and what it had to stay below
    """

    p_value: Floats
    cutoff: Floats

    @classmethod
    def none(cls, length: int) -> Self:
        """Return the record of no string at all."""
        return cls(np.empty((0, length), np.uint8), *(np.empty(0) for _ in fields(cls)[1:]))
