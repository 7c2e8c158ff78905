"""Typed answers of `deniable init`: each function returns the value, or says what is wrong."""

from __future__ import annotations

import calendar
import datetime as dt
import math
import re
from collections.abc import Callable, Sequence

import click

from deniable.cli import options
from deniable.cli.interview.outline import DEFAULT_BINS, DEFAULT_EPSILON, OutlineBins
from deniable.errors import InputError, check_integer, closest, did_you_mean
from deniable.formatting import counted
from deniable.mechanisms import Choice, Noise
from deniable.protocols.alphabet import MAX_LENGTH
from deniable.protocols.bins import MAX_BINS
from deniable.survey.survey import check_name
from deniable.survey.toml_file import accidental_ranges, parse_alphabet

PERIOD = re.compile(r"(?:in )?(\d{1,5}|an?|one) *(day|week|month|year)s?")
KIND_WORDS = {"yes/no": "boolean", "yes or no": "boolean", "text": "string", "options": "choice"}
"""Words that are understood besides the names of the kinds."""


def name_of(noun: str, taken: Sequence[str] = ()) -> Callable[[str], str]:
    """Return the check of the name of a survey or question."""

    def parse(text: str) -> str:
        check_name(noun, text)
        if text in taken:
            raise InputError(f"another {noun} is called {text!r}: choose another name")
        return text

    return parse


def text(written: str) -> str:
    """Return a text that is not blank."""
    if not written.strip():
        raise InputError("write at least one word")
    return written.strip()


def one_of(*words: str) -> Callable[[str], str]:
    """Return the check of a word, which may be abbreviated."""

    def parse(written: str) -> str:
        word = KIND_WORDS.get(written.strip().lower(), written.strip().lower())
        fitting = [each for each in words if word and each.startswith(word)]
        if len(fitting) != 1:
            listed = f"{', '.join(words[:-1])} or {words[-1]}"
            raise InputError(f"expected {listed}, not {written!r}.{did_you_mean(word, words)}")
        return fitting[0]

    return parse


def closest_to(*words: str) -> Callable[[str], str]:
    """Return a function that finds the word that was probably meant, or an empty string."""
    return lambda written: closest(written.strip(), words)


kind = one_of(*DEFAULT_EPSILON)
collect = one_of("once", "repeatedly")


def day(written: str, today: dt.date | None = None) -> dt.date:
    """Return a day that was written as 2027-12-31, or as a time from today, such as 6 months.

    >>> day("6 months", dt.date(2027, 8, 31)).isoformat()
    '2028-02-29'
    """
    today = today or dt.datetime.now(dt.UTC).date()
    try:
        if period := PERIOD.fullmatch(written.strip().lower()):
            chosen = _later(today, int(period[1]) if period[1].isdigit() else 1, period[2])
        else:
            chosen = dt.date.fromisoformat(written.strip())
    except (ValueError, OverflowError):
        example = _later(today, 6, "month")
        raise InputError(
            f"expected a day as YYYY-MM-DD, such as {example}, or a time from today, such as 6 "
            f"months; got {written!r}"
        ) from None
    if chosen < today:
        raise InputError(f"{chosen} has passed: clients would refuse to answer; today is {today}")
    return chosen


def _later(today: dt.date, count: int, unit: str) -> dt.date:
    """Return the day so many days, weeks, months or years later."""
    if unit in ("day", "week"):
        return today + dt.timedelta(days=count * (7 if unit == "week" else 1))
    months = today.year * 12 + today.month - 1 + count * (12 if unit == "year" else 1)
    year, month = months // 12, months % 12 + 1
    if year > dt.MAXYEAR:
        raise OverflowError
    return dt.date(year, month, min(today.day, calendar.monthrange(year, month)[1]))


def choices(written: str) -> tuple[str, ...]:
    """Return the options of a choice, which commas separate."""
    found = tuple(part.strip() for part in written.split(",") if part.strip())
    if len(found) < 2:
        raise InputError("a choice needs at least 2 options, such as: Firefox, Safari, other")
    return Choice(options=found, noise=Noise.of(p=0.25, q=0.75)).options


def describe_choices(options: Sequence[str]) -> str:
    """Say how many options there are, and what happens to other answers."""
    summary = counted(len(options), "option") + "."
    if any(re.match("(an)?other|none", option.lower()) for option in options):
        return summary
    return f'{summary} Other answers are not counted: an option such as "other" is often useful.'


def number_range(written: str) -> OutlineBins:
    """Return the range of a number question, written as LOW,HIGH or LOW,HIGH,BINS.

    >>> number_range("0, 500, 20").bins
    20
    """
    try:
        least, most, *count = written.split(",")
        low, high = float(least), float(most)
        made = OutlineBins(low, high, int(*count) if count else DEFAULT_BINS)
    except (ValueError, OverflowError, TypeError):
        raise InputError(
            "expected the smallest and the largest number, and if you like the number of bins, "
            f"such as 0,500 or 0,500,20; got {written!r}"
        ) from None
    if not (math.isfinite(low) and math.isfinite(high) and low < high):
        raise InputError(f"the smallest number must be below the largest one, unlike {written!r}")
    check_integer("the number of bins", made.bins, 2, MAX_BINS)
    return made


def describe_range(given: OutlineBins) -> str:
    """Say how wide the bins are, and what happens to other numbers."""
    width = (given.high - given.low) / given.bins
    return (
        f"{given.bins} bins of width {width:g}. Numbers below {given.low:g} count in the first "
        f"one, numbers above {given.high:g} in the last one."
    )


def length(written: str) -> int:
    """Return the maximum length of unknown strings."""
    number = int(written) if written.strip().isdecimal() else written
    check_integer("the maximum length", number, 1, MAX_LENGTH)
    return int(number)


def alphabet(written: str) -> str:
    """Return the characters of unknown strings, as a survey file has them."""
    parse_alphabet(written.strip())
    return written.strip()


def describe_alphabet(written: str) -> str:
    """Say how many symbols an alphabet has, and which ranges it may have by accident."""
    if written == "bytes":
        return "Any text; a character may take several bytes."
    facts = [counted(len(parse_alphabet(written).content), "character")]
    facts += accidental_ranges(written)
    return f"{'; '.join(facts)}. All others are reported as one unknown symbol."


def clients(written: str) -> int:
    """Return a number of clients."""
    try:
        return options.parse_count(written.strip().replace(" ", ""))
    except click.BadParameter as error:
        raise InputError(error.message) from None


def epsilon(written: str) -> float:
    """Return ε, the privacy loss."""
    try:
        number = float(written)
    except ValueError:
        number = math.nan
    if not 0 < number < math.inf:
        raise InputError(f"ε must be a number above 0, such as 2 or 0.5; got {written!r}")
    return number
