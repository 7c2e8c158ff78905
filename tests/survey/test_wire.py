"""Reports as bytes: every report is read back, and each kind of invalid bytes has its own error."""

from __future__ import annotations

from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deniable.errors import (
    FieldOutOfRange,
    InputError,
    PaddingBits,
    TrailingBytes,
    UnknownFormat,
    UnknownSurvey,
    WireError,
    WrongLength,
)
from deniable.survey import from_batch, from_bytes, to_batch
from deniable.survey.report import HEADER_SIZE
from tests.replayed import replayed_client
from tests.vectors import make

SURVEYS = {s.name: s for s in make.surveys()}
URLS, EVERY = SURVEYS["urls"], SURVEYS["vectors"]


def a_report(name: str = "urls", value: str = "example.com") -> bytes:
    survey = SURVEYS[name]
    entropy = partial(make.stretch, "wire")
    client = replayed_client(survey, secret=make.SECRETS[2], entropy=entropy)
    return bytes(client.answer(make.answers(survey, value, 0)))


def changed(data: bytes, at: int, byte: int) -> bytes:
    return data[:at] + bytes([byte]) + data[at + 1 :]


BODY = HEADER_SIZE


@pytest.mark.parametrize(
    ("data", "error", "says"),
    [
        (b"", WrongLength, "header has 20 bytes, but there are only 0"),
        (a_report()[:-1], WrongLength, "must have 75 bytes, not 74"),
        (a_report() + b"\0", TrailingBytes, "must have 75 bytes, not 76"),
        (changed(a_report(), 0, 0), UnknownFormat, "begins with"),
        (changed(a_report(), 2, 9), UnknownFormat, "version 1 of the format, not 9"),
        (changed(a_report(), 3, 2), UnknownFormat, "a single report"),
        (changed(a_report(), 3, 7), UnknownFormat, "not 7"),
        (changed(a_report(), 5, a_report()[5] ^ 1), UnknownSurvey, "urls v1"),
        (changed(a_report(), BODY, 64), FieldOutOfRange, "cohort must be below 64, not 64"),
        (changed(a_report(), BODY + 3, 10), FieldOutOfRange, "position 2 must be below 10, not 10"),
        (changed(changed(a_report(), BODY + 2, 4), BODY + 3, 4), FieldOutOfRange, "increasing"),
        (changed(a_report(), BODY + 4 + 48 + 1, 2), PaddingBits, "'browser'.*bits 9 and above"),
        (changed(a_report(), BODY + 4 + 48 + 2, 2), PaddingBits, "'ads'.*bits 1 and above"),
    ],
    ids=range(13),
)  # fmt: skip
def test_each_fault_has_its_own_error(data: bytes, error: type[WireError], says: str) -> None:
    with pytest.raises(error, match=says):
        from_bytes(data, URLS)


def test_a_level_out_of_range() -> None:
    data = a_report("vectors")
    word = 2 + 3  # cohort, then the first question's 20 bits
    grams = 2 + 3 * 5
    with pytest.raises(FieldOutOfRange, match="level must be below 4, not 4"):
        from_bytes(changed(data, BODY + word + grams, 4), EVERY)


def test_several_surveys_at_hand() -> None:
    known = {s.digest: s for s in SURVEYS.values()}
    assert from_bytes(a_report("urls"), known).survey == URLS
    assert from_bytes(a_report("vectors"), known).survey == EVERY
    with pytest.raises(UnknownSurvey):
        from_bytes(a_report("urls"), EVERY)


@pytest.mark.parametrize(
    ("cut", "error"),
    [(slice(0, 22), WrongLength), (slice(0, -1), WrongLength), (slice(0, 3), WrongLength)],
)
def test_short_batches(cut: slice, error: type[WireError]) -> None:
    batch = to_batch([from_bytes(a_report(), URLS)] * 3)
    with pytest.raises(error):
        from_batch(batch[cut], URLS)


def test_bad_batches() -> None:
    report = from_bytes(a_report(), URLS)
    batch = to_batch([report] * 3)
    with pytest.raises(TrailingBytes):
        from_batch(batch + b"\0", URLS)
    with pytest.raises(WrongLength, match="count is 0"):
        from_batch(batch[:HEADER_SIZE] + bytes(4), URLS)
    with pytest.raises(FieldOutOfRange):
        from_batch(changed(batch, len(batch) - URLS.body_size, 200), URLS)
    with pytest.raises(InputError, match="at least one"):
        to_batch([])
    with pytest.raises(InputError, match="one batch per survey"):
        to_batch([report, from_bytes(a_report("vectors"), EVERY)])


@given(st.binary(max_size=200))
def test_garbage_is_refused(data: bytes) -> None:
    for parse in (from_bytes, from_batch):
        with pytest.raises(WireError):
            parse(data, URLS)


@given(st.integers(0, 63), st.permutations(range(10)), st.binary(min_size=48, max_size=48),
       st.integers(0, 511), st.integers(0, 1))  # fmt: skip
def test_what_is_accepted_is_written_back(
    cohort: int, order: list[int], bits: bytes, browser: int, ads: int
) -> None:
    """Every valid body is written back as the same bytes: no byte is ignored."""
    body = cohort.to_bytes(2, "little") + bytes(sorted(order[:2])) + bits
    data = a_report()[:HEADER_SIZE] + body + browser.to_bytes(2, "little") + bytes([ads])
    assert bytes(from_bytes(data, URLS)) == data


def test_reports_know_their_questions() -> None:
    report = from_bytes(a_report(), URLS)
    assert len(report["url"].slots) == 3
    assert report["url"].clear == report.answers[0].clear
    with pytest.raises(InputError, match="no question 'x'"):
        report["x"]
