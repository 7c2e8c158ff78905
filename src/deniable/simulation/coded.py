"""Many answers of few kinds: the distinct answers once, and a code for each client."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from deniable.errors import InputError
from deniable.kernels.array_types import Int32s

NO_ANSWER = -1
Levels: TypeAlias = tuple[Any, ...]
"""Distinct answers, of the type that their question asks for."""


@dataclass(frozen=True, eq=False)
class Coded:
    """Client i answers levels[codes[i]], or nothing where the code is −1.

    >>> Coded.of(["b", "a", None, "b"])
    Coded(levels=('b', 'a'), codes=array([ 0,  1, -1,  0], dtype=int32))
    """

    levels: Levels
    codes: Int32s

    def __post_init__(self) -> None:
        codes = self.codes
        if codes.ndim != 1 or codes.dtype != np.int32:
            raise InputError(f"expected codes as int32[N], got {codes.dtype}{list(codes.shape)}")
        if codes.size and not -1 <= codes.min() <= codes.max() < len(self.levels):
            raise InputError(
                f"expected codes from -1 to {len(self.levels) - 1}, got {codes.min()} to "
                f"{codes.max()}"
            )

    def __len__(self) -> int:
        return len(self.codes)

    @staticmethod
    def of(values: Coded | Iterable[object]) -> Coded:
        """From any sequence: a list, a numpy, Arrow, pandas or polars column."""
        if isinstance(values, Coded):
            return values
        names = ("to_pylist", "tolist", "to_list")  # Arrow, numpy and pandas, polars
        ways = [getattr(values, name) for name in names if hasattr(values, name)]
        items: Iterable[object] = ways[0]() if ways else values
        index: dict[object, int] = {None: NO_ANSWER}
        # A NaN, pandas' missing text, is not equal to itself.
        codes = [index.setdefault(v, len(index) - 1) if v == v else NO_ANSWER for v in items]
        levels = tuple(index)[1:]
        return Coded(levels, np.array(codes, np.int32))
