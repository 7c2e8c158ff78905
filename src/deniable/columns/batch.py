"""ReportBatch: the reports of one survey as columns of packed bits.

A report has a cohort, and for each question some clear bytes and one packed row of bits for each
part (see `protocols.base`). A batch holds each of these as one contiguous array.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import InitVar, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deniable.errors import FieldOutOfRange, InputError, PaddingBits
from deniable.mechanisms import Mechanism
from deniable.protocols import Part
from deniable.survey import Answer, Question, Report, Survey

Rows = slice | NDArray[np.bool_] | NDArray[np.integer[Any]]


@dataclass(frozen=True, eq=False)
class Column:
    """One part of one question: packed bits, and which slot and cohort each row is of.

    bits : u8[N, B]; slot : u8[N], index into `part.slots`; cohort : u16[N], already reduced to the
    mechanism's own number of cohorts. A *stratum* is a slot and a cohort: slot·cohorts + cohort.
    """

    part: Part
    bits: NDArray[np.uint8]
    slot: NDArray[np.uint8]
    cohort: NDArray[np.uint16]

    def __len__(self) -> int:
        return len(self.bits)

    @property
    def mechanism(self) -> Mechanism:
        """Width and noise, the same in all slots; hashing is each slot's own."""
        return self.part.slots[0].mechanism

    @property
    def strata(self) -> int:
        """Number of strata."""
        return len(self.part.slots) * self.mechanism.cohorts

    @property
    def stratum(self) -> NDArray[np.int32]:
        """int32[N]."""
        return self.slot.astype(np.int32) * self.mechanism.cohorts + self.cohort


@dataclass(frozen=True, eq=False)
class ReportBatch:
    """N reports of one survey; illegal ones cannot exist.

    cohort : u16[N]; clear : one u8[N, fields] a question; bits : one u8[N, B] a part of a question
    """

    survey: Survey
    cohort: NDArray[np.uint16]
    clear: tuple[NDArray[np.uint8], ...]
    bits: tuple[tuple[NDArray[np.uint8], ...], ...]
    origin: str = ""
    """What is known of where the reports came from, such as "simulated, seed 7"."""
    trusted: InitVar[bool] = False
    """Rows that were checked before need not be again."""

    def __post_init__(self, trusted: bool) -> None:
        if not trusted:
            _check_shapes(self)
            _check_content(self)

    def __len__(self) -> int:
        return len(self.cohort)

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, ReportBatch)
            and self.survey == other.survey
            and all(map(np.array_equal, self.arrays(), other.arrays()))
        )

    def __repr__(self) -> str:
        return f"<ReportBatch {len(self):,} reports of {self.survey!r}>"

    @property
    def nbytes(self) -> int:
        """Bytes held."""
        return sum(a.nbytes for a in self.arrays())

    def arrays(self) -> Iterator[NDArray[Any]]:
        """Every column, in the order of the wire."""
        yield self.cohort
        for clear, bits in zip(self.clear, self.bits, strict=True):
            yield clear
            yield from bits

    def select(self, rows: Rows) -> ReportBatch:
        """Some of the reports: a slice (no copy), a mask or indices."""
        return ReportBatch(
            self.survey,
            self.cohort[rows],
            tuple(c[rows] for c in self.clear),
            tuple(tuple(b[rows] for b in parts) for parts in self.bits),
            self.origin,
            trusted=True,
        )

    def where(self, question: str, draw: Sequence[int]) -> ReportBatch:
        """The reports whose clear bytes for this question are `draw`: positions, or a level."""
        clear = self.clear[self._index(question)]
        if clear.shape[1] != len(draw):
            raise InputError(
                f"question {question!r} has {clear.shape[1]} clear bytes, got {len(draw)}"
            )
        return self.select(np.all(clear == np.asarray(draw), axis=1))

    def column(self, question: str, part: int = 0) -> Column:
        """One part of one question."""
        index = self._index(question)
        parts = self.survey.questions[index].protocol.parts
        if not 0 <= part < len(parts):
            raise InputError(f"question {question!r} has parts 0 to {len(parts) - 1}, got {part}")
        chosen = parts[part]
        slot = (
            np.zeros(len(self), np.uint8)
            if chosen.chosen_by is None
            else self.clear[index][:, chosen.chosen_by]
        )
        cohorts = chosen.slots[0].mechanism.cohorts
        cohort = self.cohort if cohorts == self.survey.cohorts else self.cohort % np.uint16(cohorts)
        return Column(chosen, self.bits[index][part], slot, cohort)

    def _index(self, question: str) -> int:
        return self.survey.questions.index(self.survey.question(question))

    @staticmethod
    def concat(batches: Iterable[ReportBatch]) -> ReportBatch:
        """All of them in one; they must be of one survey."""
        batches = list(batches)
        if not batches:
            raise InputError("expected at least one batch, got none")
        survey = batches[0].survey
        if any(b.survey != survey for b in batches):
            raise InputError("expected batches of one survey, got several")
        if len(batches) == 1:
            return batches[0]
        columns = [np.concatenate(a) for a in zip(*(b.arrays() for b in batches), strict=True)]
        origin = "; ".join(dict.fromkeys(b.origin for b in batches if b.origin))
        return from_arrays(survey, columns, origin=origin, trusted=True)

    # --- one at a time, for tests and small numbers --------------------------------------------

    @staticmethod
    def from_reports(reports: Sequence[Report]) -> ReportBatch:
        """The same reports as columns."""
        from deniable.columns.wire import from_wire
        from deniable.survey import to_batch

        if not reports:
            raise InputError("expected at least one report, got none")
        return from_wire(to_batch(reports), reports[0].survey)

    def reports(self) -> Iterator[Report]:
        """Each report by itself."""
        for i in range(len(self)):
            answers = tuple(
                Answer(tuple(clear[i].tolist()), tuple(b[i].tobytes() for b in bits))
                for clear, bits in zip(self.clear, self.bits, strict=True)
            )
            yield Report(self.survey, int(self.cohort[i]), answers)


