"""Pair counts: all that a joint table from counts needs to know about the reports.

For each stratum, they say how often each bit of one question and each bit of another were set in
the same report, and how often each bit was set. Like bit counts, they can be added over shards,
days and machines. Their size does not depend on the number of reports, which need not be kept.
"""

from __future__ import annotations

import zipfile
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from deniable.errors import InputError
from deniable.kernels.array_types import Int64s
from deniable.results.rows import ComparedByFields

FORMAT = "deniable-pair-counts/1"
ARRAYS = ("both", "first", "second", "total")
TEXTS = 5
"""Number of texts in a file: format, survey, two questions, and origin."""
MAX_REPORTS = 1 << 53
"""Largest number of reports: sums of counts stay exact in 64 bits, as integers and as floats."""
MAX_FILE_BYTES = 1 << 30
"""Largest size of an unpacked file: twice that of the largest counts that `pair_counts` makes."""


@dataclass(frozen=True, eq=False)
class PairCounts(ComparedByFields):
    """Counts of the reports of two questions of one survey.

    A stratum is a pair of slots, one per question, and a cohort that both questions share.

    Parameters
    ----------
    survey : str
        Digest of the published survey, in hexadecimal.
    questions : tuple of str
        Names of the two questions.
    both : int64 array of shape (S, k, l)
        Reports of stratum s with bit a of the first question and bit b of the second.
    first : int64 array of shape (S, k)
        Reports of stratum s with bit a of the first question.
    second : int64 array of shape (S, l)
        Reports of stratum s with bit b of the second question.
    total : int64 array of shape (S,)
        Reports of stratum s.
    origin : str, default ""
        Where the reports came from.

    Raises
    ------
    InputError
        If shapes do not match, or the arrays cannot be counts.

    Examples
    --------
    >>> import numpy as np
    >>> counts = PairCounts(
    ...     "00",
    ...     ("x", "y"),
    ...     both=np.array([[[1]]]),
    ...     first=np.array([[1]]),
    ...     second=np.array([[1]]),
    ...     total=np.array([2]),
    ... )
    >>> (counts + counts).reports
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
                raise InputError(f"{name} must hold integer counts, got {array.dtype}")
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
            raise InputError(
                "these arrays are not counts: 0 <= both <= first, second <= total does not hold"
            )
        if self.total.sum(dtype=np.float64) > MAX_REPORTS:
            raise InputError(f"these arrays count more than {MAX_REPORTS:,} reports, the maximum")

    def __repr__(self) -> str:
        return f"<PairCounts {' × '.join(self.questions)}: {self.reports:,} reports>"

    @property
    def reports(self) -> int:
        """Number of reports, N."""
        return int(self.total.sum())

    @property
    def nbytes(self) -> int:
        """Memory that the arrays take, in bytes."""
        return sum(a.nbytes for a in (self.both, self.first, self.second, self.total))

    def __add__(self, other: PairCounts) -> PairCounts:
        """Return the counts of both sets of reports together."""
        if not isinstance(other, PairCounts):
            return NotImplemented
        mine, theirs = ((c.survey, c.questions, c.both.shape) for c in (self, other))
        if mine != theirs:
            raise InputError(
                f"cannot add counts of {' × '.join(other.questions)} (digest {other.survey[:12]}) "
                f"to counts of {' × '.join(self.questions)} (digest {self.survey[:12]}): counts "
                "must be of the same questions of one survey, in the same order"
            )
        origins = dict.fromkeys(o for o in (self.origin, other.origin) if o)
        sums = {name: getattr(self, name) + getattr(other, name) for name in ARRAYS}
        return replace(self, origin="; ".join(origins), **sums)

    def save(self, path: str | Path) -> None:
        """Write the counts to a compressed .npz file.

        Parameters
        ----------
        path : str or Path
            File to write; its name must end in .npz.

        Raises
        ------
        InputError
            If the file's name has another extension.
        """
        if Path(path).suffix != ".npz":
            raise InputError(f"the file's name must end in .npz, got {path}")
        arrays = {n: _narrow(getattr(self, n)) for n in ARRAYS}
        header = np.array([FORMAT, self.survey, *self.questions, self.origin])
        np.savez_compressed(Path(path), said=header, **arrays)  # type: ignore[arg-type]

    @classmethod
    def load(cls, path: str | Path) -> PairCounts:
        """Read counts that `save` wrote.

        Parameters
        ----------
        path : str or Path
            File to read.

        Returns
        -------
        PairCounts
            The counts.

        Raises
        ------
        InputError
            If the file holds no pair counts.
        """
        (form, survey, x, y, origin), arrays = _unpacked(Path(path))
        if form != FORMAT:
            raise InputError(f"{path} has the format {form}, but this version reads {FORMAT}")
        try:
            return cls(survey, (x, y), **arrays, origin=origin)
        except InputError as error:
            raise InputError(f"{path}: {error}") from None


def _unpacked(path: Path) -> tuple[list[str], dict[str, Int64s]]:
    """Return the texts and arrays of a file; raise InputError if it is damaged or too large."""
    size = 0
    with path.open("rb") as raw, suppress(Exception):  # a damaged file may raise anything
        size = sum(member.file_size for member in zipfile.ZipFile(raw).infolist())
        if size <= MAX_FILE_BYTES:
            raw.seek(0)
            file = np.load(raw, allow_pickle=False)
            texts = [str(text) for text in file["said"]]
            if len(texts) == TEXTS:
                return texts, {name: file[name] for name in ARRAYS}
    if size > MAX_FILE_BYTES:
        raise InputError(
            f"{path} would take {size:,} bytes unpacked, more than the limit of "
            f"{MAX_FILE_BYTES:,}: it is damaged, or not a file that deniable count wrote"
        )
    raise InputError(
        f"{path} does not hold pair counts, which deniable count writes, or it is damaged"
    )


def _narrow(array: Int64s) -> NDArray[np.unsignedinteger]:
    """Return an array in the smallest unsigned type that can hold its values."""
    return array.astype(np.min_scalar_type(int(array.max(initial=0))))
