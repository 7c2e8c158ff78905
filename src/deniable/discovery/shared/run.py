"""The state of one discovery while it runs, and its result."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Generic, TypeVar

import numpy as np

from deniable.analysis.source import Source
from deniable.analysis.tallying import check_all, provenance_of
from deniable.compute.backend import Backend
from deniable.discovery.shared.strings import Rows, StringTests
from deniable.errors import InputError
from deniable.inference.fit_check import possible_shares
from deniable.kernels.array_types import Floats, Mask
from deniable.protocols import NGrams, Prefixes
from deniable.protocols.alphabet import PAD
from deniable.results import Discovery, GramGraph, Measured, Stage
from deniable.survey import Question

Z95 = 1.959964
"""Standard errors on each side of a 95% confidence interval."""
EARLY_ROUNDS = 6
EARLY_SHARE = 0.02
"""Share of α that each round before the last may spend."""

Accept = Callable[[str], bool]
AnyProtocol = TypeVar("AnyProtocol", NGrams, Prefixes)


@dataclass(frozen=True, eq=False)
class StringEstimates(StringTests):
    """Discovered strings with their estimates, float64[n] each; see `results.Discovery`."""

    estimate: Floats
    standard_error: Floats
    low: Floats
    high: Floats
    evidence: Floats


@dataclass(frozen=True)
class SearchSummary:
    """Fields of `results.Discovery` that describe the search."""

    reading: str
    correction: str
    detection_threshold: float
    mass_at_end: Measured | None
    evidence_name: str = "estimate in standard errors"
    truncation: str = ""
    graph: GramGraph | None = None


@dataclass(eq=False)
class DiscoveryRun(Generic[AnyProtocol]):
    """One discovery while it runs: its settings, and what each stage did.

    accept : keeps only strings for which it is true; None keeps all
    alpha : bound on the probability of any false string
    reports, candidates : counted by the search
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
    _stage_start: float = field(default_factory=time.perf_counter)

    def stage(self, name: str, kept: int, dropped: int, note: str = "") -> None:
        """Record the stage that has just ended."""
        now = time.perf_counter()
        self.stages.append(Stage(name, int(kept), int(dropped), now - self._stage_start, note))
        self._stage_start = now

    def text(self, row: Rows) -> str:
        """Return one string as text."""
        return self.protocol.alphabet.text(row.tobytes())

    def accepted(self, rows: Rows) -> Mask:
        """bool[n]: which strings the analyst accepts."""
        if self.accept is None:
            return np.ones(len(rows), bool)
        return np.array([self.accept(self.text(row)) for row in rows], bool)

    def result_of_masses(
        self,
        found: StringTests,
        mass: Floats,
        error: Floats,
        total_error: float,
        *,
        reading: str,
        correction: str,
        detection_threshold: float,
    ) -> Discovery:
        """Return the result for discovered strings with these masses and standard errors.

        total_error : standard error of the sum of the masses
        """
        low, high = (np.clip(mass + z * error, 0, 1) for z in (-Z95, Z95))
        evidence = mass / np.maximum(error, 1e-300)
        total, margin = float(mass.sum()), Z95 * total_error
        at_end = _mass_at_end(found.rows, mass, error)
        return self.result(
            StringEstimates(
                found.rows, found.p_value, found.cutoff, mass, error, low, high, evidence
            ),
            Measured(total, total_error, total - margin, total + margin),
            SearchSummary(reading, correction, detection_threshold, at_end),
        )

    def result(self, found: StringEstimates, total: Measured, summary: SearchSummary) -> Discovery:
        """Return the result: the discovered strings, most frequent first.

        total : the share of clients that hold any of them
        """
        found = found.take(np.argsort(-np.nan_to_num(found.estimate), kind="stable"))
        unexplained = (1 - x for x in (total.high, total.low))
        same_names = vars(found) | vars(summary)
        measured = found.estimate, found.standard_error
        shares = possible_shares(self.source.survey, self.question, measured, self.reports)
        return Discovery(
            strings=tuple(self.text(row) for row in found.rows),
            symbols=same_names.pop("rows"),
            level=same_names.pop("cutoff"),
            candidates=self.candidates,
            stages=tuple(self.stages),
            mass_found=total,
            mass_unexplained=Measured(1 - total.estimate, total.standard_error, *unexplained),
            reports=self.reports,
            alpha=self.alpha,
            question=self.question.name,
            provenance=provenance_of(
                self.source.survey, (self.question,), self.reports, self.source.origin
            ),
            fit=check_all(self.source, self.executor, (self.question,), shares),
            **same_names,
        )


def _mass_at_end(rows: Rows, mass: Floats, error: Floats) -> Measured:
    """Return the share of clients whose string fills all symbols, so that it may have been cut.

    At least the discovered strings of full length have it, at most all that shorter ones leave.
    """
    full = rows[:, -1] != PAD
    least, most = float(mass[full].sum()), 1 - float(mass[~full].sum())
    least_error, most_error = (float(np.sqrt((error[s] ** 2).sum())) for s in (full, ~full))
    low, high = max(least - Z95 * least_error, 0.0), min(most + Z95 * most_error, 1.0)
    return Measured(least, least_error, low, high)


def predicate(accept: str | Accept | None) -> Accept | None:
    """Return the test of a string that `accept` stands for; a text is a regular expression."""
    if accept is None or callable(accept):
        return accept
    try:
        pattern = re.compile(accept)
    except (re.error, TypeError) as error:
        raise InputError(f"{accept!r} is not a valid regular expression: {error}") from None
    return lambda text: pattern.fullmatch(text) is not None


def spend_in_rounds(alpha: float, accept_at: Callable[[str, float], int]) -> float:
    """Test in rounds that spend α together; return the share of the last one.

    Early rounds spend little each, until one accepts nothing. The last round spends all that is
    left.

    accept_at : tests at a share of α, and returns how many strings it accepted
    """
    left = alpha
    for number in range(1, EARLY_ROUNDS + 1):
        left -= EARLY_SHARE * alpha
        if not accept_at(f"round {number}", EARLY_SHARE * alpha):
            break
    accept_at("last round", left)
    return left
