"""Answers of many clients: the distinct answers once, and one code per client."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Set
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from deniable.errors import InputError
from deniable.formatting import counted
from deniable.kernels.array_types import Int32s

NO_ANSWER = -1
"""Code of a client that gives no answer."""
Levels: TypeAlias = tuple[Any, ...]
"""Distinct answers, of the type that their question asks for."""


@dataclass(frozen=True, eq=False)
class Coded:
    """Answers of many clients as codes: client i answers levels[codes[i]].

    Parameters
    ----------
    levels : tuple
        Distinct answers.
    codes : ndarray of int32, shape (N,)
        Index into `levels` per client; −1 if the client gives no answer.

    Raises
    ------
    InputError
        If a code is outside `levels` or the codes are not int32.

    Examples
    --------
    >>> Coded.of(["b", "a", None, "b"])
    <Coded 4 answers, 2 distinct>
    >>> Coded.of(["b", "a", None, "b"]).codes
    array([ 0,  1, -1,  0], dtype=int32)
    """

    levels: Levels
    codes: Int32s

    def __post_init__(self) -> None:
        codes = self.codes
        if codes.ndim != 1 or codes.dtype != np.int32:
            raise InputError(f"codes must be int32[N], got {codes.dtype}{list(codes.shape)}")
        if codes.size and not -1 <= codes.min() <= codes.max() < len(self.levels):
            raise InputError(
                f"codes must be from -1 to {len(self.levels) - 1}, got {codes.min()} to "
                f"{codes.max()}"
            )

    def __repr__(self) -> str:
        return f"<Coded {counted(len(self), 'answer')}, {len(self.levels):,} distinct>"

    def __len__(self) -> int:
        return len(self.codes)

    @staticmethod
    def of(values: Coded | Iterable[object]) -> Coded:
        """Return any sequence of answers as codes.

        Parameters
        ----------
        values : Coded or iterable
            Answers in the order of the clients: a list, or a column of NumPy, Arrow, pandas or
            polars. None and NaN mean no answer.

        Returns
        -------
        Coded
            The same answers.

        Raises
        ------
        InputError
            If this is not a sequence of answers, such as a single text.
        """
        if isinstance(values, Coded):
            return values
        if isinstance(values, str | bytes | Mapping | Set) or not isinstance(values, Iterable):
            raise InputError(
                "the answers to a question must be a sequence with one answer per client, such as "
                f"a list or a column of a data frame, not {values!r:.60}"
            )
        names = ("to_pylist", "tolist", "to_list")  # Arrow, numpy and pandas, polars
        methods = [getattr(values, name) for name in names if hasattr(values, name)]
        items = list(methods[0]() if methods else values)
        index: dict[object, int] = {None: NO_ANSWER}
        try:
            # NaN, which pandas uses for a missing text, is not equal to itself.
            codes = [index.setdefault(v, len(index) - 1) if v == v else NO_ANSWER for v in items]
        except TypeError:
            if any(type(v).__name__ == "NAType" for v in items):  # pandas.NA has no truth value
                return Coded.of([None if type(v).__name__ == "NAType" else v for v in items])
            wrong = next((v for v in items if not isinstance(v, Hashable)), items)
            raise InputError(f"an answer must be a text or a boolean, not {wrong!r:.60}") from None
        levels = [v.item() if isinstance(v, np.generic) else v for v in index]
        return Coded(tuple(levels[1:]), np.array(codes, np.int32))
