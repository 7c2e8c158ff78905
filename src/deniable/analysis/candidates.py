"""What is looked for: strings that an analyst lists, or those that a discovery found."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from deniable.errors import InputError
from deniable.mechanisms import Choice
from deniable.protocols import NGrams, Prefixes
from deniable.protocols.alphabet import PAD, TEXT_SETTINGS
from deniable.results import Discovery
from deniable.survey import Question

Strings = Iterable[str] | Discovery


@dataclass(frozen=True, eq=False)
class Candidates:
    """Names, all different, and where the question cuts strings into symbols these: u8[m, M]."""

    names: tuple[str, ...]
    rows: NDArray[np.uint8] | None = None

    @property
    def lengths(self) -> NDArray[np.int64]:
        """int64[m], symbols of each before the padding."""
        assert self.rows is not None
        return np.asarray((self.rows != PAD).sum(axis=1))


def candidates_of(question: Question, given: Strings | None) -> Candidates:
    """The candidates, each once; a question that has options needs none."""
    if question.kind != "string":
        if given is not None:
            raise InputError(f"question {question.name!r} is a {question.kind}: it has its options")
        mechanism = question.protocol.mechanisms[0]
        return Candidates(mechanism.options if isinstance(mechanism, Choice) else ("yes",))
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
            return Candidates(given.strings, given.symbols)
        given = given.strings
    names = tuple(dict.fromkeys(given))
    if wrong := [c for c in names if not isinstance(c, str)]:
        raise InputError(f"expected candidates that are texts, got {wrong[0]!r}")
    return Candidates(names, _symbols(question, names))


def _spelt_alike(found: Discovery, question: Question) -> bool:
    """Whether these strings' symbols are symbols of this question too: text cannot say all of
    them, such as a character that max_length cut in two."""
    mine = question.protocol.canonical()
    theirs = found.provenance.parameters[found.question] if found.provenance else {}
    return all(key in mine and mine[key] == theirs.get(key, ...) for key in TEXT_SETTINGS)


def _symbols(question: Question, names: tuple[str, ...]) -> NDArray[np.uint8] | None:
    protocol = question.protocol
    if not isinstance(protocol, NGrams | Prefixes):
        return None
    length = protocol.max_length
    data = b"".join(protocol.alphabet.symbols(name, length) for name in names)
    return np.frombuffer(data, np.uint8).reshape(len(names), length)
