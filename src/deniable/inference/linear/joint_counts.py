"""Pair counts: all that a joint table made from counts needs to know about the reports.

How often each bit of one question and each of another were set together, stratum by stratum, and
how often each was set at all. Like bit counts they add over shards, days and machines; their size
does not depend on the number of reports, which need not be kept.
"""

from __future__ import annotations

import zipfile
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from deniable.errors import InputError
from deniable.kernels.array_types import Int64s

FORMAT = "deniable-pair-counts/1"
ARRAYS = ("both", "first", "second", "total")


@dataclass(frozen=True, eq=False)
class PairCounts:
    """Counts of two questions of one survey.

    survey : the published survey's digest, in hexadecimals; questions : their names, in order
    both : int64[S, k, l], reports of stratum s with bit a of the first question and bit b of the
    second; first : int64[S, k] and second : int64[S, l], with each bit; total : int64[S], reports
    origin : what is known of where the reports came from

    A stratum is a pair of slots and a cohort of both questions.

    >>> one = PairCounts("00", ("x", "y"), *(np.ones(n, int) for n in ((1, 1, 1), (1, 1), (1, 1))),
    ...                  np.array([2]))
    >>> (one + one).reports
    4
    """

    survey: str
    questions: tuple[str, str]
    both: Int64s
    first: Int64s
    second: Int64s
    total: Int64s
    origin: str = ""

    def __post_init__(self) -> None:
        """Validate shapes, and that no pair was set more often than either of its bits."""
        for name in ARRAYS:
            array = np.ascontiguousarray(getattr(self, name))
            if array.dtype.kind not in "iu":
                raise InputError(f"expected {name} as counts, got {array.dtype}")
            object.__setattr__(self, name, array.astype(np.int64, copy=False))
        strata, *widths = self.both.shape if self.both.ndim == 3 else (-1, -1, -1)
        expected = ((strata, widths[0]), (strata, widths[1]), (strata,))
        got = (self.first.shape, self.second.shape, self.total.shape)
        if got != expected or len(self.questions) != 2:
            raise InputError(
                f"expected both[S, k, l], first[S, k], second[S, l], total[S] and two questions, "
                f"got shapes {self.both.shape}, {got} and {self.questions}"
            )
        if not (
            all((side <= self.total[:, None]).all() for side in (self.first, self.second))
            and all(
                (both >= 0).all() and (both <= np.minimum.outer(first, second)).all()
                for both, first, second in zip(self.both, self.first, self.second, strict=True)
            )
        ):
            raise InputError("expected 0 <= both <= first, second <= total: these are not counts")

    def __repr__(self) -> str:
        return f"<PairCounts {' × '.join(self.questions)}: {self.reports:,} reports>"

    @property
    def reports(self) -> int:
        """Reports over all strata, N."""
        return int(self.total.sum())

    @property
    def nbytes(self) -> int:
        """Bytes held."""
        return sum(a.nbytes for a in (self.both, self.first, self.second, self.total))

    def __add__(self, other: PairCounts) -> PairCounts:
        """Return the counts of both sets of reports together."""
        if not isinstance(other, PairCounts):
            return NotImplemented
        mine, theirs = ((c.survey, c.questions, c.both.shape) for c in (self, other))
        if mine != theirs:
            raise InputError(
                f"expected counts of {self!r}, survey {self.survey[:12]}, got {other!r}, survey "
                f"{other.survey[:12]}: only counts of the same questions of one survey add"
            )
        origins = dict.fromkeys(o for o in (self.origin, other.origin) if o)
        sums = {name: getattr(self, name) + getattr(other, name) for name in ARRAYS}
        return replace(self, origin="; ".join(origins), **sums)

    def save(self, path: str | Path) -> None:
        """Write a compressed .npz file."""
        if Path(path).suffix != ".npz":
            raise InputError(f"expected a file ending in .npz, got {path}")
        arrays = {n: _narrow(getattr(self, n)) for n in ARRAYS}
        said = np.array([FORMAT, self.survey, *self.questions, self.origin])
        np.savez_compressed(Path(path), said=said, **arrays)  # type: ignore[arg-type]

    @classmethod
    def load(cls, path: str | Path) -> PairCounts:
        """Read what `save` wrote."""
        try:
            with np.load(Path(path), allow_pickle=False) as file:
                form, survey, x, y, origin = (str(text) for text in file["said"])
                both, first, second, total = (file[name] for name in ARRAYS)
        except (ValueError, KeyError, AttributeError, EOFError, zipfile.BadZipFile) as error:
            raise InputError(f"{path} holds no pair counts: {error}") from None
        if form != FORMAT:
            raise InputError(f"{path}: expected {FORMAT}, got {form}")
        return cls(survey, (x, y), both, first, second, total, origin)


def _narrow(array: Int64s) -> NDArray[np.unsignedinteger]:
    """The same in the smallest unsigned type that holds it."""
    return array.astype(np.min_scalar_type(int(array.max(initial=0))))
