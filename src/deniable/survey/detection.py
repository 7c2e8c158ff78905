"""Where detection begins: below, results have estimates and intervals, but nothing is tested."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from deniable.survey.survey import Question

MIN_REPORTS = 1_000
"""Reports of a string question from which its strings are tested."""
MIN_CLIENTS = 100
"""Clients from which answers that are collected repeatedly are tested."""
MIN_COHORTS = 8
"""Cohorts from which strings are tested: their differences show how far unlisted strings mislead.

With local hashing, families of hash functions count.
"""
NOT_TESTED = (
    f"Nothing is tested, and no value is called detected, with fewer than {MIN_REPORTS:,} reports "
    f"of a string question, {MIN_CLIENTS} clients in repeated collection, or {MIN_COHORTS} cohorts "
    "or families of hash functions"
)


def is_tested(questions: Iterable[Question], reports: float, clients: float | None = None) -> bool:
    """Return whether results about these questions are tested.

    Options, booleans and numbers that are asked once have an exact test at every size.

    reports : reports that the estimate uses; clients : clients that sent them repeatedly, or None
    """
    strings = [question for question in questions if question.kind == "string"]
    return not (
        (strings and reports < MIN_REPORTS)
        or (clients is not None and clients < MIN_CLIENTS)
        or any(map(has_few_cohorts, strings))
    )


def has_few_cohorts(question: Question) -> bool:
    """Return whether a question hashes strings in fewer than 8 ways."""
    settings = [mechanism.canonical() for mechanism in question.protocol.mechanisms]
    ways = [each.get("families", each.get("cohorts")) for each in settings]
    return any(isinstance(number, int) and number < MIN_COHORTS for number in ways)
