"""What is looked for: strings that an analyst lists, or those that a discovery found."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from deniable.errors import InputError
from deniable.inference.models import Candidates
from deniable.kernels.array_types import Bytes
from deniable.protocols.alphabet import TEXT_SETTINGS
from deniable.results import Discovery
from deniable.survey import Question

Strings = Iterable[str] | Discovery


def candidates_of(question: Question, given: Strings | None) -> Candidates:
    """The candidates, each once; a question that has options needs none."""
    if question.kind != "string":
        if given is not None:
            raise InputError(f"question {question.name!r} is a {question.kind}: it has its options")
        return Candidates(question, question.protocol.mechanisms[0].labels)
    if given is None:
        raise InputError(f"question {question.name!r} is a string: give candidates, or discover")
    if isinstance(given, str):
        raise InputError(f"expected a list of candidates, got the one text {given!r}")
    if isinstance(given, Discovery):
        if not given.strings:
            raise InputError(
                f"question {question.name!r}: the discovery found no strings to look for; it would "
                f"find some of {given.detection_threshold:.4f} of clients"
            )
        if _spelt_alike(given, question):
            return Candidates(question, given.strings, given.symbols)
        given = given.strings
    names = tuple(dict.fromkeys(given))
    if wrong := [c for c in names if not isinstance(c, str)]:
        raise InputError(f"expected candidates that are texts, got {wrong[0]!r}")
    return Candidates(question, names, _symbols(question, names))


def _spelt_alike(found: Discovery, question: Question) -> bool:
    """Whether these strings' symbols are symbols of this question too: text cannot say all of
    them, such as a character that max_length cut in two."""
    mine = question.protocol.canonical()
    theirs = found.provenance.parameters[found.question] if found.provenance else {}
    return all(key in mine and mine[key] == theirs.get(key, ...) for key in TEXT_SETTINGS)


def _symbols(question: Question, names: tuple[str, ...]) -> Bytes | None:
    """u8[m, M], the symbols of each string; None where strings are taken whole."""
    rows = [question.protocol.symbols(name) for name in ("", *names)]
    whole = [row for row in rows if row is not None]
    if not whole:
        return None
    return np.frombuffer(b"".join(whole), np.uint8).reshape(len(rows), -1)[1:]