def widths(survey: Survey) -> list[tuple[Question, int, list[int]]]:
    """Each question with its number of clear bytes and the bytes of each part."""
    return [
        (q, len(q.protocol.clear), [m.size for m in q.protocol.mechanisms])
        for q in survey.questions
    ]


def from_arrays(
    survey: Survey, arrays: Sequence[NDArray[Any]], *, origin: str = "", trusted: bool = False
) -> ReportBatch:
    """The batch whose `arrays()` these are."""
    cohort, *rest = arrays
    clear, bits, at = [], [], 0
    for _, _, parts in widths(survey):
        clear.append(rest[at])
        bits.append(tuple(rest[at + 1 : at + 1 + len(parts)]))
        at += 1 + len(parts)
    return ReportBatch(survey, cohort, tuple(clear), tuple(bits), origin, trusted=trusted)


def _check_shapes(batch: ReportBatch) -> None:
    n = len(batch.cohort)
    if batch.cohort.dtype != np.uint16 or batch.cohort.ndim != 1:
        raise InputError(f"expected cohort as uint16[N], got {_form(batch.cohort)}")
    expected = [(q, [fields, *parts]) for q, fields, parts in widths(batch.survey)]
    if not len(batch.clear) == len(batch.bits) == len(expected):
        raise InputError(
            f"expected {len(expected)} questions, got {len(batch.clear)} of clear bytes and "
            f"{len(batch.bits)} of bits"
        )
    for (question, sizes), clear, bits in zip(expected, batch.clear, batch.bits, strict=True):
        arrays = (clear, *bits)
        if len(arrays) != len(sizes):
            raise InputError(
                f"question {question.name!r} has {len(sizes) - 1} parts, got {len(bits)}"
            )
        for array, size in zip(arrays, sizes, strict=True):
            if array.dtype != np.uint8 or array.shape != (n, size):
                raise InputError(
                    f"question {question.name!r}: expected uint8[{n}, {size}], got {_form(array)}"
                )


def _form(array: NDArray[Any]) -> str:
    return f"{array.dtype}{list(array.shape)}"


def _check_content(batch: ReportBatch) -> None:
    """The rules of the wire's strict parser, for all rows at once; a test ties the two."""
    if (bad := np.flatnonzero(batch.cohort >= batch.survey.cohorts)).size:
        raise FieldOutOfRange(
            f"report {bad[0]}: expected a cohort below {batch.survey.cohorts}, "
            f"got {batch.cohort[bad[0]]}"
        )
    for question, clear, bits in zip(batch.survey.questions, batch.clear, batch.bits, strict=True):
        for i, field in enumerate(question.protocol.clear):
            if (bad := np.flatnonzero(clear[:, i] >= field.bound)).size:
                raise FieldOutOfRange(
                    f"report {bad[0]}, question {question.name!r}: expected {field.name} below "
                    f"{field.bound}, got {clear[bad[0], i]}"
                )
        if (bad := np.flatnonzero((clear[:, 1:] <= clear[:, :-1]).any(axis=1))).size:
            raise FieldOutOfRange(
                f"report {bad[0]}, question {question.name!r}: expected positions in increasing "
                f"order, got {clear[bad[0]].tolist()}"
            )
        for part, mechanism in zip(bits, question.protocol.mechanisms, strict=True):
            spare = 8 * mechanism.size - mechanism.width
            if spare and (bad := np.flatnonzero(part[:, -1] >> (8 - spare))).size:
                raise PaddingBits(
                    f"report {bad[0]}, question {question.name!r}: expected bits "
                    f"{mechanism.width} and above to be 0, got a last byte of "
                    f"0x{part[bad[0], -1]:02x}"
                )
            _check_numbers(question, mechanism, part)


def numbers(rows: NDArray[np.uint8]) -> NDArray[np.int64]:
    """int64[N], the little-endian numbers in u8[N, B], B ≤ 4."""
    places = 256 ** np.arange(rows.shape[1], dtype=np.int64)
    return np.asarray(rows.astype(np.int64) @ places)


def _check_numbers(question: Question, mechanism: Mechanism, part: NDArray[np.uint8]) -> None:
    if mechanism.bound is None:
        return
    sent = numbers(part)
    if (bad := np.flatnonzero(sent >= mechanism.bound)).size:
        raise FieldOutOfRange(
            f"report {bad[0]}, question {question.name!r}: expected a number below "
            f"{mechanism.bound}, got {sent[bad[0]]}"
        )
