"""How a question's reports are read: what is counted of them, and what they say of candidates.

A `single` question's reports all speak of whole values. Of an `ngrams` question the full-string
part does; a gram may be shared with strings that nobody listed: its bits say how common the gram
is, not the string. Of a `prefixes` question each level speaks of the strings that end before it
(the padding is part of the prefix, so it belongs to one string only), and of all where it has the
full length. Of longer strings it says nothing that strings nobody listed might not have said.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deniable.analysis.candidates import Candidates
from deniable.columns import ReportBatch
from deniable.columns.batch import numbers
from deniable.errors import InputError
from deniable.inference.marginal.bit_counts import BitCounts
from deniable.inference.marginal.closed_form import estimate_basic
from deniable.inference.marginal.design import BloomDesign
from deniable.inference.marginal.estimate import estimate_marginal
from deniable.inference.marginal.multiplicity import Correction
from deniable.inference.models.bit_channel import BitChannel
from deniable.inference.models.hash_design import HashDesign, HashReports, support_counts
from deniable.kernels.counting.bit_sums import count_ones
from deniable.kernels.hashing.positions import bloom_positions, hash_pairs
from deniable.mechanisms import Bloom, Choice, LocalHash, Mechanism
from deniable.mechanisms.schemes import DENIABLE_1
from deniable.protocols import Prefixes
from deniable.results import Marginal
from deniable.survey import Question

MAX_STRATA = 1 << 16
NO_ANSWER = "(no answer)"
OTHER = "(other)"


@dataclass(frozen=True, eq=False)
class Reading(ABC):
    """The reports of one question, read for its candidates (the options, where it has them).

    A stratum is a slot of the question's first part and a cohort: slot·cohorts + cohort.
    """

    question: Question
    candidates: Candidates

    @property
    def mechanism(self) -> Mechanism:
        return self.question.protocol.mechanisms[0]

    @property
    def slots(self) -> int:
        """How many slots."""
        return len(self.question.protocol.parts[0].slots)

    @cached_property
    def told(self) -> NDArray[np.bool_]:
        """bool[slots, m]: which slots' reports speak of which whole candidate."""
        protocol, size = self.question.protocol, len(self.candidates.names)
        if not isinstance(protocol, Prefixes):
            return np.ones((self.slots, size), bool)
        length = np.array([level.length for level in protocol.levels])[:, np.newaxis]
        return np.asarray((length > self.candidates.lengths) | (length == protocol.max_length))

    def read(self, batch: ReportBatch) -> tuple[NDArray[np.uint8], NDArray[np.int32]]:
        """What was sent, u8[N, B], and stratum, int32[N]."""
        column = batch.column(self.question.name)
        return column.bits, column.stratum

    def counted(self, batch: ReportBatch) -> ReportBatch:
        """The reports that speak of some candidate."""
        some = self.told.any(axis=1) | (self.told.shape[1] == 0)
        if some.all():
            return batch
        return batch.select(some[batch.column(self.question.name).slot])

    @abstractmethod
    def count(self, batch: ReportBatch) -> Any:
        """All that the marginal needs to know of these reports; counts of batches add."""

    @abstractmethod
    def marginal(self, counts: Any, *, alpha: float, correction: Correction) -> Marginal:
        """How common each candidate is."""

    @property
    @abstractmethod
    def source(self) -> BloomDesign | BitChannel | HashDesign:
        """What `likelihood_rows` needs to know of the candidates."""


class _Bits(Reading):
    """Reports of bits that are independent given the value."""

    def read(self, batch: ReportBatch) -> tuple[NDArray[np.uint8], Any]:
        bits, stratum = super().read(batch)
        return bits, stratum.astype(np.uint16)

    def count(self, batch: ReportBatch) -> BitCounts:
        bits, stratum = self.read(self.counted(batch))
        strata = self.slots * self.mechanism.cohorts
        # One thread: the batches are spread over threads already.
        return BitCounts(*count_ones(bits, self.mechanism.width, stratum, strata, threads=1))


class OptionReading(_Bits):
    """Of a choice or a boolean: one bit an option."""

    def marginal(self, counts: BitCounts, *, alpha: float, correction: Correction) -> Marginal:
        noise = self.mechanism.noise
        return estimate_basic(
            counts, float(noise.p_star), float(noise.q_star),
            alpha=alpha, correction=correction, labels=self.candidates.names,
        )  # fmt: skip

    @property
    def source(self) -> BitChannel:
        return self.channel(no_answer=False)

    def channel(self, *, no_answer: bool) -> BitChannel:
        """P(bit = 1 | category) of all options, or of yes and no; and of no answer, if asked."""
        mechanism = self.mechanism
        p, q = float(mechanism.noise.p_star), float(mechanism.noise.q_star)
        if not isinstance(mechanism, Choice):
            return BitChannel(np.array([[[q], [p]]]), ("yes", "no"))
        theta = np.full((mechanism.width, mechanism.width), p)
        np.fill_diagonal(theta, q)
        labels = mechanism.options
        if no_answer:
            theta = np.vstack([theta, np.full(mechanism.width, p)])
            labels = (*labels, NO_ANSWER)
        return BitChannel(theta[np.newaxis], labels)


