"""Local hashes: what reports that are one number each say of candidates.

A report's stratum is a slot and a family of hash functions, and its line is in the clear; see
`mechanisms.local_hash`. Given its string a client sends the string's number with probability q, and
any other with (1 − q)/(g − 1). A string that nobody listed has some number, each as likely as any
other over lines and families: 1/g.

Marginals: a report *supports* the cells that its line takes to its number, one in g of them. The
support of a cell is linear in what clients hold, as a bit count is, with p = 1/g, and the supports
of two cells are uncorrelated unless they differ in the last digit only. So the regression of bit
counts serves here too, on the candidates' cells and some others which show how much strings that
nobody listed scatter.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from deniable.errors import InputError
from deniable.inference.marginal.bit_counts import BitCounts
from deniable.inference.marginal.design import BloomDesign
from deniable.kernels.hashing.lines import digits_of
from deniable.kernels.likelihood.hash_rows import line_support

Cells = NDArray[np.int32]
BACKGROUND = 1024
"""Cells beside the candidates' that are counted in every stratum."""


@dataclass(frozen=True, eq=False)
class HashDesign:
    """Candidates as cells.

    cells : int32[S, m], in 0..g^d-1, −1 where a stratum's reports say nothing of the candidate;
    values : g; digits : d; keep : q, the probability of the client's own number;
    slot : int64[S], of each stratum; labels : the m candidates, all different.
    """

    cells: Cells
    values: int
    digits: int
    keep: float
    slot: NDArray[np.int64]
    labels: tuple[str, ...]

    def __post_init__(self) -> None:
        """Validate shapes and ranges."""
        if self.cells.ndim != 2 or self.cells.shape[1] != len(self.labels):
            raise InputError(
                f"expected cells[strata, {len(self.labels)}], got shape {self.cells.shape}"
            )
        if self.slot.shape != self.cells.shape[:1]:
            raise InputError(
                f"expected a slot for each of {len(self.cells)} strata, got {self.slot.shape}"
            )
        if not 1 / self.values < self.keep < 1:
            raise InputError(f"expected q above 1/{self.values} and below 1, got {self.keep}")
        if self.cells.size and not -1 <= self.cells.min() <= self.cells.max() < self.all_cells:
            raise InputError(
                f"expected cells in -1..{self.all_cells - 1}, got "
                f"{self.cells.min()}..{self.cells.max()}"
            )

    @property
    def strata(self) -> int:
        """How many strata, S."""
        return int(self.cells.shape[0])

    @property
    def candidates(self) -> int:
        """How many candidates, m."""
        return int(self.cells.shape[1])

    @property
    def all_cells(self) -> int:
        """Cells of a stratum, g^d."""
        return int(self.values**self.digits)

    @property
    def lines(self) -> int:
        """Lines of a stratum, g^(d−1)."""
        return int(self.values ** (self.digits - 1))

    @cached_property
    def line_digits(self) -> NDArray[np.int64]:
        """int64[lines, d - 1]."""
        return digits_of(np.arange(self.lines), self.values, self.digits - 1)

    @cached_property
    def cell_digits(self) -> NDArray[np.int64]:
        """int64[S, m, d]."""
        return digits_of(self.cells, self.values, self.digits)

    @property
    def chance(self) -> NDArray[np.float64]:
        """float64[3]: of the string's own number, of another, and of one that is not known."""
        other = (1 - self.keep) / (self.values - 1)
        return np.array([self.keep, other, 1 / self.values])

    def take(self, candidates: NDArray[np.intp]) -> HashDesign:
        """Some candidates, in the order given."""
        labels = tuple(self.labels[i] for i in candidates)
        return replace(self, cells=np.ascontiguousarray(self.cells[:, candidates]), labels=labels)


@dataclass(frozen=True, eq=False)
class HashReports:
    """The numbers that were sent, with where each came from: (stratum·lines + line)·g + number.

    places : int64 arrays, in any order. Those of disjoint sets of reports add.
    """

    places: tuple[NDArray[np.int64], ...]

    @property
    def reports(self) -> int:
        """How many."""
        return sum(map(len, self.places))

    def __add__(self, other: HashReports) -> HashReports:
        """Return both sets of reports together."""
        return HashReports(self.places + other.places)

    @cached_property
    def _sorted(self) -> NDArray[np.int64]:
        return np.sort(np.concatenate(self.places)) if self.places else np.zeros(0, np.int64)

    def counted(self, stratum: int, size: int) -> NDArray[np.int64]:
        """int64[size], how often each of a stratum's lines and numbers was sent."""
        low, high = np.searchsorted(self._sorted, (stratum * size, (stratum + 1) * size))
        return np.bincount(self._sorted[low:high] - stratum * size, minlength=size)


@dataclass(frozen=True, eq=False)
class HashReportCounts:
    """The same as counts: int64[S, lines·g]."""

    counts: NDArray[np.int64]

    @property
    def reports(self) -> int:
        """How many."""
        return int(self.counts.sum())

    def counted(self, stratum: int, size: int) -> NDArray[np.int64]:
        """int64[size], how often each of a stratum's lines and numbers was sent."""
        return self.counts[stratum, :size]


def support_counts(
    sent: HashReports | HashReportCounts, hashed: HashDesign
) -> tuple[BitCounts, BloomDesign]:
    """Counts and design for `estimate_marginal`: strata of which no candidate is told are left out.

    A "bit" is a cell: in each stratum all that candidates fall in, and others up to the same number
    everywhere.
    """
    told = np.flatnonzero((hashed.cells >= 0).any(axis=1) | (hashed.candidates == 0))
    here = [np.unique(hashed.cells[s][hashed.cells[s] >= 0]) for s in told]
    most = max((len(cells) for cells in here), default=0)
    width = min(hashed.all_cells, most + BACKGROUND)
    spare = np.random.default_rng(0xCE11).permutation(hashed.all_cells)[:width]
    size = hashed.lines * hashed.values
    ones, total = np.zeros((len(told), width), np.int64), np.zeros(len(told), np.int64)
    positions = np.full((len(told), hashed.candidates, 1), -1, np.int32)
    for i, s in enumerate(told):
        others = spare[~np.isin(spare, here[i])][: width - len(here[i])]
        cells = np.sort(np.concatenate([here[i], others]))
        counted = sent.counted(int(s), size)
        line_support(
            counted.reshape(hashed.lines, hashed.values), hashed.line_digits,
            digits_of(cells, hashed.values, hashed.digits), ones[i],
        )  # fmt: skip
        total[i] = counted.sum()
        known = hashed.cells[s] >= 0
        positions[i, known, 0] = np.searchsorted(cells, hashed.cells[s][known])
    design = BloomDesign(
        positions, width, 1 / hashed.values, hashed.keep, hashed.labels, hashed.slot[told]
    )
    return BitCounts(ones, total), design
