"""Strings reported by local hashing: what reports that are one number each say of candidates.

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

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial
from typing import NoReturn, cast

import numpy as np

from deniable.columns import Column
from deniable.columns.batch import numbers
from deniable.compute.arrays import ArrayKernels, Likelihood
from deniable.compute.cpu.array_kernels import CPU_KERNELS
from deniable.errors import InputError
from deniable.inference.marginal.bit_counts import BitCounts
from deniable.inference.marginal.design import BloomDesign
from deniable.inference.marginal.detection import Correction
from deniable.inference.marginal.estimate import estimate_marginal
from deniable.inference.models.base import Candidates, informative_rows, register
from deniable.inference.models.strings import StringModel, hashed_positions
from deniable.kernels.array_types import (
    Bytes,
    DeviceArray,
    Floats,
    Indices,
    Int32s,
    Int64s,
    Integers,
    Mask,
)
from deniable.kernels.hashing.lines import digits_of, line_numbers
from deniable.kernels.likelihood.hash_rows import HashTables, SentNumbers, line_support
from deniable.mechanisms import LocalHash
from deniable.results.marginal import Marginal

BACKGROUND = 1024
"""Cells beside the candidates' that are counted in every stratum."""


@dataclass(frozen=True, eq=False)
class HashReports:
    """The numbers that were sent, with where each came from: (stratum·lines + line)·g + number.

    places : int64 arrays, in any order. Those of disjoint sets of reports add.
    weight : int64, how many reports each place of one array in increasing order stands for; None
        for one each
    """

    places: tuple[Int64s, ...]
    weight: Int64s | None = None

    @property
    def reports(self) -> int:
        """How many."""
        return sum(map(len, self.places)) if self.weight is None else int(self.weight.sum())

    def __add__(self, other: HashReports) -> HashReports:
        """Return both sets of reports together."""
        return HashReports(self.places + other.places)

    def as_if_from(self, reports: float) -> HashReports:
        """Return the same reports: without permanent noise a client's reports are independent."""
        return self

    @cached_property
    def _sorted(self) -> Int64s:
        return np.sort(np.concatenate([np.zeros(0, np.int64), *self.places]))

    def counted(self, stratum: int, size: int) -> Int64s:
        """int64[size], how often each of a stratum's lines and numbers was sent."""
        low, high = np.searchsorted(self._sorted, (stratum * size, (stratum + 1) * size))
        weight = None if self.weight is None else self.weight[low:high]
        counts = np.bincount(self._sorted[low:high] - stratum * size, weight, size)
        return counts.astype(np.int64, copy=False)


