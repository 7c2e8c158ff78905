"""Reports as bytes: a compact, versioned format, specified in docs/reference/wire.md.

    report  =  "dn" 01 01  digest[16]  body
    batch   =  "dn" 01 02  digest[16]  count[4, little-endian]  body × count
    body    =  cohort[2, little-endian, only where there is more than one]
               then for each question: its clear bytes, then each slot's packed bits

All bodies of a survey have the same length. Reports contain no identity, time or sequence number.
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
from deniable.survey.survey import DIGEST_SIZE, Question, Survey, SurveyOrPath

MAGIC = b"dn"
VERSION = 1
REPORT, BATCH = 1, 2
HEADER_SIZE = len(MAGIC) + 2 + DIGEST_SIZE
COUNT_SIZE = 4
BATCH_HEADER_SIZE = HEADER_SIZE + COUNT_SIZE

Surveys = SurveyOrPath | Mapping[bytes, Survey]


@dataclass(frozen=True)
class Answer:
    """The part of a report that belongs to one question.

    Parameters
    ----------
    clear : tuple of int
        Clear fields: positions of n-grams, or the index of the prefix length.
    slots : tuple of bytes
        Packed noisy bits, or the noisy number, of each slot.

    Examples
    --------
    >>> Answer(clear=(3,), slots=(bytes([5]),)).slots[0][0]
    5
    """

    clear: tuple[int, ...]
    slots: tuple[bytes, ...]


@dataclass(frozen=True)
class Report:
    """A report: the noisy message of a client. `bytes(report)` is what is sent.

    Parameters
    ----------
    survey : Survey
        Survey that is answered.
    cohort : int
        Cohort of the client, sent in the clear.
    answers : tuple of Answer
        One per question, in the order of the survey.

    Examples
    --------
    >>> from deniable import Client
    >>> from deniable.survey import example_survey
    >>> survey = example_survey()
    >>> report = Client(survey, secret=bytes(32)).answer({"dark_mode": True})
    >>> len(bytes(report)), report["dark_mode"].slots[0][0] in (0, 1)
    (21, True)
    """

    survey: Survey
    cohort: int
    answers: tuple[Answer, ...]

    def __repr__(self) -> str:
        survey = self.survey
        return f"<Report of survey {survey.name} v{survey.version}, {len(bytes(self))} bytes>"

    def __bytes__(self) -> bytes:
        return to_bytes(self)

    def __getitem__(self, question: str) -> Answer:
        """Return the answer to the question of this name."""
        names = [q.name for q in self.survey.questions]
        return self.answers[names.index(self.survey.question(question).name)]


def to_bytes(report: Report) -> bytes:
    """Return the bytes of one report.

    Parameters
    ----------
    report : Report
        The report.

    Returns
    -------
    bytes
        Header and body, as docs/reference/wire.md describes them.

    Examples
    --------
    See `from_bytes`, its inverse.
    """
    return header(report.survey, REPORT) + body(report)


def to_batch(reports: Sequence[Report]) -> bytes:
    """Return the bytes of a batch of reports.

    Parameters
    ----------
    reports : sequence of Report
        One or more reports of the same survey.

    Returns
    -------
    bytes
        Header, count and bodies, as docs/reference/wire.md describes them.

    Raises
    ------
    InputError
        If there are no reports, or if they answer different surveys.

    Examples
    --------
    See `from_batch`, its inverse.
    """
    if not reports:
        raise InputError("there are no reports: a batch needs at least one")
    survey = reports[0].survey
    if any(report.survey.digest != survey.digest for report in reports):
        raise InputError("the reports answer different surveys: make one batch per survey")
    return b"".join([batch_header(survey.digest, len(reports)), *map(body, reports)])


def from_bytes(data: bytes, survey: Surveys) -> Report:
    """Parse the bytes of one report.

    Parameters
    ----------
    data : bytes
        The report; every byte is checked.
    survey : Survey, str, Path, or mapping of bytes to Survey
        Survey that the report answers, the path of its file, or several surveys by their digest.

    Returns
    -------
    Report
        The report.

    Raises
    ------
    WireError
        If the bytes are not exactly one report of the survey; see `deniable.errors`.

    Examples
    --------
    >>> from deniable import Client
    >>> from deniable.survey import example_survey
    >>> survey = example_survey()
    >>> report = Client(survey, secret=bytes(32)).answer({"dark_mode": True})
    >>> from_bytes(to_bytes(report), survey) == report
    True
    """
    answered = _answered_survey(data, survey)
    return parse_body(data[HEADER_SIZE:], answered)


def check_bytes(data: bytes, survey: Surveys) -> Survey:
    """Check the bytes of one report as `from_bytes` does, and return the survey it answers."""
    answered = _answered_survey(data, survey)
    check_body(data[HEADER_SIZE:], answered)
    return answered


def _answered_survey(data: bytes, survey: Surveys) -> Survey:
    """Return the survey that a report answers, after checking its header and its length."""
    answered = _survey_of(data, survey, REPORT)
    _check_length(data, HEADER_SIZE + answered.body_size, answered)
    return answered


def from_batch(data: bytes, survey: Surveys) -> list[Report]:
    """Parse the bytes of a batch of reports.

    Parameters
    ----------
    data : bytes
        The batch; every byte is checked, and one invalid report makes the batch invalid.
    survey : Survey, str, Path, or mapping of bytes to Survey
        Survey that the reports answer, the path of its file, or several surveys by their digest.

    Returns
    -------
    list of Report
        The reports.

    Raises
    ------
    WireError
        If the bytes are not exactly one batch of the survey; see `deniable.errors`.

    Examples
    --------
    >>> from deniable import Client
    >>> from deniable.survey import example_survey
    >>> survey = example_survey()
    >>> reports = [Client(survey, secret=bytes(31) + bytes([i])).answer({}) for i in range(3)]
    >>> from_batch(to_batch(reports), survey) == reports
    True
    """
    bodies, answered = batch_bodies(data, survey)
    size = answered.body_size
    starts = range(0, len(bodies), size)
    return [parse_body(bytes(bodies[i : i + size]), answered) for i in starts]


def batch_bodies(data: bytes | memoryview, survey: Surveys) -> tuple[memoryview, Survey]:
    """Return the unchecked bodies of a batch, and the survey that they answer."""
    size, answered = batch_size(data, survey)
    _check_length(data, size, answered)
    return memoryview(data)[BATCH_HEADER_SIZE:], answered


def batch_size(data: bytes | memoryview, survey: Surveys) -> tuple[int, Survey]:
    """Return the total size in bytes of the batch that begins so, and the survey it answers."""
    answered = _survey_of(data, survey, BATCH)
    if len(data) < BATCH_HEADER_SIZE:
        raise WrongLength(f"a batch has at least {BATCH_HEADER_SIZE} bytes, not {len(data)}")
    count = int.from_bytes(data[HEADER_SIZE:BATCH_HEADER_SIZE], "little")
    if count == 0:
        raise WrongLength("a batch has at least one report, but its count is 0")
    return BATCH_HEADER_SIZE + count * answered.body_size, answered


def header(survey: Survey, form: int) -> bytes:
    """Return the bytes before the body of a report, or before the count of a batch."""
    return MAGIC + bytes([VERSION, form]) + survey.digest


def batch_header(digest: bytes, reports: int) -> bytes:
    """Return the bytes before the bodies of a batch of so many reports."""
    return MAGIC + bytes([VERSION, BATCH]) + digest + reports.to_bytes(COUNT_SIZE, "little")


def body(report: Report) -> bytes:
    """Return the body of a report: its bytes in a batch."""
    size = report.survey.cohort_size
    parts: Iterable[bytes] = (
        part for answer in report.answers for part in (bytes(answer.clear), *answer.slots)
    )
    return b"".join((report.cohort.to_bytes(size, "little") if size else b"", *parts))


def parse_body(data: bytes, survey: Survey) -> Report:
    """Return the report in a body of exactly `survey.body_size` bytes."""
    check_body(data, survey)
    at, answers = survey.cohort_size, []
    for question in survey.questions:
        part = data[at : at + question.size]
        clear = tuple(part[: len(question.protocol.clear)])
        answers.append(Answer(clear, tuple(part[f.start : f.end] for f in question.slot_forms)))
        at += question.size
    return Report(survey, _cohort_in(data, survey), tuple(answers))


def check_body(data: bytes, survey: Survey) -> None:
    """Raise WireError unless a body of exactly `survey.body_size` bytes is that of a report."""
    if (cohort := _cohort_in(data, survey)) >= survey.cohorts:
        raise FieldOutOfRange(f"the cohort must be below {survey.cohorts}, not {cohort}")
    at = survey.cohort_size
    for question in survey.questions:
        _check_answer(data[at : at + question.size], question)
        at += question.size


def _cohort_in(data: bytes, survey: Survey) -> int:
    """Return the cohort that a body begins with."""
    return int.from_bytes(data[: survey.cohort_size], "little")


def _check_answer(data: bytes, question: Question) -> None:
    """Check the part of a body that belongs to one question."""
    fields = question.protocol.clear
    for value, field in zip(data, fields, strict=False):
        if value >= field.bound:
            raise FieldOutOfRange(
                f"question {question.name!r}: {field.name} must be below {field.bound}, not {value}"
            )
    if len(fields) > 1 and any(a >= b for a, b in pairwise(data[: len(fields)])):
        raise FieldOutOfRange(
            f"question {question.name!r}: positions must be in increasing order, unlike "
            f"{tuple(data[: len(fields)])}"
        )
    for form in question.slot_forms:
        number = int.from_bytes(data[form.start : form.end], "little")
        if number >> form.width:
            raise PaddingBits(
                f"question {question.name!r}: bits {form.width} and above must be 0, but the last "
                f"byte is 0x{data[form.end - 1]:02x}"
            )
        if form.bound is not None and number >= form.bound:
            raise FieldOutOfRange(
                f"question {question.name!r}: the number must be below {form.bound}, not {number}"
            )
        if form.ones is not None and number.bit_count() != form.ones:
            raise FieldOutOfRange(
                f"question {question.name!r}: exactly {form.ones} bits must be 1, not "
                f"{number.bit_count()}"
            )


def _survey_of(data: bytes | memoryview, surveys: Surveys, form: int) -> Survey:
    """Check the header, and return the survey that it belongs to."""
    if len(data) < HEADER_SIZE:
        raise WrongLength(f"a header has {HEADER_SIZE} bytes, but there are only {len(data)}")
    if data[:2] != MAGIC:
        raise UnknownFormat(f"a report begins with {MAGIC!r}, not with {bytes(data[:2])!r}")
    if data[2] != VERSION:
        raise UnknownFormat(
            f"this release reads version {VERSION} of the format, not {data[2]}: update deniable"
        )
    if data[3] != form:
        names = {REPORT: "a single report (1)", BATCH: "a batch (2)"}
        raise UnknownFormat(f"expected {names[form]}, not {names.get(data[3], data[3])}")
    digest = bytes(data[4:HEADER_SIZE])
    if not isinstance(surveys, Mapping):
        survey = Survey.of(surveys)
        surveys = {survey.digest: survey}
    if digest not in surveys:
        known = ", ".join(f"{s.name} v{s.version} ({d.hex()})" for d, s in surveys.items())
        raise UnknownSurvey(
            f"the report answers the survey with digest {digest.hex()}, which is not given; "
            f"given: {known}"
        )
    return surveys[digest]


def _check_length(data: bytes | memoryview, expected: int, survey: Survey) -> None:
    """Raise an error unless there are exactly as many bytes as expected."""
    name = f"{survey.name!r} version {survey.version}"
    message = f"this report or batch of survey {name} must have {expected} bytes, not {len(data)}"
    if len(data) < expected:
        raise WrongLength(message)
    if len(data) > expected:
        raise TrailingBytes(message)
