"""The result of learning an unknown dictionary: the strings that were found, and how."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from deniable.formatting import Columns, text_table
from deniable.results.base import Provenance, Result
from deniable.results.marginal import Measured, explained

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Stage:
    """One step of the search: what it kept and dropped, and how long it took."""

    name: str
    kept: int
    dropped: int
    seconds: float
    note: str = ""


@dataclass(frozen=True)
class GramGraph:
    """The k-partite graph of a small case: grams of each position, and joined pairs.

    labels : each partition's grams as text, the end of a string as "·";
    edges : (partition, gram, partition, gram), grams by index; weights : their joint frequency;
    cliques : one index per partition.
    """

    labels: tuple[tuple[str, ...], ...]
    edges: tuple[tuple[int, int, int, int], ...]
    weights: tuple[float, ...]
    cliques: tuple[tuple[int, ...], ...]


@dataclass(frozen=True, eq=False)
class Discovery(Result):
    """Strings found without a dictionary, most frequent first.

    strings : as text; a character outside the alphabet is U+FFFD, and bytes of one that was cut at
        max_length are written as \\xce. symbols : uint8[C, max_length], the same as the survey
        spells them (`protocols.alphabet`).
    estimate, standard_error, low, high : float64[C], share of all clients; [low, high] is a 95%
        interval. Estimates near the detection threshold are of strings that happened to come out
        high, and are too large on average.
    p_value : float64[C], one-sided, of "this string is absent", before correction, from reports
        that had no part in proposing the string.
    evidence : float64[C], what proposed the string; `evidence_name` says on which scale.
    level : float64[C], what the p-value had to stay below.
    candidates : strings ever tested; correction : in words, how the tests of all of them share
        alpha. truncation : what the search left out because a bound was reached, "" if nothing.
    stages : the steps, in order. detection_threshold : the frequency at which a string that was
        proposed is found half the time, at the mildest level, if its candidate was first in line.
    mass_found, mass_unexplained : shares of clients. mass_at_end : the share whose string fills all
        max_length symbols, so that it may have been cut; None if that was not measured. With
        n-grams it is estimated for all clients. With prefixes only strings that were found tell
        how long they are: the estimate is what found strings of full length add up to, and
        [low, high] reaches from there to all that no shorter one explains.
    graph : of a small case, for drawing.
    """

    strings: tuple[str, ...]
    symbols: NDArray[np.uint8]
    estimate: Floats
    standard_error: Floats
    low: Floats
    high: Floats
    p_value: Floats
    evidence: Floats
    level: Floats
    evidence_name: str
    candidates: int
    correction: str
    truncation: str
    stages: tuple[Stage, ...]
    detection_threshold: float
    mass_found: Measured
    mass_unexplained: Measured
    mass_at_end: Measured | None
    reports: int
    alpha: float
    reading: str
    question: str = ""
    graph: GramGraph | None = None
    provenance: Provenance | None = None

    _json_keys: ClassVar = {"correction": "paid", "truncation": "cut"}

    @property
    def names(self) -> tuple[str, ...]:
        """The strings: what other results call their labels."""
        return self.strings

    def columns(self) -> Columns:
        """Return every string found, largest estimate first."""
        named: Columns = {"value": list(self.strings)}
        for name in ("estimate", "standard_error", "low", "high", "p_value", "evidence"):
            named[name] = getattr(self, name).tolist()
        return named

    def heading(self) -> str:
        """Return what was found in one line."""
        text = (
            f"{self.question or 'discovery'}: {self.reports:,} reports, {len(self.strings)} "
            f"strings found among {self.candidates:,} candidates, "
            f"{explained(self.mass_found, self.mass_unexplained)}"
        )
        return f"{text}; cut: {self.truncation}" if self.truncation else text

    def stage_table(self) -> str:
        """Return the steps as a plain table."""
        names = ("name", "kept", "dropped", "seconds", "note")
        return text_table("stages", {n: [getattr(s, n) for s in self.stages] for n in names})
