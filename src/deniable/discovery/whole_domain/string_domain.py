"""Every string of a small domain: scored once, and given its share of α.

Strings are rows of symbols, padded. Those of one length are divided into ranges that share their
first symbols, and one call of a kernel scores a range.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from deniable.compute.progress import report_progress
from deniable.discovery.shared.string_models import CharacterModel, Lexicon, held_out_log_p
from deniable.discovery.shared.strings import Rows
from deniable.discovery.shared.tables import StringEvidence
from deniable.errors import InputError
from deniable.kernels.array_types import Floats
from deniable.kernels.chunks import over_threads, thread_count
from deniable.kernels.hashing.lines import digits_of
from deniable.kernels.hashing.row_blocks import MAX_LENGTH
from deniable.kernels.search.domain_scan import scan
from deniable.protocols.alphabet import PAD, count_strings

MAX_RANGE = 1_000_000
"""Strings per range."""
RANGES_PER_REPORT = 64
"""Ranges between two reports of progress."""
MIN_STRINGS_TO_LEARN = 8
SHARE_STEPS = 60
UNSEEN_QUANTILES = 20
PRIOR_STRINGS = 0.5
"""Pseudocount of strings that each distribution has explained, so that neither is given up."""


@dataclass(frozen=True)
class StringDomain:
    """All strings of up to `length` symbols, numbered 0…symbols−1."""

    symbols: int
    length: int

    def __post_init__(self) -> None:
        if not 1 <= self.length <= MAX_LENGTH:
            raise InputError(
                f"whole strings can be discovered up to max_length {MAX_LENGTH}, got "
                f"{self.length}: ask for several prefix lengths (levels)"
            )

    @property
    def strings(self) -> int:
        """Number of strings."""
        return count_strings(self.symbols, self.length)

    def above(self, evidence: StringEvidence, least: float) -> Rows:
        """u8[n, M]: the strings whose evidence is at least this."""
        lead = np.frombuffer(evidence.tally.header(0), ">u4").astype(np.uint32)
        entry = np.ascontiguousarray(evidence.entry[0])

        def work(length: int, index: int) -> Rows:
            first = length - self.free(length)
            row = self.row(length, index * self.symbols ** (length - first))
            number = np.empty(self.symbols ** (length - first), np.int64)
            varied = first, length, self.symbols
            count = scan(lead, row.copy(), *varied, entry, np.float32(least), number)
            rows = np.repeat(row[np.newaxis], count, axis=0)
            rows[:, first:length] = digits_of(number[:count], self.symbols, length - first)[:, ::-1]
            return rows

        ranges, kept = self.ranges(), []
        for at in range(0, len(ranges), RANGES_PER_REPORT):
            report_progress("looking at every string", at / len(ranges))
            part = ranges[at : at + RANGES_PER_REPORT]
            kept += over_threads(work, part, thread_count(None))
        return np.concatenate(kept)

    def ranges(self) -> list[tuple[int, int]]:
        """Return the length of the strings in each range, and its index among that length."""
        return [
            (length, index)
            for length in range(self.length + 1)
            for index in range(self.symbols ** (length - self.free(length)))
        ]

    def free(self, length: int) -> int:
        """Return how many symbols vary within a range of strings of this length."""
        return sum(self.symbols**free <= MAX_RANGE for free in range(1, length + 1))

    def row(self, length: int, number: int) -> Rows:
        """u8[M]: one of the strings of this length, numbered with the last symbol fastest."""
        row = np.full(self.length, PAD, np.uint8)
        row[:length] = digits_of(np.array(number), self.symbols, length)[::-1]
        return row


@dataclass(frozen=True, eq=False)
class StringWeights:
    """Weights that divide α over all strings of a domain.

    They are a mixture of two probability distributions over the domain, so they sum to at most 1:
    `share` by a model of strings (characters, or the analyst's words), which learns from the
    discovered strings, and the remainder evenly. The share maximises the likelihood of the
    discovered strings, each left out of the model that predicts it. Strings without structure leave
    nearly all of α to the even distribution.
    """

    strings: int
    model: CharacterModel
    share: float

    @classmethod
    def after(cls, strings: int, start: CharacterModel, known: Rows) -> StringWeights:
        """Return the weights once these strings are known; start : the model before that."""
        if len(known) < MIN_STRINGS_TO_LEARN:
            return cls(strings, start, 0.5 if isinstance(start, Lexicon) else 0.0)
        nats = -held_out_log_p(start, known, known).sum(axis=1)
        gain, share = np.log(strings) - nats, 0.5
        for _ in range(SHARE_STEPS):  # expectation-maximisation
            mine = share / (share + (1 - share) * np.exp(-gain))
            share = (mine.sum() + PRIOR_STRINGS) / (len(gain) + 2 * PRIOR_STRINGS)
        return cls(strings, start.trained(known), float(share))

    def log(self, rows: Rows) -> Floats:
        """float64[n]: logarithms of the weights of these strings."""
        if self.share == 0:
            return self._mixed(np.zeros(len(rows)))
        return self._mixed(self.model.description_length(rows))

    def log_of_unseen(self, start: CharacterModel, known: Rows) -> Floats:
        """Return logarithms of the weights that strings like the known ones have before they are.

        They are a few quantiles, or one value if nothing is known. start : the model before that
        """
        if not len(known):
            return self._mixed(np.full(1, np.log(self.strings)))
        levels = (np.arange(UNSEEN_QUANTILES) + 0.5) / UNSEEN_QUANTILES
        return np.quantile(self.log_left_out(start, known), levels)

    def log_left_out(self, start: CharacterModel, known: Rows) -> Floats:
        """float64[n]: logarithms of the weights of known strings, each as if it were not known."""
        taught = known if len(known) >= MIN_STRINGS_TO_LEARN else known[:0]
        return self._mixed(-held_out_log_p(start, taught, known).sum(axis=1))

    def _mixed(self, nats: Floats) -> Floats:
        """Return logarithms of the weights of strings that have these description lengths."""
        even = np.log1p(-self.share) - np.log(self.strings)
        with np.errstate(divide="ignore"):
            return np.asarray(np.logaddexp(even, np.log(self.share) - nats))
