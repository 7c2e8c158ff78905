"""ReportBatch: the reports of one survey as columns of packed bits.

A report has a cohort, and for each question some clear bytes and one packed row of bits for each
part (see `protocols.base`). A batch holds each of these as one contiguous array.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import InitVar, dataclass
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deniable.errors import FieldOutOfRange, InputError, PaddingBits, WireError
from deniable.mechanisms import Mechanism
from deniable.protocols import Part
from deniable.survey import Question, Survey
from deniable.survey.report import BATCH, COUNT_SIZE, Surveys, batch_bodies, header

Array = NDArray[Any]
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

    def arrays(self) -> Iterator[Array]:
        """Every column, in the order of the wire."""
        yield self.cohort
        for clear, bits in zip(self.clear, self.bits, strict=True):
            yield clear
            yield from bits

    def select(self, rows: Rows) -> ReportBatch:
        """Some of the reports: a slice (no copy), a mask or indices."""
        columns = [array[rows] for array in self.arrays()]
        return from_arrays(self.survey, columns, origin=self.origin, trusted=True)

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
        mechanism, cohort = chosen.slots[0].mechanism, self.cohort
        if mechanism.cohorts < self.survey.cohorts:
            cohort = mechanism.own_cohort(cohort)
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


def widths(survey: Survey) -> list[tuple[Question, int, list[int]]]:
    """Each question with its number of clear bytes and the bytes of each part."""
    return [
        (q, len(q.protocol.clear), [m.size for m in q.protocol.mechanisms])
        for q in survey.questions
    ]


def from_arrays(
    survey: Survey, arrays: Sequence[Array], *, origin: str = "", trusted: bool = False
) -> ReportBatch:
    """The batch whose `arrays()` these are."""
    columns = iter(arrays)
    cohort, clear, bits = next(columns), [], []
    for question in survey.questions:
        clear.append(next(columns))
        bits.append(tuple(islice(columns, len(question.protocol.mechanisms))))
    return ReportBatch(survey, cohort, tuple(clear), tuple(bits), origin, trusted=trusted)


def _check_shapes(batch: ReportBatch) -> None:
    n = len(batch.cohort)
    if batch.cohort.dtype != np.uint16 or batch.cohort.ndim != 1:
        raise InputError(f"expected cohort as uint16[N], got {_form(batch.cohort)}")
    shapes = widths(batch.survey)
    if not len(batch.clear) == len(batch.bits) == len(shapes):
        raise InputError(
            f"expected {len(shapes)} questions, got {len(batch.clear)} of clear bytes and "
            f"{len(batch.bits)} of bits"
        )
    for (question, fields, parts), clear, bits in zip(shapes, batch.clear, batch.bits, strict=True):
        if len(bits) != len(parts):
            raise InputError(f"question {question.name!r} has {len(parts)} parts, got {len(bits)}")
        for array, size in zip((clear, *bits), (fields, *parts), strict=True):
            if array.dtype != np.uint8 or array.shape != (n, size):
                raise InputError(
                    f"question {question.name!r}: expected uint8[{n}, {size}], got {_form(array)}"
                )


def _form(array: Array) -> str:
    return f"{array.dtype}{list(array.shape)}"


def _check_content(batch: ReportBatch) -> None:
    """Apply the rules of the wire's strict parser to all rows at once; a test ties the two."""
    cohorts = batch.survey.cohorts
    _reject(batch.cohort >= cohorts, f"a cohort below {cohorts}", batch.cohort)
    for question, clear, bits in zip(batch.survey.questions, batch.clear, batch.bits, strict=True):
        where = f", question {question.name!r}"
        for i, field in enumerate(question.protocol.clear):
            column = clear[:, i]
            _reject(column >= field.bound, f"{field.name} below {field.bound}", column, where)
        if clear.shape[1] > 1:
            unordered = np.any(clear[:, 1:] <= clear[:, :-1], axis=1)
            _reject(unordered, "positions in increasing order", clear, where)
        for part, mechanism in zip(bits, question.protocol.mechanisms, strict=True):
            if spare := 8 * mechanism.size - mechanism.width:
                last, unused = part[:, -1], f"bits {mechanism.width} and above to be 0"
                _reject(last >= 1 << (8 - spare), unused, last, where, PaddingBits)
            if mechanism.bound is not None:
                sent = numbers(part)
                _reject(sent >= mechanism.bound, f"a number below {mechanism.bound}", sent, where)


def _reject(
    bad: NDArray[np.bool_],
    expected: str,
    values: Array,
    where: str = "",
    error: type[WireError] = FieldOutOfRange,
) -> None:
    """Raise the error for the first bad report, if there is one."""
    if (rows := np.flatnonzero(bad)).size:
        got = values[rows[0]].tolist()
        shown = f"a last byte of 0x{got:02x}" if error is PaddingBits else got
        raise error(f"report {rows[0]}{where}: expected {expected}, got {shown}")


def numbers(rows: NDArray[np.uint8]) -> NDArray[np.int64]:
    """int64[N], the little-endian numbers in u8[N, B], B ≤ 4."""
    places = 256 ** np.arange(rows.shape[1], dtype=np.int64)
    return np.asarray(rows.astype(np.int64) @ places)


# --- bytes on the wire: a table of fixed-size records ---------------------------------------------


def from_wire(data: bytes | memoryview, survey: Surveys) -> ReportBatch:
    """A wire batch as columns, as strictly checked as one report at a time."""
    return from_bodies(*batch_bodies(data, survey))


def from_bodies(bodies: bytes | memoryview, survey: Survey) -> ReportBatch:
    """The bodies of reports, one after another, as columns; all are checked."""
    records = np.frombuffer(bodies, np.uint8).reshape(-1, survey.body_size)
    at = survey.cohort_size
    cohort = (
        records[:, :at].copy().view("<u2").reshape(-1).astype(np.uint16, copy=False)
        if at
        else np.zeros(len(records), np.uint16)
    )
    arrays: list[NDArray[np.uint8]] = []
    for _, fields, parts in widths(survey):
        for size in (fields, *parts):
            arrays.append(np.ascontiguousarray(records[:, at : at + size]))
            at += size
    return from_arrays(survey, [cohort, *arrays])


def to_wire(batch: ReportBatch) -> bytes:
    """The columns as one wire batch."""
    if not 1 <= len(batch) < 2**32:
        raise InputError(f"expected 1 to 2^32-1 reports in a wire batch, got {len(batch)}")
    count = len(batch).to_bytes(COUNT_SIZE, "little")
    return header(batch.survey, BATCH) + count + records(batch).tobytes()


def records(batch: ReportBatch) -> NDArray[np.uint8]:
    """The bodies: u8[N, body_size]."""
    cohort, *rest = batch.arrays()
    parts = [cohort.astype("<u2").view(np.uint8).reshape(-1, 2)] if batch.survey.cohort_size else []
    return np.concatenate([*parts, *rest], axis=1)
