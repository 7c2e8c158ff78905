"""Records with one entry per string."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Self

import numpy as np

from deniable.kernels.array_types import Bytes, Floats, Indices, Int64s, Mask
from deniable.protocols.alphabet import PAD, TextProtocol

Rows = Bytes
"""u8[n, M]: strings as symbols, padded to the maximum length M."""
TYPICAL_ROWS = 20


def random_rows(protocol: TextProtocol) -> Rows:
    """Return strings of half the maximum length, of random characters: always the same ones."""
    rows = np.full((TYPICAL_ROWS, protocol.max_length), PAD, np.uint8)
    half = -(-protocol.max_length // 2)
    content = np.frombuffer(protocol.alphabet.content, np.uint8)
    rows[:, :half] = np.random.default_rng(0).choice(content, (TYPICAL_ROWS, half))
    return rows


@dataclass(frozen=True, eq=False)
class StringArrays:
    """Base of records whose fields are all arrays with one entry per string."""

    rows: Rows

    def __len__(self) -> int:
        return len(self.rows)

    def take(self, chosen: Indices | Int64s | Mask) -> Self:
        """Return the strings with these indices, or where a bool[n] is true."""
        return type(self)(*(vars(self)[each.name][chosen] for each in fields(self)))

    @classmethod
    def joined(cls, parts: Sequence[Self]) -> Self:
        """Return the strings of all parts, in order."""
        names = [each.name for each in fields(cls)]
        return cls(*(np.concatenate([vars(part)[name] for part in parts]) for name in names))


@dataclass(frozen=True, eq=False)
class StringTests(StringArrays):
    """Outcomes of tests of strings.

    p_value, cutoff : float64[n], each p-value, and the largest one at which the string is accepted
    """

    p_value: Floats
    cutoff: Floats

    @classmethod
    def none(cls, length: int) -> Self:
        """Return an empty record of strings of this maximum length."""
        return cls(np.empty((0, length), np.uint8), *(np.empty(0) for _ in fields(cls)[1:]))

    @property
    def passed(self) -> Mask:
        """bool[n]: whether each string is accepted."""
        return self.p_value <= self.cutoff
