"""The candidates of a question, and the categories of several in a joint table."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from math import prod

import numpy as np

from deniable.errors import InputError
from deniable.inference.joint.collapse import how_many_to_fit
from deniable.inference.models import Candidates, model_of
from deniable.inference.models.base import AnyModel, Axis, ReportCounts, TableSettings
from deniable.kernels.array_types import Bytes
from deniable.protocols.alphabet import TEXT_SETTINGS
from deniable.results import Covariance, Discovery, Joint
from deniable.results.joint import Tests
from deniable.survey import Question

Strings = Iterable[str] | Discovery


def candidates_of(question: Question, given: Strings | None) -> Candidates:
    """The candidates, each once; a question that has options needs none."""
    if question.kind != "string":
        if given is not None:
            raise InputError(f"question {question.name!r} is a {question.kind}: it has its options")
        return Candidates(question, question.protocol.mechanisms[0].labels)
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
            return Candidates(question, given.strings, given.symbols)
        given = given.strings
    names = tuple(dict.fromkeys(given))
    if wrong := [c for c in names if not isinstance(c, str)]:
        raise InputError(f"expected candidates that are texts, got {wrong[0]!r}")
    return Candidates(question, names, _symbols(question, names))


def _spelt_alike(found: Discovery, question: Question) -> bool:
    """Whether these strings' symbols are symbols of this question too: text cannot say all of
    them, such as a character that max_length cut in two."""
    mine = question.protocol.canonical()
    theirs = found.provenance.parameters[found.question] if found.provenance else {}
    return all(key in mine and mine[key] == theirs.get(key, ...) for key in TEXT_SETTINGS)


def _symbols(question: Question, names: tuple[str, ...]) -> Bytes | None:
    """u8[m, M], the symbols of each string; None where strings are taken whole."""
    rows = [question.protocol.symbols(name) for name in ("", *names)]
    whole = [row for row in rows if row is not None]
    if not whole:
        return None
    return np.frombuffer(b"".join(whole), np.uint8).reshape(len(rows), -1)[1:]


def axes_of(
    questions: Sequence[Question],
    candidates: Mapping[str, Strings],
    count: Callable[[Question, AnyModel], ReportCounts],
    settings: TableSettings,
) -> tuple[list[AnyModel], list[Axis]]:
    """The model of each question's fitted categories, and how they are shown.

    count : counts a question's reports for the marginal of its model
    """
    # The paper's model fits what is shown; so does leaving Other out.
    if not settings.fitted and settings.other in (True, "mixture"):
        options = [
            len(q.protocol.mechanisms[0].labels) + 1 for q in questions if q.kind != "string"
        ]
        most = how_many_to_fit(settings.top, len(questions) - len(options), prod(options))
        settings = replace(settings, fitted=most)
    models, axes = [], []
    for question in questions:
        whole = model_of(candidates_of(question, candidates.get(question.name)))
        model, axis = whole.fitted(question.name, partial(count, question, whole), settings)
        models.append(model)
        axes.append(axis)
    return models, axes


def joint_of(
    questions: Sequence[str], axes: Sequence[Axis], shown: Covariance, reports: int, tests: Tests
) -> Joint:
    """The result of a table with its covariance.

    Estimates that have no likelihood have converged in one pass.
    """
    intervals = shown.intervals()
    return Joint(
        questions=tuple(questions),
        labels=tuple(axis.shown for axis in axes),
        table=shown.table,
        standard_error=shown.standard_errors,
        low=intervals.low,
        high=intervals.high,
        p_value=shown.p_values(),
        covariance=shown.matrix,
        log_likelihood=float("nan"),
        gap_nats=float("nan"),
        passes=1,
        converged=True,
        reports=reports,
        other=tuple(axis.meaning for axis in axes),
        tests=tests,
    )
