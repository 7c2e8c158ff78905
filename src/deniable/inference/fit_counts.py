"""Counts of reports that show whether they look as the survey promises; see `fit_check`.

The counts of disjoint sets of reports add up. They do not depend on candidates.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import comb, log, prod
from operator import add

import numpy as np

from deniable.columns import Column, ReportBatch
from deniable.columns.batch import packed_numbers, to_bodies
from deniable.inference.marginal.bit_counts import BitCounts
from deniable.kernels.array_types import Bytes, Floats, Int64s, Words
from deniable.kernels.counting.bit_sums import count_ones
from deniable.mechanisms import BitMechanism, Mechanism
from deniable.mechanisms.base import StringMechanism
from deniable.mechanisms.noise import ONE
from deniable.protocols import Part
from deniable.survey import Question, Survey

MAX_CHECKED = 1 << 18
"""Reports that are looked at: of more reports, random ones, about a half, a third, …, are taken."""
MAX_ROWS = 64
"""Hash functions are put into at most this many groups, to keep tables small."""
MAX_DRAWS = 1 << 16
"""Maximum number of combinations of a cohort and a question's clear fields that are counted."""
MAX_COINCIDENCE = 1e-3
"""A report is rare if this many equal ones, or fewer, are expected by chance."""
_ONES_OF_BYTE = np.array([bin(byte).count("1") for byte in range(256)], np.uint8)


@dataclass(frozen=True, eq=False)
class PartCounts:
    """Counts of one part of a question.

    ones : int64[G, k], reports with each bit set, or with each number, per group of hash functions
    total : int64[G], reports per group
    set_bits : int64[k + 1], reports by the number of bits that they set; all 0 if not counted
    """

    ones: Int64s
    total: Int64s
    set_bits: Int64s

    @classmethod
    def of(cls, column: Column, set_bits: Int64s) -> PartCounts:
        """Count the reports of a batch; set_bits : int64[N]."""
        groups, of_stratum = _hash_groups(column.part)
        group, width = of_stratum[column.stratum], column.mechanism.outcomes
        if column.mechanism.bound is None:
            bits = np.ascontiguousarray(column.bits)
            counts = count_ones(bits, width, group.astype(np.int32), groups, threads=1)
            return cls(*counts, np.bincount(set_bits, minlength=width + 1))
        place = group * width + packed_numbers(column.bits)
        ones = np.bincount(place, minlength=groups * width).reshape(groups, width)
        return cls(ones, ones.sum(axis=1), np.zeros(width + 1, np.int64))

    @classmethod
    def of_strata(cls, part: Part, bits: BitCounts) -> PartCounts:
        """Return the counts of a part from those of its strata."""
        groups, of_stratum = _hash_groups(part)
        width = bits.ones.shape[1]
        ones, total = np.zeros((groups, width), np.int64), np.zeros(groups, np.int64)
        np.add.at(ones, of_stratum, bits.ones)
        np.add.at(total, of_stratum, bits.total)
        return cls(ones, total, np.zeros(width + 1, np.int64))

    def __add__(self, other: PartCounts) -> PartCounts:
        """Return the counts of both sets of reports together."""
        return PartCounts(
            self.ones + other.ones, self.total + other.total, self.set_bits + other.set_bits
        )


@dataclass(frozen=True, eq=False)
class FitCounts:
    """Counts of clear fields, bits and rare reports.

    cohorts : int64[C], reports per cohort of the survey
    draws : per question, int64[D] reports per cohort and value of its clear fields; see
        `draw_shares`
    parts : per question, the counts of its parts
    rare : fingerprints u64[…] of reports that are unlikely to have an equal one
    coincidence : sum over the rare reports of the probability that another report equals them
    looked_at : share of all reports that were looked at
    """

    cohorts: Int64s
    draws: tuple[Int64s, ...]
    parts: tuple[tuple[PartCounts, ...], ...]
    rare: tuple[Words, ...]
    coincidence: float
    looked_at: float = 1.0

    @property
    def reports(self) -> int:
        """Number of reports that were looked at."""
        return int(self.cohorts.sum())

    def __add__(self, other: FitCounts) -> FitCounts:
        """Return the counts of both sets of reports together."""
        return FitCounts(
            self.cohorts + other.cohorts,
            tuple(map(add, self.draws, other.draws)),
            tuple(tuple(map(add, *pair)) for pair in zip(self.parts, other.parts, strict=True)),
            self.rare + other.rare,
            self.coincidence + other.coincidence,
            self.looked_at,
        )


