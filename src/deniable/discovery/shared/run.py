"""The record of one discovery, and its result."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from deniable.analysis.decoding import provenance_of
from deniable.analysis.source import Source
from deniable.compute.backend import Backend
from deniable.discovery.shared.strings import Floats, FoundStrings, Rows
from deniable.errors import InputError
from deniable.protocols import NGrams, Prefixes
from deniable.protocols.alphabet import PAD
from deniable.results import Discovery, GramGraph, Measured, Stage
from deniable.survey import Question

Z95 = 1.959964
"""Standard errors on each side of a 95% interval of a string's mass."""
EARLY_ROUNDS = 6
EARLY_SHARE = 0.02
"""Share of α that each round before the last may spend."""

Accept = Callable[[str], bool]
AnyProtocol = TypeVar("AnyProtocol", NGrams, Prefixes)


@dataclass(frozen=True, eq=False)
class StringEstimates:
    """Frequencies of the strings found, float64[n] each, and their sum; see `results.Discovery`."""

    estimate: Floats
    standard_error: Floats
    low: Floats
    high: Floats
    evidence: Floats
    total: Measured

    @classmethod
    def of_masses(cls, mass: Floats, error: Floats, total_error: float) -> StringEstimates:
        """Return estimates with intervals within [0, 1]; the evidence is mass / error."""
        low, high = (np.clip(mass + z * error, 0, 1) for z in (-Z95, Z95))
        total, reach = float(mass.sum()), Z95 * total_error
        whole = Measured(total, total_error, total - reach, total + reach)
        return cls(mass, error, low, high, mass / np.maximum(error, 1e-300), whole)


@dataclass(frozen=True)
class Account:
    """What a discovery says about its own search: fields of `results.Discovery`."""

    reading: str
    correction: str
    detection_threshold: float
    mass_at_end: Measured | None
    evidence_name: str = "estimate in standard errors"
    truncation: str = ""
    graph: GramGraph | None = None


@dataclass(eq=False)
class DiscoveryRun(Generic[AnyProtocol]):
    """One discovery while it runs: what was asked, and what each stage did.

    accept : keeps only strings for which it is true; alpha : bounds the probability of any false
    string; reports, candidates : counted by the search
    """

    source: Source
    question: Question
    protocol: AnyProtocol
    accept: Accept | None
    alpha: float
    executor: Backend
    reports: int = 0
    candidates: int = 0
    stages: list[Stage] = field(default_factory=list)
    _clock: float = field(default_factory=time.perf_counter)

    def stage(self, name: str, kept: int, dropped: int, note: str = "") -> None:
        """Record what a stage kept and dropped; it took the time since the one before."""
        now = time.perf_counter()
        self.stages.append(Stage(name, int(kept), int(dropped), now - self._clock, note))
        self._clock = now

    def text(self, row: Rows) -> str:
        """Return one string as text."""
        return self.protocol.alphabet.text(row.tobytes())

    def accepted(self, rows: Rows) -> NDArray[np.bool_]:
        """Return which strings the analyst accepts, bool[n]."""
        if self.accept is None:
            return np.ones(len(rows), bool)
        return np.array([self.accept(self.text(row)) for row in rows], bool)

    def result(
        self, found: FoundStrings, estimates: StringEstimates, account: Account
    ) -> Discovery:
        """Return the result: the strings found, most frequent first."""
        order = np.argsort(-np.nan_to_num(estimates.estimate), kind="stable")
        total = estimates.total
        left = (1 - x for x in (total.high, total.low))
        return Discovery(
            strings=tuple(self.text(row) for row in found.rows[order]),
            symbols=found.rows[order],
            estimate=estimates.estimate[order],
            standard_error=estimates.standard_error[order],
            low=estimates.low[order],
            high=estimates.high[order],
            p_value=found.p_value[order],
            evidence=estimates.evidence[order],
            level=found.cutoff[order],
            candidates=self.candidates,
            stages=tuple(self.stages),
            mass_found=total,
            mass_unexplained=Measured(1 - total.estimate, total.standard_error, *left),
            reports=self.reports,
            alpha=self.alpha,
            question=self.question.name,
            provenance=provenance_of(
                self.source.survey, (self.question,), self.reports, self.source.origin
            ),
            **vars(account),
        )


def mass_at_end(rows: Rows, mass: Floats, error: Floats) -> Measured:
    """Return what found strings of full length add up to; at most, all that shorter ones leave."""
    full = rows[:, -1] != PAD
    least, most = float(mass[full].sum()), 1 - float(mass[~full].sum())
    spread, beyond = (float(np.sqrt((error[some] ** 2).sum())) for some in (full, ~full))
    low, high = max(least - Z95 * spread, 0.0), min(most + Z95 * beyond, 1.0)
    return Measured(least, spread, low, high)


def predicate(accept: str | Accept | None) -> Accept | None:
    """Return a function for a regular expression of the whole string; None accepts all strings."""
    if accept is None or callable(accept):
        return accept
    try:
        pattern = re.compile(accept)
    except re.error as error:
        raise InputError(f"accept is not a regular expression: {error}; got {accept!r}") from None
    return lambda text: pattern.fullmatch(text) is not None


def spend_in_rounds(alpha: float, accept_at: Callable[[str, float], int]) -> float:
    """Test in rounds that together spend α; return what the last one had.

    Early rounds spend little each, until one accepts nothing; the last has all that is left.
    accept_at : tests at its share of α, and returns how many strings were new
    """
    left = alpha
    for number in range(1, EARLY_ROUNDS + 1):
        left -= EARLY_SHARE * alpha
        if not accept_at(f"round {number}", EARLY_SHARE * alpha):
            break
    accept_at("last round", left)
    return left