class BloomReading(_Bits):
    """Of a string reported as a Bloom filter."""

    def marginal(self, counts: BitCounts, *, alpha: float, correction: Correction) -> Marginal:
        return estimate_marginal(counts, self.source, alpha=alpha, correction=correction)

    @cached_property
    def source(self) -> BloomDesign:
        """Which bits each candidate sets in each stratum."""
        mechanism = self.mechanism
        assert isinstance(mechanism, Bloom)
        shape = (len(self.candidates.names), mechanism.hashes)
        strata = self.slots * mechanism.cohorts
        positions = np.full((strata, *shape), -1, np.int32)
        by_slot = positions.reshape(self.slots, mechanism.cohorts, *shape)
        for slot, told in enumerate(self.told):
            by_slot[slot][:, told] = self._positions(slot)[:, told]
        p, q = float(mechanism.noise.p_star), float(mechanism.noise.q_star)
        return BloomDesign(
            positions, mechanism.bits, p, q, self.candidates.names,
            np.repeat(np.arange(self.slots), mechanism.cohorts),
        )  # fmt: skip

    def _positions(self, slot: int) -> NDArray[np.int32]:
        """int32[cohorts, m, hashes] of one slot."""
        mechanism = self.question.protocol.parts[0].slots[slot].mechanism
        assert isinstance(mechanism, Bloom)
        if mechanism.scheme is DENIABLE_1:
            x, y = _seeds(self, slot, mechanism.header)
            return bloom_positions(x, y, mechanism.cohorts, mechanism.hashes, mechanism.bits)
        tokens = _tokens(self, slot)
        rows = [[mechanism.positions(t, c) for t in tokens] for c in range(mechanism.cohorts)]
        shape = (mechanism.cohorts, len(tokens), mechanism.hashes)
        return np.array(rows, np.int32).reshape(shape)


class HashReading(Reading):
    """Of a string reported by local hashing: one number."""

    def count(self, batch: ReportBatch) -> HashReports:
        bits, stratum = self.read(self.counted(batch))
        mechanism = self.mechanism
        assert isinstance(mechanism, LocalHash)
        return HashReports((stratum.astype(np.int64) * mechanism.values + numbers(bits),))

    def marginal(self, counts: HashReports, *, alpha: float, correction: Correction) -> Marginal:
        bits, design = support_counts(counts, self.source)
        return estimate_marginal(bits, design, alpha=alpha, correction=correction)

    @cached_property
    def source(self) -> HashDesign:
        """Each candidate's cell in each slot and family."""
        mechanism, size = self.mechanism, len(self.candidates.names)
        assert isinstance(mechanism, LocalHash)
        cells = np.full((self.slots * mechanism.families, size), -1, np.int32)
        by_slot = cells.reshape(self.slots, mechanism.families, size)
        for slot, told in enumerate(self.told):
            own = self.question.protocol.parts[0].slots[slot].mechanism
            assert isinstance(own, LocalHash)
            x, y = _seeds(self, slot, own.header)
            found = bloom_positions(x, y, mechanism.families, 1, mechanism.cells)[:, :, 0]
            by_slot[slot][:, told] = found[:, told]
        return HashDesign(
            cells, mechanism.values, mechanism.digits,
            float(mechanism.noise.q_star), np.repeat(np.arange(self.slots), mechanism.families),
            self.candidates.names,
        )  # fmt: skip


def _tokens(reading: Reading, slot: int) -> list[bytes]:
    """What a client that holds the candidate would report of it in this slot."""
    protocol, candidates = reading.question.protocol, reading.candidates
    if candidates.rows is None:
        return [protocol.token(name, 0, slot) for name in candidates.names]
    symbols = candidates.rows.shape[1]
    if isinstance(protocol, Prefixes):
        symbols = protocol.levels[slot].length
    return [row.tobytes() for row in candidates.rows[:, :symbols]]


def _seeds(reading: Reading, slot: int, header: bytes) -> tuple[Any, Any]:
    """What the candidates' hashes in this slot start from: u64[m] twice."""
    tokens = _tokens(reading, slot)
    offsets = np.zeros(len(tokens) + 1, np.int64)
    np.cumsum([len(t) for t in tokens], out=offsets[1:])
    return hash_pairs(header, np.frombuffer(b"".join(tokens), np.uint8), offsets)


def reading_of(question: Question, candidates: Candidates) -> Reading:
    """The reading of a question for these candidates."""
    if question.kind != "string":
        return OptionReading(question, candidates)
    if isinstance(question.protocol.mechanisms[0], LocalHash):
        return HashReading(question, candidates)
    reading = BloomReading(question, candidates)
    if (strata := reading.slots * reading.mechanism.cohorts) > MAX_STRATA:
        raise InputError(f"expected at most {MAX_STRATA} strata, got {strata}")
    return reading
