"""All errors that this library raises on purpose, as one small tree.

    DeniableError
    ├── InputError            an argument is invalid (also a ValueError)
    │   └── UnknownKey        a result has no row of this name (also a KeyError)
    ├── SurveyError           a survey file has mistakes; `.mistakes` lists all of them
    ├── SecretError           the client's secret cannot be read, or other users can read it
    ├── LedgerError           the ledger cannot be read, so no report is made
    ├── OutboxError           the outbox cannot be read or written
    ├── TransferError         a server sent no response, or not the expected one
    ├── BudgetExceeded        the answer would exceed the survey's privacy budget
    │   └── DeviceBudgetExceeded  the survey would exceed the budget of the device
    ├── SurveyRefused         the survey exceeds the device's limits, or its owner has changed
    ├── SurveyExpired         the survey's last day has passed
    ├── StoreError            a store is missing or damaged, or does not support an operation
    │   ├── StoreFull         the disk or quota is full; nothing was stored
    │   └── StoreUnavailable  the store cannot be reached at the moment; retrying may help
    ├── ClusterError          a cluster cannot be reached, or its workers fail
    ├── MissingPackage        an optional package is not installed (also an ImportError)
    └── WireError             bytes are not a valid report of the survey (also a ValueError)
        ├── UnknownFormat     not the format of this library, or a later version of it
        ├── UnknownSurvey     the digest belongs to none of the given surveys
        ├── WrongLength       there are too few bytes
        ├── TrailingBytes     there are bytes after the end
        ├── FieldOutOfRange   a clear field or number has a value that the survey does not allow
        └── PaddingBits       a bit is set beyond the last bit of a slot

    UserWarning
    ├── LossyAnswerWarning    answers in a simulation or a test cannot be reported in full
    └── NotPrivateWarning     a client for testing was made, whose reports protect nobody

A message says what is wrong, where, and what to do next.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from numbers import Real
from os import PathLike


class DeniableError(Exception):
    """Base class of all errors that this library raises on purpose."""


class InputError(DeniableError, ValueError):
    """Raised for an invalid argument."""


class UnknownKey(InputError, KeyError):
    """Raised by `result[key]` if the result has no row of this name."""

    __str__ = Exception.__str__  # KeyError quotes its message


class SurveyError(DeniableError):
    """Raised for a survey file with mistakes.

    Parameters
    ----------
    mistakes : sequence of str
        One line per mistake: the setting, its line in the file, and what is wrong.
    source : str, optional
        Name of the file.

    Attributes
    ----------
    mistakes : tuple of str
        The same lines, in the order of the file.
    """

    def __init__(self, mistakes: Sequence[str], source: str = "the survey") -> None:
        self.mistakes = tuple(mistakes)
        count = "1 mistake" if len(self.mistakes) == 1 else f"{len(self.mistakes)} mistakes"
        super().__init__("\n".join([f"{source} has {count}:", *self.mistakes]))


class SecretError(DeniableError):
    """Raised if the client's secret cannot be read, or if other users can read it."""


class LedgerError(DeniableError):
    """Raised if the ledger cannot be read: what was spent is unknown, so no report is made."""


class OutboxError(DeniableError):
    """Raised if the outbox cannot be read or written."""


class TransferError(DeniableError):
    """Raised if a server sent no response, or not the expected one."""


class BudgetExceeded(DeniableError):
    """Raised if an answer would exceed the survey's privacy budget; nothing was spent."""


class DeviceBudgetExceeded(BudgetExceeded):
    """Raised if a survey would exceed the budget of the device over all surveys."""


class SurveyRefused(DeniableError):
    """Raised if a survey exceeds the limits of the device, or if its owner has changed."""


class SurveyExpired(DeniableError):
    """Raised if the survey's last day has passed."""


class StoreError(DeniableError):
    """Raised if a store is missing or damaged, or does not support an operation."""


class StoreFull(StoreError):
    """Raised if the disk or quota is full; nothing was stored."""


class StoreForbidden(StoreError):
    """Raised if this user may not read or write files of the store."""


class StoreReplaced(StoreError):
    """Raised if files of the store were deleted or replaced while they were in use."""


class StoreUnavailable(StoreError):
    """Raised if the store cannot be reached at the moment; retrying may help."""


class ClusterError(DeniableError):
    """Raised if a cluster cannot be reached, or if its workers fail."""


class MissingPackage(DeniableError, ModuleNotFoundError):
    """Raised if an optional package is not installed; the message says how to install it."""


class WireError(DeniableError, ValueError):
    """Raised for bytes that are not a valid report of the survey."""


class UnknownFormat(WireError):
    """Raised for another format, or a version of it that this release cannot read."""


class UnknownSurvey(WireError):
    """Raised if the digest in a report belongs to none of the given surveys."""


class WrongLength(WireError):
    """Raised if there are too few bytes."""


class TrailingBytes(WireError):
    """Raised if there are bytes after the end."""


class FieldOutOfRange(WireError):
    """Raised if a clear field or number has a value that the survey does not allow."""


class PaddingBits(WireError):
    """Raised if a bit is set beyond the last bit of a slot."""


class LossyAnswerWarning(UserWarning):
    """Warns that answers in a simulation or a test cannot be reported in full."""


class NotPrivateWarning(UserWarning):
    """Warns that a client for testing was made, whose reports protect nobody."""


def check_integer(name: str, value: object, low: int, high: int) -> None:
    """Raise InputError unless the value is an integer from `low` to `high`."""
    if type(value) is not int or not low <= value <= high:
        raise InputError(f"{name} must be an integer from {low} to {high}, not {value!r:.200}")


def check_number(name: str, value: object) -> None:
    """Raise InputError unless the value is a number, not the text of one."""
    if isinstance(value, bool) or not isinstance(value, Real):
        raise InputError(f"{name} must be a number, not {value!r:.80}")


def check_path(name: str, value: object) -> None:
    """Raise InputError unless the value is a path: text or a path object."""
    if not isinstance(value, str | PathLike):
        raise InputError(f"{name} must be a path, as text or pathlib.Path, not {value!r:.80}")


def did_you_mean(word: object, choices: Iterable[str]) -> str:
    """Return a hint that names the choice closest to a misspelt word.

    Parameters
    ----------
    word : object
        What the user wrote; anything but a string gets no hint.
    choices : iterable of str
        The words that are allowed.

    Returns
    -------
    str
        `' Did you mean "x"?'`, with a leading space, or an empty string if no choice is close.

    Examples
    --------
    >>> did_you_mean("hompage", ["homepage", "colour"])
    ' Did you mean "homepage"?'
    >>> did_you_mean("x", ["homepage", "colour"])
    ''
    """
    close = closest(word, choices)
    return f' Did you mean "{close}"?' if close else ""


def closest(word: object, choices: Iterable[str]) -> str:
    """Return the choice closest to a misspelt word; empty if none is close."""
    from difflib import get_close_matches  # loaded after a mistake only: it takes milliseconds

    if not isinstance(word, str):
        return ""
    by_lower_case = {choice.lower(): choice for choice in choices}
    close = get_close_matches(word.lower(), by_lower_case, 1)
    return by_lower_case[close[0]] if close else ""
