"""Category model of strings reported by local hashing: each report is one number.

The stratum of a report is a slot and a family of hash functions. Its line is a clear field; see
`mechanisms.local_hash`. A client sends the number of its own string with probability q, and each
other number with probability (1 − q)/(g − 1). The number of an unlisted string is equally likely to
be any of the g numbers, over all lines and families.

Marginals: a report *supports* the cells that its line maps to its number, one in g of them. The
support of a cell is linear in the frequencies, as a bit count is, with p = 1/g, and the supports of
two cells are uncorrelated unless they differ in the last digit only. The regression of bit counts
therefore works here too. It uses the candidates' cells, and some others that show how much unlisted
strings scatter.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import NoReturn, cast

import numpy as np

from deniable.columns import Column
from deniable.columns.batch import packed_numbers
from deniable.errors import InputError
from deniable.inference.marginal.bit_counts import ONE_REPORT, BitCounts, Repetition
from deniable.inference.marginal.design import BloomDesign
from deniable.inference.marginal.detection import Correction
from deniable.inference.marginal.estimate import estimate_marginal
from deniable.inference.models.base import Candidates, informative_rows, register
from deniable.inference.models.likelihood import Likelihood
from deniable.inference.models.strings import StringModel, hashed_positions
from deniable.kernels.array_types import (
    Bytes,
    Floats,
    Indices,
    Int32s,
    Int64s,
    Integers,
    Mask,
)
from deniable.kernels.counting.cell_support import cell_support
from deniable.kernels.hashing.lines import digits_of, line_numbers
from deniable.kernels.likelihood import hash_rows
from deniable.kernels.likelihood.hash_rows import HashTables, SentNumbers
from deniable.mechanisms import LocalHash
from deniable.results.marginal import Marginal

BACKGROUND_CELLS = 1024
"""Number of cells of no candidate that are counted in each stratum."""


@dataclass(frozen=True, eq=False)
class HashReports:
    """Numbers that were reported, with stratum and line: (stratum·lines + line)·g + number.

    Parameters
    ----------
    places : tuple of int64 arrays
        These codes, in any order.
    weight : int64 array, optional
        Number of reports that each code stands for, if `places` is one array in increasing order.
        One each by default.
    repetition : Repetition
        Number of reports per client, and what they share. By default one report per client.
    """

    places: tuple[Int64s, ...]
    weight: Int64s | None = None
    repetition: Repetition = ONE_REPORT

    @property
    def reports(self) -> int:
        """Number of reports."""
        return sum(map(len, self.places)) if self.weight is None else int(self.weight.sum())

    def __add__(self, other: HashReports) -> HashReports:
        """Return two disjoint sets of reports together."""
        return HashReports(self.places + other.places)

    def repeated(self, repetition: Repetition) -> HashReports:
        """Return the same reports of clients that sent several each."""
        return replace(self, repetition=repetition)

    @cached_property
    def _sorted(self) -> Int64s:
        return np.sort(np.concatenate([np.zeros(0, np.int64), *self.places]))

    def stratum_counts(self, stratum: int, size: int) -> Int64s:
        """Return how often each line and number of a stratum was reported, int64[size]."""
        low, high = np.searchsorted(self._sorted, (stratum * size, (stratum + 1) * size))
        weight = None if self.weight is None else self.weight[low:high]
        counts = np.bincount(self._sorted[low:high] - stratum * size, weight, size)
        return counts.astype(np.int64, copy=False)


@dataclass(frozen=True, eq=False)
class HashModel(StringModel[HashReports]):
    """Model of strings by the cells 0..g^d − 1 that they are hashed to, one per stratum.

    Parameters
    ----------
    values : int
        Number of values that a report can have, g.
    digits : int
        Number of digits of a cell, d.
    keep : float
        Probability that a client reports the number of its own string, q.
    """

    values: int
    digits: int
    keep: float

    exclusive = True

    @classmethod
    def of(cls, candidates: Candidates) -> HashModel:
        """Return the model of a question's candidates."""
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
            raise InputError(f"q must be above 1/{self.values} and below 1, got {self.keep}")
        self.check_positions(self.all_cells)

    @property
    def cells(self) -> Int32s:
        """Cell of each string, int32[S, m]; −1 if a stratum has no evidence for the string."""
        return self.positions[:, :, 0]

    @property
    def all_cells(self) -> int:
        """Number of cells of a stratum, g^d."""
        return int(self.values**self.digits)

    @property
    def lines(self) -> int:
        """Number of lines of a stratum, g^(d−1)."""
        return int(self.values ** (self.digits - 1))

    @cached_property
    def line_digits(self) -> Int64s:
        """Digits of each line, int64[lines, d − 1]."""
        return digits_of(np.arange(self.lines), self.values, self.digits - 1)

    @cached_property
    def cell_digits(self) -> Int64s:
        """Digits of each string's cell, int64[S, m, d]."""
        return digits_of(self.cells, self.values, self.digits)

    @property
    def number_probabilities(self) -> Floats:
        """P(number) of the string's own number, of any other, and of an unknown string's."""
        other = (1 - self.keep) / (self.values - 1)
        return np.array([self.keep, other, 1 / self.values])

    @property
    def unlisted_bit_probability(self) -> float:
        """Probability that an unlisted string is hashed to a given number."""
        return 1 / self.values

    # --- marginals ------------------------------------------------------------------------------

    def counter(self) -> Callable[[Column], HashReports]:
        """Return a function that counts the reports of a batch."""
        return partial(_count, self.informative_strata, self.lines, self.values)

    def counts_from_bits(self, counts: BitCounts) -> HashReports:
        """Convert counts of all outcomes to the counts of this model."""
        kept = counts.ones * np.repeat(self.informative_strata, self.lines)[:, None]
        places = np.flatnonzero(kept)
        return HashReports((places,), kept.ravel()[places])

    def marginal(self, counts: HashReports, *, alpha: float, correction: Correction) -> Marginal:
        """Estimate how common each candidate is."""
        support, design = support_counts(counts, self)
        return estimate_marginal(support, design, alpha=alpha, correction=correction)

    # --- likelihoods ----------------------------------------------------------------------------

    @cached_property
    def tables(self) -> HashTables:
        """Lookup tables of the kernels."""
        return HashTables(
            self.values, self.line_digits, self.cell_digits, self.number_probabilities
        )

    def string_rows(self, bits: Bytes, stratum: Integers) -> Likelihood:
        """Return P(report | string) for each report."""
        out = Likelihood.empty(len(bits), self.candidates)
        hash_rows.number_rows(self._sent(bits, stratum), self.tables, out.rows, out.log_scale)
        return out

    def mixture_log_likelihood(self, bits: Bytes, stratum: Integers, share: Floats) -> Floats:
        """Return the log-likelihood of each report under a mixture of strings."""
        out = np.empty(len(bits))
        hash_rows.number_mixture(self._sent(bits, stratum), self.tables, share, out)
        return np.asarray(np.log(out))

    def _sent(self, bits: Bytes, stratum: Integers) -> SentNumbers:
        """Return numbers, strata and lines of reports; stratum : stratum·lines + line, [N]."""
        number = packed_numbers(bits)
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
        """Return P(outcome | string) in some strata, float64[S, m + 1, k]; last, unlisted ones."""
        own, another, unknown = self.number_probabilities
        family, line = np.divmod(strata, self.lines)
        slopes = self.line_digits[line][:, None]
        number = line_numbers(self.cell_digits[family], slopes, self.values)
        out = np.full((len(strata), self.candidates + 1, self.values), another)
        np.put_along_axis(out[:, :-1], number[:, :, None], own, axis=2)
        out[:, :-1][self.cells[family] < 0] = unknown
        out[:, -1] = unknown
        return out

    def product_other(self, question: str, counts: HashReports, estimate: Floats) -> NoReturn:
        """Raise InputError: the paper's model of bits does not apply to numbers."""
        raise InputError(
            f'question {question!r} is reported by local hashing: other="product", the paper\'s '
            'model of bits, does not apply; leave it at "mixture"'
        )


