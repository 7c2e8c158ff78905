"""How a question's reports are read: which of them speak of whole values, and in which bits.

A `single` question's reports all do. Of an `ngrams` question, the full-string part does; a gram may
be shared with strings that nobody listed: its bits say how common the gram is, not the string. Of a
`prefixes` question, levels beyond the end of every candidate do (the padding is part of the
prefix, so it belongs to one string only), and levels of the full length.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deniable.columns import ReportBatch
from deniable.errors import InputError
from deniable.inference.channel import Channel
from deniable.inference.counts import BitCounts
from deniable.inference.design import Design
from deniable.kernels.bloom import bloom_positions, hash_pairs
from deniable.kernels.counts import count_ones
from deniable.mechanisms import Bloom, Choice, Mechanism
from deniable.mechanisms.schemes import DENIABLE_1
from deniable.protocols import Prefixes
from deniable.protocols.alphabet import PAD
from deniable.survey import Question

MAX_STRATA = 1 << 16
NO_ANSWER = "(no answer)"
OTHER = "(other)"


@dataclass(frozen=True, eq=False)
class Reading:
    """The reports of one question that are read, and their strata: slot after slot, by cohort.

    slots : the slots of part 0 that speak of whole values, or None for all
    """

    question: Question
    slots: tuple[int, ...] | None

    @property
    def mechanism(self) -> Mechanism:
        return self.question.protocol.mechanisms[0]

    @property
    def strata(self) -> int:
        slots = self.question.protocol.parts[0].slots if self.slots is None else self.slots
        return len(slots) * self.mechanism.cohorts

    def mask(self, batch: ReportBatch) -> NDArray[np.bool_] | None:
        """bool[N], the reports that are read; None for all."""
        if self.slots is None:
            return None
        return np.isin(batch.column(self.question.name).slot, self.slots)

    def read(self, batch: ReportBatch) -> tuple[NDArray[np.uint8], NDArray[np.uint16]]:
        """Packed bits u8[N, B] and stratum u16[N]; each report must be one that it reads."""
        column = batch.column(self.question.name)
        place = column.slot
        if self.slots is not None:
            table = np.zeros(256, np.uint8)
            table[list(self.slots)] = np.arange(len(self.slots))
            place = table[place]
        stratum = place.astype(np.int32) * self.mechanism.cohorts + column.cohort
        return column.bits, stratum.astype(np.uint16)

    def count(self, batch: ReportBatch) -> BitCounts:
        """Bit counts of the reports that are read."""
        mask = self.mask(batch)
        bits, stratum = self.read(batch if mask is None else batch.select(mask))
        # One thread: the batches are spread over threads already.
        return BitCounts(*count_ones(bits, self.mechanism.width, stratum, self.strata, threads=1))


def reading_of(question: Question, candidates: Sequence[str]) -> Reading:
    """The reading of a question for these candidates (the options, where it has them)."""
    protocol = question.protocol
    slots: tuple[int, ...] | None = None
    if isinstance(protocol, Prefixes):
        rows = [protocol.alphabet.symbols(c, protocol.max_length) for c in candidates]
        longest = max((len(row.rstrip(bytes([PAD]))) for row in rows), default=0)
        slots = tuple(
            i
            for i, level in enumerate(protocol.levels)
            if level.length > longest or level.length == protocol.max_length
        )
    reading = Reading(question, slots)
    if reading.strata > MAX_STRATA:
        raise InputError(f"expected at most {MAX_STRATA} strata, got {reading.strata}")
    return reading


def design_of(reading: Reading, candidates: Sequence[str]) -> Design:
    """Which bits each candidate string sets in each stratum."""
    mechanism = reading.mechanism
    if not isinstance(mechanism, Bloom):
        raise InputError(
            f"question {reading.question.name!r} is reported by local hashing, which discover() "
            "reads; decode() and associate() read Bloom filters"
        )
    part = reading.question.protocol.parts[0]
    chosen = range(len(part.slots)) if reading.slots is None else reading.slots
    tables = [
        _positions(
            part.slots[s].mechanism,
            [reading.question.protocol.token(c, 0, s) for c in candidates],
        )
        for s in chosen
    ]
    p, q = float(mechanism.noise.p_star), float(mechanism.noise.q_star)
    positions = np.concatenate(tables) if tables else np.empty((0, len(candidates), 1), np.int32)
    return Design(positions, mechanism.bits, p, q, tuple(candidates))


def _positions(mechanism: Mechanism, tokens: list[bytes]) -> NDArray[np.int32]:
    """int32[cohorts, candidates, hashes] of one slot."""
    assert isinstance(mechanism, Bloom)
    if mechanism.scheme is DENIABLE_1:
        offsets = np.zeros(len(tokens) + 1, np.int64)
        np.cumsum([len(t) for t in tokens], out=offsets[1:])
        x, y = hash_pairs(mechanism.header, np.frombuffer(b"".join(tokens), np.uint8), offsets)
        return bloom_positions(x, y, mechanism.cohorts, mechanism.hashes, mechanism.bits)
    rows = [[mechanism.positions(t, c) for t in tokens] for c in range(mechanism.cohorts)]
    shape = (mechanism.cohorts, len(tokens), mechanism.hashes)
    return np.array(rows, np.int32).reshape(shape)


def channel_of(mechanism: Mechanism, *, no_answer: bool) -> Channel:
    """P(bit = 1 | category) of a choice's options, or of yes and no; and of no answer, if asked."""
    p, q = float(mechanism.noise.p_star), float(mechanism.noise.q_star)
    labels: tuple[Any, ...]
    if isinstance(mechanism, Choice):
        theta = np.full((mechanism.width, mechanism.width), p)
        np.fill_diagonal(theta, q)
        labels = mechanism.options
        if no_answer:
            theta = np.vstack([theta, np.full(mechanism.width, p)])
            labels = (*labels, NO_ANSWER)
    else:
        theta, labels = np.array([[q], [p]]), ("yes", "no")
    return Channel(theta[np.newaxis], labels)
