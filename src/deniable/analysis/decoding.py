"""decode: how common each value of one question is."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import reduce
from operator import add
from typing import Any

from deniable.analysis.reading import Reading, design_of, reading_of
from deniable.analysis.source import Reports, Source
from deniable.compute.executor import Executor, default_executor
from deniable.errors import InputError
from deniable.inference.closed_form import estimate_basic
from deniable.inference.counts import BitCounts
from deniable.inference.marginal import estimate_marginal
from deniable.inference.multiplicity import Correction
from deniable.mechanisms import Choice, Mechanism
from deniable.mechanisms.noise import ONE
from deniable.results import Marginal, Provenance
from deniable.survey import Question, Survey
from deniable.version import __version__


def decode(
    survey: Survey,
    reports: Reports | Any,
    question: str,
    candidates: Iterable[str] | None = None,
    *,
    alpha: float = 0.05,
    correction: Correction = "bonferroni",
    reports_per_client: float = 1.0,
    executor: Executor | None = None,
) -> Marginal:
    """Estimate how common each candidate is, with intervals, and which are there at all.

    reports : a batch, a file, an Arrow table, a store, or any number of these
    candidates : the strings looked for; a choice or boolean has its own. Given twice, they count
        once. Strings that nobody listed are allowed for.
    alpha, correction : false detections are controlled at alpha over all candidates
        ("bonferroni"), as a share of the detected ("fdr"), or for each by itself (None)
    reports_per_client : reports of one client share its permanent noise, and say less together
        than those of as many clients: above 1, standard errors and tests allow for it
    """
    asked = survey.question(question)
    names = candidates_of(asked, candidates)
    reading = reading_of(asked, names)
    source = Source(reports, survey)
    counts = count_all(source, reading, executor or default_executor())
    effective = counts
    if reports_per_client != 1.0:
        effect = repetition_effect(reading.mechanism, reports_per_client)
        effective = counts.as_if_from(counts.reports / effect)
    found = estimate(reading, effective, names, alpha=alpha, correction=correction)
    return replace(
        found,
        question=question,
        reports=counts.reports,
        provenance=provenance(source, (asked,), counts.reports),
    )


def repetition_effect(mechanism: Mechanism, reports_per_client: float) -> float:
    """By how much several reports of each client widen the variance over as many clients' reports.

    Two reports of a bit that the value does not set correlate by ρ = (q−p)²φ(1−φ)/(p*(1−p*)); a
    mean over R of them has 1 + (R−1)ρ times the variance of R independent ones.
    """
    if not reports_per_client >= 1:
        raise InputError(f"expected 1 or more reports a client, got {reports_per_client}")
    noise = mechanism.noise
    phi, gain = noise.flip / ONE, (noise.q - noise.p) / ONE
    p_star = float(noise.p_star)
    correlation = gain**2 * phi * (1 - phi) / (p_star * (1 - p_star))
    return 1 + (reports_per_client - 1) * correlation


def candidates_of(question: Question, candidates: Iterable[str] | None) -> tuple[str, ...]:
    """The candidates, each once; a question that has options needs none."""
    if question.kind != "string":
        if candidates is not None:
            raise InputError(f"question {question.name!r} is a {question.kind}: it has its options")
        mechanism = question.protocol.mechanisms[0]
        return mechanism.options if isinstance(mechanism, Choice) else ("yes",)
    if candidates is None:
        raise InputError(f"question {question.name!r} is a string: give candidates, or discover")
    if isinstance(candidates, str):
        raise InputError(f"expected a list of candidates, got the one text {candidates!r}")
    names = tuple(dict.fromkeys(candidates))
    if wrong := [c for c in names if not isinstance(c, str)]:
        raise InputError(f"expected candidates that are texts, got {wrong[0]!r}")
    return names


def count_all(source: Source, reading: Reading, executor: Executor) -> BitCounts:
    """Bit counts of all the reports that are read."""
    return reduce(add, executor.map(reading.count, source.batches()))


def estimate(
    reading: Reading,
    counts: BitCounts,
    names: Sequence[str],
    *,
    alpha: float,
    correction: Correction,
) -> Marginal:
    """The marginal from counts alone."""
    if reading.question.kind == "string":
        design = design_of(reading, names)
        return estimate_marginal(counts, design, alpha=alpha, correction=correction)
    noise = reading.mechanism.noise
    return estimate_basic(
        counts, float(noise.p_star), float(noise.q_star),
        alpha=alpha, correction=correction, labels=tuple(names),
    )  # fmt: skip


def provenance(source: Source, questions: Sequence[Question], reports: int) -> Provenance:
    """Where a result of these questions came from."""
    survey = source.survey
    return Provenance(
        survey=survey.name,
        version=survey.version,
        digest=survey.sha256.hex(),
        questions=tuple(q.name for q in questions),
        parameters={q.name: q.protocol.canonical() for q in questions},
        epsilon={q.name: q.loss.once for q in questions},
        reports=reports,
        origin=source.origin,
        library=__version__,
    )