def _count(strata: Mask, lines: int, values: int, column: Column) -> HashReports:
    """Return the reports of the informative strata of a batch."""
    kept = informative_rows(column, strata, lines)
    return HashReports((kept.stratum.astype(np.int64) * values + packed_numbers(kept.bits),))


def support_counts(sent: HashReports, hashed: HashModel) -> tuple[BitCounts, BloomDesign]:
    """Return counts and design for `estimate_marginal`; uninformative strata are left out.

    A "bit" of these counts is a cell. Each stratum has all cells of candidates, and as many others
    as it takes to give all strata the same number of cells.
    """
    strata = np.flatnonzero(hashed.informative_strata)
    own = [np.unique(hashed.cells[s][hashed.cells[s] >= 0]) for s in strata]
    most = max((len(cells) for cells in own), default=0)
    width = min(hashed.all_cells, most + BACKGROUND_CELLS)
    spare = np.random.default_rng(0xCE11).permutation(hashed.all_cells)[:width]
    size = hashed.lines * hashed.values
    ones, total = np.zeros((len(strata), width), np.int64), np.zeros(len(strata), np.int64)
    positions = np.full((len(strata), hashed.candidates, 1), -1, np.int32)
    for i, s in enumerate(strata):
        others = spare[~np.isin(spare, own[i])][: width - len(own[i])]
        cells = np.sort(np.concatenate([own[i], others]))
        counts = sent.stratum_counts(int(s), size)
        by_line = counts.reshape(hashed.lines, hashed.values)
        digits = digits_of(cells, hashed.values, hashed.digits)
        ones[i] = cell_support(by_line, hashed.line_digits, digits)
        total[i] = counts.sum()
        known = hashed.cells[s] >= 0
        positions[i, known, 0] = np.searchsorted(cells, hashed.cells[s][known])
    slot = None if hashed.slot is None else hashed.slot[strata]
    chances = (1 / hashed.values, hashed.keep)
    design = BloomDesign(positions, width, *chances, labels=hashed.labels, slot=slot)
    return BitCounts(ones, total, sent.repetition), design


register("localhash", HashModel)
register("localhash-permanent", HashModel)
