"""Every string of a small domain, looked at once.

Strings are rows of symbols, padded; those of one length lie in stretches that share their first
symbols, and a stretch is one call of a kernel.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from deniable.compute.progress import report_progress
from deniable.compute.screening import ENDING, Stretch
from deniable.discovery.shared.strings import Rows
from deniable.discovery.shared.tables import StringEvidence
from deniable.errors import InputError
from deniable.kernels.chunks import over_threads, thread_count
from deniable.kernels.hashing.lines import digits_of
from deniable.kernels.search.domain_scan import TAIL
from deniable.protocols.alphabet import PAD, count_strings

STRETCH = 1_000_000
"""Strings of a stretch, at most."""
STRETCHES_PER_REPORT = 64
"""Stretches between two reports of progress."""


@dataclass(frozen=True)
class StringDomain:
    """All strings of up to `length` symbols, numbered 0…symbols−1."""

    symbols: int
    length: int

    def __post_init__(self) -> None:
        if not 1 <= self.length <= TAIL - ENDING:
            raise InputError(
                f"expected max_length up to {TAIL - ENDING} to look at every string, got "
                f"{self.length}: ask for several levels"
            )

    @property
    def strings(self) -> int:
        """How many there are."""
        return count_strings(self.symbols, self.length)

    def above(self, evidence: StringEvidence, least: float) -> Rows:
        """u8[n, M]: the strings whose evidence at the first level is at least this."""
        header, kernels = evidence.tally.header(0), evidence.tally.kernels
        entry = np.ascontiguousarray(evidence.entry[0])

        def work(length: int, stretch: int) -> Rows:
            first = length - self.free(length)
            row = self.row(length, stretch * self.symbols ** (length - first))
            number = kernels.scan(header, Stretch(row, first, length, self.symbols), entry, least)
            rows = np.repeat(row[np.newaxis], len(number), axis=0)
            rows[:, first:length] = digits_of(number, self.symbols, length - first)[:, ::-1]
            return rows

        stretches, kept = self.stretches(), []
        for at in range(0, len(stretches), STRETCHES_PER_REPORT):
            report_progress("looking at every string", at / len(stretches))
            some = stretches[at : at + STRETCHES_PER_REPORT]
            kept += over_threads(work, some, thread_count(None))
        return np.concatenate(kept)

    def stretches(self) -> list[tuple[int, int]]:
        """(length, number) of each."""
        return [
            (length, stretch)
            for length in range(self.length + 1)
            for stretch in range(self.symbols ** (length - self.free(length)))
        ]

    def free(self, length: int) -> int:
        """How many symbols vary within a stretch of strings of this length."""
        return sum(self.symbols**free <= STRETCH for free in range(1, length + 1))

    def row(self, length: int, number: int) -> Rows:
        """u8[M]: this one of the strings of this length, counted from the last symbol."""
        row = np.full(self.length, PAD, np.uint8)
        row[:length] = digits_of(np.array(number), self.symbols, length)[::-1]
        return row
