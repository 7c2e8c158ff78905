"""The state of one discovery while it runs, and its result."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Generic, TypeVar

import numpy as np

from deniable.analysis.source import Source
from deniable.analysis.tallying import check_all, provenance_of
from deniable.compute.executors import Executor
from deniable.discovery.shared.selection import SelectedStrings, corrected, corrected_total
from deniable.discovery.shared.strings import Rows, StringTests
from deniable.errors import InputError
from deniable.inference.fit_check import possible_shares
from deniable.kernels.array_types import Floats, Mask
from deniable.protocols import NGrams, Prefixes
from deniable.protocols.alphabet import PAD
from deniable.results import Discovery, GramGraph, Measured, Stage
from deniable.results.marginal import UNMEASURED
from deniable.survey import Question

EARLY_ROUNDS = 6
EARLY_SHARE = 0.02
"""Share of α that each round before the last may spend."""

Accept = Callable[[str], bool]
AnyProtocol = TypeVar("AnyProtocol", NGrams, Prefixes)


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
    executor: Executor
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

    def result(
        self, found: StringTests, strings: SelectedStrings, evidence: Floats, summary: SearchSummary
    ) -> Discovery:
        """Return the result: the discovered strings, most frequent first.

        found, strings, evidence : tests, estimates, and strength of the evidence of each string
        """
        estimates, total = corrected(strings), corrected_total(strings)
        order = np.argsort(-np.nan_to_num(estimates.estimate), kind="stable")
        found = found.take(order)
        unexplained = Measured(
            1 - total.estimate, total.standard_error, 1 - total.high, 1 - total.low
        )
        measured = strings.estimate, strings.error
        shares = possible_shares(self.source.survey, self.question, measured, self.reports)
        return Discovery(
            strings=tuple(self.text(row) for row in found.rows),
            symbols=found.rows,
            p_value=found.p_value,
            level=found.cutoff,
            evidence=evidence[order],
            candidates=self.candidates,
            stages=tuple(self.stages),
            mass_found=total,
            mass_unexplained=unexplained,
            reports=self.reports,
            alpha=self.alpha,
            question=self.question.name,
            provenance=provenance_of(
                self.source.survey, (self.question,), self.reports, self.source.origin
            ),
            fit=check_all(self.source, self.executor, (self.question,), shares),
            **{name: values[order] for name, values in vars(estimates).items()},
            **vars(replace(summary, detection_threshold=min(summary.detection_threshold, 1.0))),
        )


def untested(run: DiscoveryRun[AnyProtocol]) -> Discovery:
    """Return the result of a crowd that is too small to search."""
    nothing, question, source = np.empty(0), run.question, run.source
    return Discovery(
        strings=(),
        symbols=np.empty((0, run.protocol.max_length), np.uint8),
        estimate=nothing,
        standard_error=nothing,
        low=nothing,
        high=nothing,
        p_value=nothing,
        evidence=nothing,
        level=nothing,
        evidence_name="",
        candidates=0,
        correction="no string was tested",
        truncation="",
        stages=(),
        detection_threshold=np.nan,
        mass_found=UNMEASURED,
        mass_unexplained=UNMEASURED,
        mass_at_end=None,
        reports=source.count,
        alpha=run.alpha,
        reading="none",
        question=question.name,
        provenance=provenance_of(source.survey, (question,), source.count, source.origin),
        tested=False,
    )


def mass_at_end(rows: Rows, strings: SelectedStrings) -> Measured:
    """Return the share of clients whose string fills all symbols, so that it may have been cut.

    At least the discovered strings of full length have it, at most all that shorter ones leave.
    """
    full = rows[:, -1] != PAD
    least, others = corrected_total(strings.take(full)), corrected_total(strings.take(~full))
    return Measured(least.estimate, least.standard_error, least.low, 1 - others.low)


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