@dataclass(frozen=True)
class FitCounter:
    """Function that counts the reports of a batch.

    questions : names of the questions that are analysed
    reports : number of reports in all batches together
    """

    questions: tuple[str, ...]
    reports: int

    def __call__(self, batch: ReportBatch) -> FitCounts:
        """Count the reports of a batch, or about a half, a third, … of them."""
        step = -(-self.reports // MAX_CHECKED)
        if step > 1:
            drawn = np.random.default_rng(len(batch)).integers(0, step, len(batch), np.uint32)
            batch = batch.select(np.flatnonzero(drawn == 0))
        survey = batch.survey
        once = survey.collect == "once"  # else the clear fields of a client's reports are equal
        parts: dict[str, tuple[PartCounts, ...]] = {}
        largest = np.full(len(batch), -log(survey.cohorts) if once else 0.0)
        for question in survey.questions:
            shares = draw_shares(survey, question)
            largest += log(max(shares) * survey.cohorts) if once and len(shares) else 0.0
            counted: list[PartCounts] = []
            for index, mechanism in enumerate(question.protocol.mechanisms):
                column = batch.column(question.name, index)
                set_bits = _ONES_OF_BYTE[column.bits].sum(axis=1, dtype=np.int64)
                largest += _log_largest_probability(mechanism, set_bits)
                if question.name in self.questions:
                    counted.append(PartCounts.of(column, set_bits))
            parts[question.name] = tuple(counted)
        probability = np.exp(largest)
        rare = probability * (self.reports / max(step, 1)) <= MAX_COINCIDENCE
        return FitCounts(
            np.bincount(batch.cohort, minlength=survey.cohorts),
            tuple(_draw_counts(batch, name) for name in self.questions),
            tuple(parts[name] for name in self.questions),
            (_fingerprints(to_bodies(batch.select(rare))),),
            float(probability[rare].sum()),
            1 / max(step, 1),
        )


def _hash_groups(part: Part) -> tuple[int, Int64s]:
    """Return the number of groups of hash functions, and the group of each stratum, int64[S]."""
    mechanism = part.slots[0].mechanism
    match mechanism:
        case StringMechanism(hash_layout=(families, _, _)):
            pass
        case _:
            families = mechanism.cohorts
    groups = min(len(part.slots) * families, MAX_ROWS)
    strata = np.arange(len(part.slots) * mechanism.cohorts)
    return groups, strata // (mechanism.cohorts // families) % groups


def draw_shares(survey: Survey, question: Question) -> Floats:
    """Return the probability of each cohort and value of the clear fields, cohort by cohort.

    Empty if there are no clear fields, or too many values.
    """
    bounds = [field.bound for field in question.protocol.clear]
    if survey.cohorts * prod(bounds) > MAX_DRAWS or not bounds:
        return np.zeros(0)
    shares = np.zeros(prod(bounds))
    for draw, share in question.protocol.draws:
        shares[np.ravel_multi_index(draw, bounds)] += share
    return np.tile(shares / survey.cohorts, survey.cohorts)


def _draw_counts(batch: ReportBatch, name: str) -> Int64s:
    """Return the number of reports with each cohort and value of the clear fields, int64[D]."""
    question = batch.survey.question(name)
    size = len(draw_shares(batch.survey, question))
    if not size:
        return np.zeros(0, np.int64)
    fields = batch.clear[batch.survey.questions.index(question)].T.astype(np.int64)
    bounds = [batch.survey.cohorts, *(field.bound for field in question.protocol.clear)]
    return np.bincount(np.ravel_multi_index((batch.cohort, *fields), bounds), minlength=size)


def _log_largest_probability(mechanism: Mechanism, set_bits: Int64s) -> Floats | float:
    """Return the logarithm of the largest probability that a client sends what was sent.

    With permanent noise it is that of a client that sends several reports of one value.
    """
    noise = mechanism.noise
    p, q = noise.p / ONE, noise.q / ONE
    match mechanism:
        case BitMechanism(hashes=hashes, width=width):
            clear_bits = width - set_bits
        case _:
            # Of the reports that contain the client's value, all are equally likely.
            return log(q) - log(comb(mechanism.width - 1, (mechanism.ones or 1) - 1))
    if noise.flip:
        return np.asarray(set_bits * log(max(p, q)) + clear_bits * log(max(1 - p, 1 - q)))
    own = np.minimum(hashes, set_bits) * max(0.0, log(q / p))
    own += np.minimum(hashes, clear_bits) * max(0.0, log((1 - q) / (1 - p)))
    return np.asarray(set_bits * log(p) + clear_bits * log(1 - p) + own)


def _fingerprints(bodies: Bytes) -> Words:
    """Return 64 bits per row, u64[N]: equal for equal rows, and else different."""
    padded = np.zeros((len(bodies), -(-bodies.shape[1] // 8) * 8), np.uint8)
    padded[:, : bodies.shape[1]] = bodies
    state = np.zeros(len(bodies), np.uint64)
    for word in padded.view(np.uint64).T:  # as SplitMix64 mixes
        state = (state ^ word) + np.uint64(0x9E3779B97F4A7C15)
        state = (state ^ (state >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        state = (state ^ (state >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        state ^= state >> np.uint64(31)
    return state
