"""Text and JSON as users write them, with errors that say what is wrong with them."""

from __future__ import annotations

import json
from os import PathLike
from typing import Any

from deniable.errors import InputError, check_path


def read_text(path: str | PathLike[str]) -> str:
    """Return the text of a file in UTF-8, with or without a byte order mark.

    Raises
    ------
    InputError
        If the path is neither text nor a path object, or the file is not UTF-8 text.
    """
    check_path("path", path)
    with open(path, "rb") as file:
        return decode_text(file.read(), str(path))


def decode_text(data: bytes, source: str) -> str:
    r"""Return bytes as text in UTF-8; the error begins with `source`, which names the bytes.

    >>> decode_text(b"caf\xe9", "words.txt")
    Traceback (most recent call last):
    deniable.errors.InputError: words.txt is not UTF-8 text (line 1): save it as UTF-8
    """
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        if b"\0" in data:
            raise InputError(f"{source} is not a text file") from None
        line = data.count(b"\n", 0, error.start) + 1
        raise InputError(f"{source} is not UTF-8 text (line {line}): save it as UTF-8") from None


def parse_json(text: str | bytes, source: str) -> Any:
    """Return what a JSON text says; the error begins with `source`, which names the text.

    >>> parse_json("{", "answers.json")
    Traceback (most recent call last):
    deniable.errors.InputError: answers.json is not JSON (line 1, column 2)
    """
    try:
        return json.loads(text if isinstance(text, str) else decode_text(text, source))
    except json.JSONDecodeError as error:
        what = f"line {error.lineno}, column {error.colno}" if text.strip() else "it is empty"
        raise InputError(f"{source} is not JSON ({what})") from None
    except RecursionError:
        raise InputError(f"{source} is JSON that is nested too deeply") from None
