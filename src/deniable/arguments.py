"""Arguments in the forms that users have them in: days and booleans as text, lists of strings."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable

from deniable.errors import InputError

Day = dt.date | str
"""A day: a date, a date with a time, or text such as "2027-01-31"."""
BOOLEANS = {"yes": True, "true": True, "1": True, "no": False, "false": False, "0": False}
"""Ways to write the answer to a boolean question, in lower case."""


def as_day(name: str, given: Day) -> dt.date:
    """Return a day as a date.

    Parameters
    ----------
    name : str
        Name of the argument, for error messages.
    given : datetime.date, datetime.datetime or str
        A date, or text as YYYY-MM-DD. Of a time with a time zone, the day in UTC is taken, because
        stores keep days in UTC.

    Returns
    -------
    datetime.date
        The day, without a time.

    Raises
    ------
    InputError
        If it is none of these.

    Examples
    --------
    >>> as_day("since", "2027-01-31")
    datetime.date(2027, 1, 31)
    >>> as_day("since", "January")
    Traceback (most recent call last):
    deniable.errors.InputError: since must be a day as YYYY-MM-DD or a datetime.date, not 'January'
    """
    if isinstance(given, dt.datetime):
        return (given.astimezone(dt.UTC) if given.tzinfo else given).date()
    if isinstance(given, dt.date):
        return given
    try:
        return dt.date.fromisoformat(given)
    except (TypeError, ValueError):
        raise InputError(
            f"{name} must be a day as YYYY-MM-DD or a datetime.date, not {given!r:.80}"
        ) from None


def as_optional_day(name: str, given: Day | None) -> dt.date | None:
    """Return a day as a date, or None."""
    return None if given is None else as_day(name, given)


def as_names(name: str, given: Iterable[str]) -> list[str]:
    """Return the strings of a list; raise if it is a single string, or has anything else.

    Parameters
    ----------
    name : str
        Name of the argument, for error messages.
    given : iterable of str
        The strings.

    Returns
    -------
    list of str
        The same strings.

    Raises
    ------
    InputError
        If it is a single string, which would be taken for a list of its characters, or if it is
        not a list of strings.

    Examples
    --------
    >>> as_names("questions", ("browser", "dark"))
    ['browser', 'dark']
    >>> as_names("questions", "dark")
    Traceback (most recent call last):
    deniable.errors.InputError: questions must be a list of strings, got the single string 'dark'
    """
    if isinstance(given, str):
        raise InputError(f"{name} must be a list of strings, got the single string {given!r:.80}")
    if not isinstance(given, Iterable):
        raise InputError(f"{name} must be a list of strings, not {type(given).__name__}")
    listed = list(given)
    if wrong := [each for each in listed if not isinstance(each, str)]:
        raise InputError(f"{name} must be strings, got {wrong[0]!r:.80}")
    return listed
