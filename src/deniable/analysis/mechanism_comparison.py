"""The mechanisms that can ask a question, side by side: what each promises, costs and reveals."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from deniable.analysis.decoding import decode
from deniable.client.encoder import Encoder
from deniable.planning.recommend import (
    OpenDesign,
    check_planned_epsilon,
    describe,
    designs_for,
)
from deniable.planning.thresholds import detectable
from deniable.results.mechanism_table import MechanismRow, MechanismTable
from deniable.simulation import Population, simulate, zipf
from deniable.survey import Question, Survey

EPSILONS = (0.5, 1.0, 2.0, 4.39)
"""Values of ε that are compared by default; the last is the paper's."""
ENCODED = 300
"""Reports that are made to measure the time of one."""
DECODED = 100_000
"""Reports that are decoded to measure the time of that."""
LISTED = 100
"""Candidates of a string question that are decoded."""
DAYS = 30
LARGER_SHARE = 0.84
"""Share of ε in total that one report may reveal, in the comparison of repeated collection."""


def compare_mechanisms(
    *,
    kind: str = "string",
    options: int = 4,
    unknown: bool = False,
    collect: str = "once",
    epsilons: Sequence[float] = EPSILONS,
    max_length: int = 20,
    alphabet: str = "a-z0-9._-",
    timed: bool = True,
) -> MechanismTable:
    """Compare all mechanisms that can ask a question, at the same ε.

    Parameters
    ----------
    kind : {"string", "choice", "boolean", "number"}, default "string"
        Kind of the question.
    options : int, default 4
        Number of options of a choice, or of bins of a number.
    unknown : bool, default False
        Whether the strings must be discovered, because no candidates are known.
    collect : {"once", "repeatedly"}, default "once"
        How often each client reports.
    epsilons : sequence of float, default (0.5, 1, 2, 4.39)
        Privacy losses ε: per report if collected once, in total if repeatedly.
    max_length : int, default 20
        Maximum length of unknown strings.
    alphabet : str, default "a-z0-9._-"
        Characters of unknown strings, as in a survey file.
    timed : bool, default True
        Whether the times of encoding and decoding are measured on this machine.

    Returns
    -------
    MechanismTable
        One row per mechanism and ε.

    Raises
    ------
    InputError
        If an argument is out of range.

    Examples
    --------
    >>> from deniable.analysis import compare_mechanisms
    >>> table = compare_mechanisms(kind="choice", options=4, epsilons=[2.0], timed=False)
    >>> table.names[0], round(table.mechanisms[0].bound, 2)
    ('subset selection', 0.51)
    """
    for epsilon in epsilons:
        check_planned_epsilon(epsilon)
    open_design = OpenDesign(kind, collect, detectable)
    designs = designs_for(open_design, options, unknown, max_length, alphabet)
    rows = []
    for epsilon in epsilons:
        for design in [*designs, *_further_designs(designs, epsilon, unknown)]:
            survey = design.draft(epsilon).survey()
            times = _times(survey) if timed else (math.nan, math.nan)
            rows.append(_row(design, epsilon, survey, *times))
    return MechanismTable(describe(kind, unknown, options), collect, tuple(rows))


def _further_designs(
    designs: Sequence[OpenDesign], epsilon: float, unknown: bool
) -> list[OpenDesign]:
    """Return designs that a survey file can name, but that `plan` does not recommend."""
    usual = designs[-1]
    further = []
    if usual.kind == "string" and not unknown:
        hashed = {**usual.settings, "mechanism": "localhash"}
        further.append(replace(usual, name="local hashing", settings=hashed))
    if usual.collect == "repeatedly" and not unknown:
        paper = {**usual.settings, "p": 0.25, "q": 0.75}
        further.append(replace(usual, name=f"{usual.name}, noise of the paper", settings=paper))
        more = {**usual.settings, "epsilon_per_report": round(LARGER_SHARE * epsilon, 6)}
        name = f"{usual.name}, {100 * LARGER_SHARE:g}% of ε per report"
        further.append(replace(usual, name=name, settings=more))
    return further


def _row(
    design: OpenDesign, epsilon: float, survey: Survey, encode: float, decoded: float
) -> MechanismRow:
    """Return what the mechanism of a survey's only question promises."""
    question = survey.questions[0]
    mechanism, share = question.protocol.mechanisms[0], question.protocol.identifying_share
    answers = _answers(question)
    frequency = 1 / answers if answers else 0.0
    variance = mechanism.variance(frequency) / share
    p, q = mechanism.support
    return MechanismRow(
        name=design.name,
        epsilon=float(epsilon),
        per_report=question.loss.per_report,
        variance=variance,
        variance_30=math.nan
        if design.collect == "once"
        else mechanism.variance(frequency, reports=DAYS) / share,
        bound=least_variance(question.loss.per_report, answers),
        liar=(1 - p) / (q - p) / share,
        bytes=survey.body_size,
        groups=survey.groups,
        encode_microseconds=encode,
        decode_seconds=decoded,
    )


def _answers(question: Question) -> int | None:
    """Return how many answers a client can give, no answer included; None for strings."""
    if question.kind == "string":
        return None
    options = len(question.protocol.mechanisms[0].labels)
    return 2 if question.kind == "boolean" else options + 1


def least_variance(epsilon: float, answers: int | None) -> float:
    """Return the best known lower bound of the variance of a share, times the number of clients.

    With k possible answers, all equally common, no mechanism has a smaller sum of variances than
    the best subset selection, for many clients (Ye and Barg, "Optimal schemes for discrete
    distribution estimation under locally differential privacy", 2018):

        min over w of (k−1)²·(w·e^ε + k − w)² / (k²·(e^ε−1)²·w·(k−w)) per share.

    With unlimited answers, of which each is rare, it is 4e^ε/(e^ε−1)².

    >>> round(least_variance(1.0, 2), 3), round(least_variance(1.0, None), 3)
    (1.171, 3.683)
    """
    e = math.exp(epsilon)
    if answers is None:
        return 4 * e / (e - 1) ** 2
    k = answers
    return min(
        ((k - 1) * (w * e + k - w) / (k * (e - 1))) ** 2 / (w * (k - w)) for w in range(1, k)
    )


def _values(question: Question, strings: tuple[str, ...]) -> tuple[object, ...]:
    """Return the answers of simulated clients."""
    if question.kind == "boolean":
        return True, False
    return tuple(range(len(strings))) if question.kind == "number" else strings


def _times(survey: Survey) -> tuple[float, float]:
    """Return microseconds per report of a client, and seconds to decode `DECODED` reports."""
    question = survey.questions[0]
    labels = question.protocol.mechanisms[0].labels
    strings = labels or tuple(f"value{i}" for i in range(LISTED))
    values = _values(question, strings)
    encoder = Encoder(survey, os.urandom(32))
    start = time.perf_counter()
    for i in range(ENCODED):
        tokens = encoder.tokens({question.name: values[i % len(values)]})
        encoder.report(tokens, os.urandom(encoder.rand_size))
    per_report = (time.perf_counter() - start) / ENCODED
    rng = np.random.default_rng(1)
    crowd = Population(values, zipf(len(values)))
    reports = simulate(survey, crowd.draw(DECODED, rng), rng=rng)
    candidates = None if labels else strings
    decode(survey, reports, question.name, candidates)  # compiles, and fills caches
    start = time.perf_counter()
    decode(survey, reports, question.name, candidates)
    return 1e6 * per_report, time.perf_counter() - start
