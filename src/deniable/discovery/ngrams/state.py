"""What the stages of a discovery pass on to each other."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from deniable.analysis.source import Source
from deniable.compute.backend import Executor
from deniable.discovery.ngrams.grams import Rows
from deniable.discovery.ngrams.positions import Position, Tallies
from deniable.protocols import NGrams
from deniable.protocols.alphabet import PAD
from deniable.results import GramGraph, Stage

Floats = NDArray[np.float64]
END = "·"


class Log:
    """The stages so far."""

    def __init__(self) -> None:
        self.stages: list[Stage] = []

    @contextmanager
    def stage(self, name: str) -> Iterator[_Counted]:
        """Time one stage; its body says what came in and what was kept."""
        start, counted = time.perf_counter(), _Counted()
        yield counted
        seconds = time.perf_counter() - start
        self.stages.append(
            Stage(name, counted.kept, counted.given - counted.kept, seconds, counted.note)
        )


@dataclass
class _Counted:
    kept: int = 0
    given: int = 0
    note: str = ""

    def count(self, kept: int, given: int, note: str = "") -> None:
        """`kept` of `given` went on."""
        self.kept, self.given, self.note = int(kept), int(given), note


@dataclass(frozen=True, eq=False)
class GramReports:
    """The reports of one `ngrams` question, counted, with each position decoded."""

    protocol: NGrams
    question: str
    source: Source
    executor: Executor
    tallies: Tallies
    positions: tuple[Position, ...]
    log: Log = field(default_factory=Log)

    @property
    def reports(self) -> int:
        return self.tallies.full.reports


@dataclass(frozen=True, eq=False)
class Found:
    """Strings found, uint8[C, M], and what is to be said of them; see `results.Discovery`."""

    rows: Rows
    p_value: Floats
    evidence: Floats
    level: Floats
    evidence_name: str
    candidates: int
    paid: str
    cut: str
    mildest: float
    graph: GramGraph | None


def gram_text(protocol: NGrams, row: NDArray[np.uint8]) -> str:
    """A gram as text, the end of a string as a middle dot."""
    content = row.tobytes().rstrip(bytes([PAD]))
    return protocol.alphabet.text(content) + END * (len(row) - len(content))