@dataclass(frozen=True, eq=False)
class HashModel(StringModel[HashReports]):
    """Strings as cells, 0..g^d-1, one hash each.

    values : g; digits : d; keep : q, the probability of the client's own number
    """

    values: int
    digits: int
    keep: float

    exclusive = True

    @classmethod
    def of(cls, candidates: Candidates) -> HashModel:
        mechanism = cast(LocalHash, candidates.question.protocol.mechanisms[0])
        return cls(
            hashed_positions(candidates),
            mechanism.values,
            mechanism.digits,
            float(mechanism.noise.q_star),
            labels=candidates.names,
            slot=np.repeat(np.arange(len(candidates.informative)), mechanism.families),
        )

    def __post_init__(self) -> None:
        """Validate shapes and ranges."""
        if not 1 / self.values < self.keep < 1:
            raise InputError(f"expected q above 1/{self.values} and below 1, got {self.keep}")
        self.check_positions(self.all_cells)

    @property
    def cells(self) -> Int32s:
        """int32[S, m], −1 where a stratum's reports say nothing of the string."""
        return self.positions[:, :, 0]

    @property
    def all_cells(self) -> int:
        """Cells of a stratum, g^d."""
        return int(self.values**self.digits)

    @property
    def lines(self) -> int:
        """Lines of a stratum, g^(d−1)."""
        return int(self.values ** (self.digits - 1))

    @cached_property
    def line_digits(self) -> Int64s:
        """int64[lines, d - 1]."""
        return digits_of(np.arange(self.lines), self.values, self.digits - 1)

    @cached_property
    def cell_digits(self) -> Int64s:
        """int64[S, m, d]."""
        return digits_of(self.cells, self.values, self.digits)

    @property
    def chance(self) -> Floats:
        """float64[3]: of the string's own number, of another, and of one that is not known."""
        other = (1 - self.keep) / (self.values - 1)
        return np.array([self.keep, other, 1 / self.values])

    # --- marginals ------------------------------------------------------------------------------

    def counter(self) -> Callable[[Column], HashReports]:
        return partial(_count, self.informative_strata, self.lines, self.values)

    def counts_from_bits(self, counts: BitCounts) -> HashReports:
        kept = counts.ones * np.repeat(self.informative_strata, self.lines)[:, None]
        places = np.flatnonzero(kept)
        return HashReports((places,), kept.ravel()[places])

    def marginal(self, counts: HashReports, *, alpha: float, correction: Correction) -> Marginal:
        support, design = support_counts(counts, self)
        return estimate_marginal(support, design, alpha=alpha, correction=correction)

    # --- likelihoods ----------------------------------------------------------------------------

    @cached_property
    def tables(self) -> HashTables:
        """What the kernels look up."""
        return HashTables(self.values, self.line_digits, self.cell_digits, self.chance)

    def string_rows(self, bits: Bytes, stratum: Integers, arrays: ArrayKernels) -> Likelihood:
        return arrays.hash_rows(self.tables, self._sent(bits, stratum))

    def mixture_log(
        self, bits: Bytes, stratum: Integers, share: Floats, arrays: ArrayKernels = CPU_KERNELS
    ) -> DeviceArray:
        return arrays.hash_mixture(self.tables, share, self._sent(bits, stratum))

    def _sent(self, bits: Bytes, stratum: Integers) -> SentNumbers:
        """Numbers, strata and lines of reports; stratum : integers[N], stratum·lines + line."""
        number = numbers(bits)
        if stratum.shape != number.shape:
            raise InputError(f"expected stratum as integers[{len(number)}], got {stratum.shape}")
        if number.size and (
            int(stratum.max()) >= self.strata * self.lines or int(number.max()) >= self.values
        ):
            raise InputError(
                f"expected strata below {self.strata * self.lines} and numbers below "
                f"{self.values}, got up to {int(stratum.max())} and {int(number.max())}"
            )
        return SentNumbers(number, *np.divmod(stratum.astype(np.int64), self.lines))

    # --- categories -----------------------------------------------------------------------------

    def theta(self, strata: Indices) -> Floats:
        own, another, unknown = self.chance
        family, line = np.divmod(strata, self.lines)
        slopes = self.line_digits[line][:, None]
        number = line_numbers(self.cell_digits[family], slopes, self.values)
        out = np.full((len(strata), self.candidates + 1, self.values), another)
        np.put_along_axis(out[:, :-1], number[:, :, None], own, axis=2)
        out[:, :-1][self.cells[family] < 0] = unknown
        out[:, -1] = unknown
        return out

    def product_other(self, question: str, counts: HashReports, estimate: Floats) -> NoReturn:
        raise InputError(
            f'question {question!r} is reported by local hashing: other="product", the paper\'s '
            'model of bits, does not apply; leave it at "mixture"'
        )


def _count(strata: Mask, lines: int, values: int, column: Column) -> HashReports:
    some = informative_rows(column, strata, lines)
    return HashReports((some.stratum.astype(np.int64) * values + numbers(some.bits),))


def support_counts(sent: HashReports, hashed: HashModel) -> tuple[BitCounts, BloomDesign]:
    """Counts and design for `estimate_marginal`: uninformative strata are left out.

    A "bit" is a cell: in each stratum all that candidates fall in, and others up to the same number
    everywhere.
    """
    strata = np.flatnonzero(hashed.informative_strata)
    here = [np.unique(hashed.cells[s][hashed.cells[s] >= 0]) for s in strata]
    most = max((len(cells) for cells in here), default=0)
    width = min(hashed.all_cells, most + BACKGROUND)
    spare = np.random.default_rng(0xCE11).permutation(hashed.all_cells)[:width]
    size = hashed.lines * hashed.values
    ones, total = np.zeros((len(strata), width), np.int64), np.zeros(len(strata), np.int64)
    positions = np.full((len(strata), hashed.candidates, 1), -1, np.int32)
    for i, s in enumerate(strata):
        others = spare[~np.isin(spare, here[i])][: width - len(here[i])]
        cells = np.sort(np.concatenate([here[i], others]))
        counted = sent.counted(int(s), size)
        by_line = counted.reshape(hashed.lines, hashed.values)
        digits = digits_of(cells, hashed.values, hashed.digits)
        line_support(by_line, hashed.line_digits, digits, ones[i])
        total[i] = counted.sum()
        known = hashed.cells[s] >= 0
        positions[i, known, 0] = np.searchsorted(cells, hashed.cells[s][known])
    slot = None if hashed.slot is None else hashed.slot[strata]
    chances = (1 / hashed.values, hashed.keep)
    design = BloomDesign(positions, width, *chances, labels=hashed.labels, slot=slot)
    return BitCounts(ones, total), design


register("localhash", HashModel)
