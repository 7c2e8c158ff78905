"""Reports as bytes: compact, versioned, strict. docs/reference/wire.md specifies them byte by byte.

    report  =  "dn" 01 01  digest[16]  body
    batch   =  "dn" 01 02  digest[16]  count[4, little-endian]  body × count
    body    =  cohort[2, little-endian, only where there is more than one]
               then for each question: its clear bytes, then each slot's packed bits

Every body of a survey has the same length. There is no client identity, no time, no sequence.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from deniable.errors import (
    FieldOutOfRange,
    InputError,
    PaddingBits,
    TrailingBytes,
    UnknownFormat,
    UnknownSurvey,
    WrongLength,
)
from deniable.survey.survey import DIGEST_SIZE, Question, Survey

MAGIC = b"dn"
VERSION = 1
REPORT, BATCH = 1, 2
HEADER_SIZE = len(MAGIC) + 2 + DIGEST_SIZE
COUNT_SIZE = 4
BATCH_HEADER_SIZE = HEADER_SIZE + COUNT_SIZE

Surveys = Survey | Mapping[bytes, Survey]


@dataclass(frozen=True)
class Answer:
    """One question's part of a report: clear fields, then each slot's packed bits."""

    clear: tuple[int, ...]
    slots: tuple[bytes, ...]


@dataclass(frozen=True)
class Report:
    """What leaves the device."""

    survey: Survey
    cohort: int
    answers: tuple[Answer, ...]

    def __bytes__(self) -> bytes:
        return to_bytes(self)

    def __getitem__(self, question: str) -> Answer:
        """The answer to the question of this name."""
        names = [q.name for q in self.survey.questions]
        return self.answers[names.index(self.survey.question(question).name)]


def to_bytes(report: Report) -> bytes:
    """One report by itself."""
    return header(report.survey, REPORT) + body(report)


def to_batch(reports: Sequence[Report]) -> bytes:
    """Reports of one survey together; at least one."""
    if not reports:
        raise InputError("expected at least one report, got none")
    survey = reports[0].survey
    if any(report.survey.digest != survey.digest for report in reports):
        raise InputError("expected reports of one survey, got several: make one batch for each")
    return b"".join([batch_header(survey.digest, len(reports)), *map(body, reports)])


def from_bytes(data: bytes, survey: Surveys) -> Report:
    """Parse one report, strictly. `survey` may be several, by digest."""
    found = _known(data, survey, REPORT)
    _check_length(data, HEADER_SIZE + found.body_size, found)
    return parse_body(data[HEADER_SIZE:], found)


def from_batch(data: bytes, survey: Surveys) -> list[Report]:
    """Parse a batch, strictly: one bad report refuses the whole."""
    bodies, found = batch_bodies(data, survey)
    starts = range(0, len(bodies), found.body_size)
    return [parse_body(bytes(bodies[i : i + found.body_size]), found) for i in starts]


def batch_bodies(data: bytes | memoryview, survey: Surveys) -> tuple[memoryview, Survey]:
    """The bodies of a whole batch, not looked into yet, and the survey that they answer."""
    size, found = batch_size(data, survey)
    _check_length(data, size, found)
    return memoryview(data)[BATCH_HEADER_SIZE:], found


def batch_size(data: bytes | memoryview, survey: Surveys) -> tuple[int, Survey]:
    """How many bytes the batch that begins so has in all, and the survey that it answers."""
    found = _known(data, survey, BATCH)
    if len(data) < BATCH_HEADER_SIZE:
        raise WrongLength(
            f"expected a batch of at least {BATCH_HEADER_SIZE} bytes, got {len(data)}"
        )
    count = int.from_bytes(data[HEADER_SIZE:BATCH_HEADER_SIZE], "little")
    if count == 0:
        raise WrongLength("expected a batch of at least one report, got a count of 0")
    return BATCH_HEADER_SIZE + count * found.body_size, found


def header(survey: Survey, form: int) -> bytes:
    """The bytes before the body or the count."""
    return MAGIC + bytes([VERSION, form]) + survey.digest


def batch_header(digest: bytes, reports: int) -> bytes:
    """The bytes before the bodies of so many reports of the survey with this digest."""
    return MAGIC + bytes([VERSION, BATCH]) + digest + reports.to_bytes(COUNT_SIZE, "little")


def body(report: Report) -> bytes:
    """One report as it stands in a batch."""
    size = report.survey.cohort_size
    parts: Iterable[bytes] = (
        part for answer in report.answers for part in (bytes(answer.clear), *answer.slots)
    )
    return b"".join((report.cohort.to_bytes(size, "little") if size else b"", *parts))


def parse_body(data: bytes, survey: Survey) -> Report:
    """The report in a body of exactly `survey.body_size` bytes."""
    at = survey.cohort_size
    cohort = int.from_bytes(data[:at], "little")
    if cohort >= survey.cohorts:
        raise FieldOutOfRange(f"expected a cohort below {survey.cohorts}, got {cohort}")
    answers = []
    for question in survey.questions:
        answers.append(_parse_answer(data[at : at + question.size], question))
        at += question.size
    return Report(survey, cohort, tuple(answers))


def _parse_answer(data: bytes, question: Question) -> Answer:
    fields = question.protocol.clear
    clear = tuple(data[: len(fields)])
    for value, field in zip(clear, fields, strict=True):
        if value >= field.bound:
            raise FieldOutOfRange(
                f"question {question.name!r}: expected {field.name} below {field.bound}, "
                f"got {value}"
            )
    if any(a >= b for a, b in pairwise(clear)):
        raise FieldOutOfRange(
            f"question {question.name!r}: expected positions in increasing order, got {clear}"
        )
    at, slots = len(fields), []
    for mechanism in question.protocol.mechanisms:
        bits = data[at : at + mechanism.size]
        spare = 8 * mechanism.size - mechanism.width
        if spare and bits[-1] >> (8 - spare):
            raise PaddingBits(
                f"question {question.name!r}: expected bits {mechanism.width} and above to be 0, "
                f"got a last byte of 0x{bits[-1]:02x}"
            )
        if mechanism.bound is not None and int.from_bytes(bits, "little") >= mechanism.bound:
            raise FieldOutOfRange(
                f"question {question.name!r}: expected a number below {mechanism.bound}, "
                f"got {int.from_bytes(bits, 'little')}"
            )
        slots.append(bits)
        at += mechanism.size
    return Answer(clear, tuple(slots))


def _known(data: bytes | memoryview, surveys: Surveys, form: int) -> Survey:
    """The survey that the header names, after checking the header."""
    if len(data) < HEADER_SIZE:
        raise WrongLength(f"expected at least the {HEADER_SIZE} bytes of a header, got {len(data)}")
    if data[:2] != MAGIC:
        raise UnknownFormat(f"expected bytes that begin with {MAGIC!r}, got {bytes(data[:2])!r}")
    if data[2] != VERSION:
        raise UnknownFormat(f"expected format version {VERSION}, got {data[2]}: update this reader")
    if data[3] != form:
        names = {REPORT: "a single report (1)", BATCH: "a batch (2)"}
        raise UnknownFormat(f"expected {names[form]}, got {names.get(data[3], data[3])}")
    digest = bytes(data[4:HEADER_SIZE])
    if isinstance(surveys, Survey):
        surveys = {surveys.digest: surveys}
    if digest not in surveys:
        known = ", ".join(f"{s.name} v{s.version} ({d.hex()})" for d, s in surveys.items())
        raise UnknownSurvey(f"digest {digest.hex()} is none of the surveys at hand: {known}")
    return surveys[digest]


def _check_length(data: bytes | memoryview, expected: int, survey: Survey) -> None:
    what = f"survey {survey.name!r} v{survey.version} needs {expected} bytes, got {len(data)}"
    if len(data) < expected:
        raise WrongLength(what)
    if len(data) > expected:
        raise TrailingBytes(what)
