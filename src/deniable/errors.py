"""What can go wrong, as one small tree.

    DeniableError
    ├── InputError            a parameter or an argument that cannot be (also a ValueError)
    ├── SurveyError           a survey file with mistakes; `.mistakes` lists every one
    ├── SecretError           the client's secret cannot be read, or others can read it
    ├── LedgerError           the ledger cannot be trusted: nothing is sent
    ├── OutboxError           the outbox cannot be read or written
    ├── TransferError         a server gave no answer, or another than expected
    ├── BudgetExceeded        the answer would spend more than the survey's budget
    ├── SurveyExpired         the survey's last day has passed
    ├── StoreError            a store that is not there, is damaged, or cannot do what was asked
    │   ├── StoreFull         no room left: nothing was stored
    │   └── StoreUnavailable  the store cannot be reached now; trying again may help
    ├── ClusterError          a cluster that cannot be reached, or whose workers fail
    └── WireError             bytes that are not a report of this survey (also a ValueError)
        ├── UnknownFormat     not ours, or of a later version of the format
        ├── UnknownSurvey     the digest names a survey that is not at hand
        ├── WrongLength       too few bytes
        ├── TrailingBytes     bytes after the end
        ├── FieldOutOfRange   a cohort, position or level that the survey does not have
        └── PaddingBits       a bit set beyond the last bit of a slot

A message gives what was expected, what was found, and what to do.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence


class DeniableError(Exception):
    """Every error that this library raises on purpose."""


class InputError(DeniableError, ValueError):
    """A parameter or an argument that cannot be."""


class SurveyError(DeniableError):
    """A survey file with mistakes: `.mistakes` lists every one, in the order of the file."""

    def __init__(self, mistakes: Sequence[str]) -> None:
        self.mistakes = tuple(mistakes)
        count = "1 mistake" if len(self.mistakes) == 1 else f"{len(self.mistakes)} mistakes"
        super().__init__("\n".join([f"the survey has {count}:", *self.mistakes]))


class SecretError(DeniableError):
    """The client's secret cannot be read, or others can read it."""


class LedgerError(DeniableError):
    """The ledger cannot be trusted, so nothing may be sent."""


class OutboxError(DeniableError):
    """The outbox cannot be read or written."""


class TransferError(DeniableError):
    """A server gave no answer, or another than expected."""


class BudgetExceeded(DeniableError):
    """The answer would spend more than the survey's budget; nothing was spent or sent."""


class SurveyExpired(DeniableError):
    """The survey's last day has passed."""


class StoreError(DeniableError):
    """A store that is not there, is damaged, or cannot do what was asked."""


class StoreFull(StoreError):
    """No room left: nothing was stored."""


class StoreUnavailable(StoreError):
    """The store cannot be reached now; trying again may help."""


class ClusterError(DeniableError):
    """A cluster that cannot be reached, or whose workers fail."""


class WireError(DeniableError, ValueError):
    """Bytes that are not a report of this survey."""


class UnknownFormat(WireError):
    """Not our format, or a version of it that this release does not read."""


class UnknownSurvey(WireError):
    """The digest names a survey that is not at hand."""


class WrongLength(WireError):
    """Too few bytes."""


class TrailingBytes(WireError):
    """Bytes after the end."""


class FieldOutOfRange(WireError):
    """A cohort, position or level that the survey does not have."""


class PaddingBits(WireError):
    """A bit set beyond the last bit of a slot."""


def check_integer(name: str, value: object, low: int, high: int) -> None:
    """Raise InputError unless the value is a whole number from `low` to `high`."""
    if type(value) is not int or not low <= value <= high:
        raise InputError(f"expected {name} from {low} to {high}, got {value!r}")


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
    from difflib import get_close_matches  # loaded after a mistake only: it takes milliseconds

    if not isinstance(word, str):
        return ""
    by_lower_case = {choice.lower(): choice for choice in choices}
    close = get_close_matches(word.lower(), by_lower_case, 1)
    return f' Did you mean "{by_lower_case[close[0]]}"?' if close else ""
