"""ReportBatch: reports of one survey as columns of packed bits, and as bytes on the wire.

A report has a cohort and, per question, clear fields of one byte each and one packed row of bits
per part (see `protocols.base`). A batch holds each of these as one contiguous array.
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
BITS_OF_BYTE = np.unpackbits(np.arange(256, dtype=np.uint8)[:, None], axis=1).sum(axis=1)
"""Number of bits of every byte that are 1."""


@dataclass(frozen=True, eq=False)
class Column:
    """Reported bits of one part of one question, with the slot and cohort of each report.

    A *stratum* is a combination of slot and cohort: `slot * cohorts + cohort`.

    Parameters
    ----------
    part : Part
        Part of the question's protocol.
    bits : uint8 array of shape (N, B)
        Packed bits, B bytes per report.
    slot : uint8 array of shape (N,)
        Index into `part.slots` of each report.
    cohort : uint16 array of shape (N,)
        Cohort of each report, reduced to the mechanism's number of cohorts.

    Examples
    --------
    >>> from deniable import Client
    >>> from deniable.survey import example_survey, to_batch
    >>> survey = example_survey()
    >>> report = Client(survey, secret=bytes(32)).answer({"dark_mode": True})
    >>> column = from_wire(to_batch([report]), survey).column("dark_mode")
    >>> column.bits.shape, column.strata
    ((1, 1), 1)
    """

    part: Part
    bits: NDArray[np.uint8]
    slot: NDArray[np.uint8]
    cohort: NDArray[np.uint16]

    def __len__(self) -> int:
        return len(self.bits)

    @property
    def mechanism(self) -> Mechanism:
        """Mechanism of the first slot: all slots share width and noise, but not the hashing."""
        return self.part.slots[0].mechanism

    @property
    def strata(self) -> int:
        """Number of strata."""
        return len(self.part.slots) * self.mechanism.cohorts

    @property
    def stratum(self) -> NDArray[np.int32]:
        """Stratum of each report, as an int32 array of shape (N,)."""
        return self.slot.astype(np.int32) * self.mechanism.cohorts + self.cohort


@dataclass(frozen=True, eq=False)
class ReportBatch:
    """N reports of one survey, as columns; every report is valid.

    Parameters
    ----------
    survey : Survey
        Survey that the reports answer.
    cohort : uint16 array of shape (N,)
        Cohort of each report.
    clear : tuple of uint8 arrays
        One array of shape (N, fields) per question: its clear fields.
    bits : tuple of tuples of uint8 arrays
        One array of shape (N, B) per part of each question: its packed bits.
    origin : str, default ""
        Description of the source, such as "simulated, seed 7".
    trusted : bool, default False
        Skip the checks, for rows that were checked before.

    Raises
    ------
    InputError
        If an array has the wrong shape or type.
    WireError
        If a report is not valid: a field out of range, or a bit set beyond the last one.

    Examples
    --------
    >>> from deniable import Client
    >>> from deniable.survey import example_survey, to_batch
    >>> survey = example_survey()
    >>> report = Client(survey, secret=bytes(32)).answer({"dark_mode": True})
    >>> batch = from_wire(to_batch([report, report]), survey)
    >>> len(batch), len(batch.select(slice(0, 1)))
    (2, 1)
    """

    survey: Survey
    cohort: NDArray[np.uint16]
    clear: tuple[NDArray[np.uint8], ...]
    bits: tuple[tuple[NDArray[np.uint8], ...], ...]
    origin: str = ""
    trusted: InitVar[bool] = False

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
        """Yield every column, in the order of the bytes on the wire.

        Yields
        ------
        array
            Cohort, then per question its clear fields and the bits of each part.
        """
        yield self.cohort
        for clear, bits in zip(self.clear, self.bits, strict=True):
            yield clear
            yield from bits

    def select(self, rows: Rows) -> ReportBatch:
        """Return some of the reports.

        Parameters
        ----------
        rows : slice, bool array or int array
            Reports to take. A slice does not copy.

        Returns
        -------
        ReportBatch
            The selected reports.
        """
        columns = [array[rows] for array in self.arrays()]
        return from_arrays(self.survey, columns, origin=self.origin, trusted=True)

    def where(self, question: str, draw: Sequence[int]) -> ReportBatch:
        """Return the reports with given clear fields.

        Parameters
        ----------
        question : str
            Name of the question.
        draw : sequence of int
            Values of the question's clear fields: the positions of its n-grams, or the index of its
            prefix length.

        Returns
        -------
        ReportBatch
            The reports with these values.
        """
        clear = self.clear[self._index(question)]
        if clear.shape[1] != len(draw):
            raise InputError(
                f"question {question!r} has {clear.shape[1]} clear fields, got {len(draw)}"
            )
        return self.select(np.all(clear == np.asarray(draw), axis=1))

    def column(self, question: str, part: int = 0) -> Column:
        """Return the reported bits of one part of one question.

        Parameters
        ----------
        question : str
            Name of the question.
        part : int, default 0
            Index of the part; a protocol has one or more.

        Returns
        -------
        Column
            Bits, slot and cohort of each report.
        """
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
        """Return the index of a question in the survey."""
        return self.survey.questions.index(self.survey.question(question))

    @staticmethod
    def concat(batches: Iterable[ReportBatch]) -> ReportBatch:
        """Join batches of one survey.

        Parameters
        ----------
        batches : iterable of ReportBatch
            One or more batches.

        Returns
        -------
        ReportBatch
            All reports, in order.
        """
        batches = list(batches)
        if not batches:
            raise InputError("cannot join batches: expected at least one, got none")
        survey = batches[0].survey
        if any(b.survey != survey for b in batches):
            raise InputError("cannot join batches of several surveys")
        if len(batches) == 1:
            return batches[0]
        columns = [np.concatenate(a) for a in zip(*(b.arrays() for b in batches), strict=True)]
        origin = "; ".join(dict.fromkeys(b.origin for b in batches if b.origin))
        return from_arrays(survey, columns, origin=origin, trusted=True)


def column_sizes(survey: Survey) -> list[tuple[Question, int, list[int]]]:
    """Return each question with its number of clear fields and the bytes of each part."""
    return [
        (q, len(q.protocol.clear), [m.size for m in q.protocol.mechanisms])
        for q in survey.questions
    ]


def from_arrays(
    survey: Survey, arrays: Sequence[Array], *, origin: str = "", trusted: bool = False
) -> ReportBatch:
    """Return the batch whose `arrays()` these are."""
    columns = iter(arrays)
    cohort, clear, bits = next(columns), [], []
    for question in survey.questions:
        clear.append(next(columns))
        bits.append(tuple(islice(columns, len(question.protocol.mechanisms))))
    return ReportBatch(survey, cohort, tuple(clear), tuple(bits), origin, trusted=trusted)


def _check_shapes(batch: ReportBatch) -> None:
    """Raise InputError unless every array has the type and shape that the survey prescribes."""
    n = len(batch.cohort)
    if batch.cohort.dtype != np.uint16 or batch.cohort.ndim != 1:
        raise InputError(f"expected cohort as uint16[N], got {_describe(batch.cohort)}")
    shapes = column_sizes(batch.survey)
    if not len(batch.clear) == len(batch.bits) == len(shapes):
        raise InputError(
            f"expected columns of {len(shapes)} questions, got clear fields of {len(batch.clear)} "
            f"and bits of {len(batch.bits)}"
        )
    for (question, fields, parts), clear, bits in zip(shapes, batch.clear, batch.bits, strict=True):
        if len(bits) != len(parts):
            raise InputError(f"question {question.name!r} has {len(parts)} parts, got {len(bits)}")
        for array, size in zip((clear, *bits), (fields, *parts), strict=True):
            if array.dtype != np.uint8 or array.shape != (n, size):
                raise InputError(
                    f"question {question.name!r}: expected uint8[{n}, {size}], got "
                    f"{_describe(array)}"
                )


def _describe(array: Array) -> str:
    """Return type and shape of an array, such as "uint8[5, 2]"."""
    return f"{array.dtype}{list(array.shape)}"


def _check_content(batch: ReportBatch) -> None:
    """Apply the rules of the parser in `survey.report` to all rows; a test compares the two."""
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
                sent = packed_numbers(part)
                _reject(sent >= mechanism.bound, f"a number below {mechanism.bound}", sent, where)
            if mechanism.ones is not None:
                ones = BITS_OF_BYTE[part].sum(axis=1, dtype=np.int64)
                _reject(ones != mechanism.ones, f"{mechanism.ones} bits that are 1", ones, where)


def _reject(
    bad: NDArray[np.bool_],
    expected: str,
    values: Array,
    where: str = "",
    error: type[WireError] = FieldOutOfRange,
) -> None:
    """Raise an error for the first bad report, if there is one."""
    if (rows := np.flatnonzero(bad)).size:
        got = values[rows[0]].tolist()
        shown = f"a last byte of 0x{got:02x}" if error is PaddingBits else got
        raise error(f"report {rows[0]}{where}: expected {expected}, got {shown}")


def packed_numbers(rows: NDArray[np.uint8]) -> NDArray[np.int64]:
    """Return the little-endian numbers in u8[N, B], B ≤ 4, as int64[N]."""
    places = 256 ** np.arange(rows.shape[1], dtype=np.int64)
    return np.asarray(rows.astype(np.int64) @ places)


# --- bytes on the wire: a table of fixed-size records ---------------------------------------------


def from_wire(data: bytes | memoryview, survey: Surveys) -> ReportBatch:
    """Read a wire batch, with the same checks as for a single report.

    Parameters
    ----------
    data : bytes or memoryview
        Wire batch, as a client or `to_wire` writes it.
    survey : Survey, str, Path, or mapping of bytes to Survey
        Survey that the batch must answer, the path of its file, or the possible surveys by digest.

    Returns
    -------
    ReportBatch
        The reports of the batch.

    Raises
    ------
    WireError
        If the bytes are not a valid batch of reports of the survey.

    Examples
    --------
    >>> from deniable import Client
    >>> from deniable.survey import example_survey, to_batch
    >>> survey = example_survey()
    >>> report = Client(survey, secret=bytes(32)).answer({"dark_mode": True})
    >>> len(from_wire(to_batch([report, report]), survey))
    2
    """
    return from_bodies(*batch_bodies(data, survey))


def from_bodies(bodies: bytes | memoryview, survey: Survey) -> ReportBatch:
    """Read report bodies that follow one another, and check every report."""
    rows = np.frombuffer(bodies, np.uint8).reshape(-1, survey.body_size)
    at = survey.cohort_size
    cohort = (
        rows[:, :at].copy().view("<u2").reshape(-1).astype(np.uint16, copy=False)
        if at
        else np.zeros(len(rows), np.uint16)
    )
    arrays: list[NDArray[np.uint8]] = []
    for _, fields, parts in column_sizes(survey):
        for size in (fields, *parts):
            arrays.append(np.ascontiguousarray(rows[:, at : at + size]))
            at += size
    return from_arrays(survey, [cohort, *arrays])


def to_wire(batch: ReportBatch) -> bytes:
    """Return reports as one wire batch.

    Parameters
    ----------
    batch : ReportBatch
        At least one report.

    Returns
    -------
    bytes
        The wire batch.

    Raises
    ------
    InputError
        If the batch is empty or has 2^32 reports or more.

    Examples
    --------
    >>> from deniable import Client
    >>> from deniable.survey import example_survey, to_batch
    >>> survey = example_survey()
    >>> report = Client(survey, secret=bytes(32)).answer({"dark_mode": True})
    >>> data = to_batch([report, report])
    >>> to_wire(from_wire(data, survey)) == data
    True
    """
    if not 1 <= len(batch) < 2**32:
        raise InputError(f"a wire batch has 1 to 2^32-1 reports, got {len(batch)}")
    count = len(batch).to_bytes(COUNT_SIZE, "little")
    return header(batch.survey, BATCH) + count + to_bodies(batch).tobytes()


def to_bodies(batch: ReportBatch) -> NDArray[np.uint8]:
    """Return the report bodies as u8[N, body_size]."""
    cohort, *others = batch.arrays()
    first = [cohort.astype("<u2").view(np.uint8).reshape(-1, 2)] if batch.survey.cohort_size else []
    return np.concatenate([*first, *others], axis=1)
