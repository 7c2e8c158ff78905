"""Inputs for tests of discovery: strings as symbols, and reports as counts."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from deniable.analysis.source import Source
from deniable.compute.executors import threads
from deniable.discovery.shared.strings import Rows
from deniable.discovery.shared.tables import MassTables
from deniable.discovery.shared.tally import Tally, tally_of
from deniable.protocols import Alphabet, Prefixes
from deniable.survey import Question


def rows_of(alphabet: Alphabet, strings: Sequence[str], length: int) -> Rows:
    """u8[n, length]: the strings as symbols."""
    data = b"".join(alphabet.symbols(s, length) for s in strings)
    return np.frombuffer(data, np.uint8).reshape(len(strings), length)


def prefixes_of(question: Question) -> Prefixes:
    """Return the protocol of a `prefixes` question."""
    assert isinstance(question.protocol, Prefixes)
    return question.protocol


def tally(source: Source, question: Question) -> Tally:
    """Count the reports of a `prefixes` question."""
    return tally_of(source, question, prefixes_of(question), threads())


def masses(source: Source, question: Question) -> MassTables:
    """Return the debiased tables of a `prefixes` question."""
    return MassTables.of(tally(source, question))
