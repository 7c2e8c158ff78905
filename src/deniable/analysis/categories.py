"""Candidates of a question, and the categories that questions have in a joint table."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from math import prod

import numpy as np

from deniable.arguments import as_names
from deniable.errors import InputError, did_you_mean
from deniable.inference.joint.collapse import how_many_to_fit
from deniable.inference.models import Candidates, model_of
from deniable.inference.models.base import AnyModel, Axis, ReportCounts, TableSettings
from deniable.kernels.array_types import Bytes
from deniable.protocols.alphabet import TEXT_SETTINGS
from deniable.results import Covariance, Discovery, Joint, Marginal
from deniable.results.association import Tests
from deniable.survey import Question

Strings = Iterable[str] | Discovery | Marginal


def check_listed(candidates: Mapping[str, Strings], questions: Sequence[str]) -> None:
    """Raise InputError if candidates are listed for a question that is not analysed."""
    if extra := sorted(candidates.keys() - set(questions)):
        raise InputError(
            f"candidates are given for {extra[0]!r}, which is not one of the questions "
            f"{list(questions)}.{did_you_mean(extra[0], questions)}"
        )


def candidates_of(question: Question, given: Strings | None) -> Candidates:
    """Return the candidates of a question without duplicates, or its options if it has some."""
    if question.kind != "string":
        if given is not None:
            raise InputError(
                f"question {question.name!r} is a {question.kind} question, whose options are "
                "known: do not pass candidates for it"
            )
        return Candidates(question, question.protocol.mechanisms[0].labels)
    if given is None:
        raise InputError(
            f"question {question.name!r} is a string question: pass the candidates to look for "
            "(--candidates on the command line)"
        )
    if isinstance(given, Discovery):
        if not given.strings:
            raise InputError(
                f"question {question.name!r}: no strings were discovered, so there are no "
                f"candidates; the detection threshold was a share of "
                f"{given.detection_threshold:.4f}"
            )
        if _same_symbols(given, question):
            return Candidates(question, given.strings, given.symbols)
        given = given.strings
    if isinstance(given, Marginal):
        given = [row.value for row in given if row.detected]
    names = tuple(dict.fromkeys(as_names("candidates", given)))
    return Candidates(question, names, _symbols(question, names))


def _same_symbols(discovery: Discovery, question: Question) -> bool:
    """Return whether discovered strings can be used as rows of symbols, without their text.

    Some rows of symbols have no text, for instance if `max_length` cut a character in two.
    """
    settings = question.protocol.canonical()
    source = discovery.provenance.parameters[discovery.question] if discovery.provenance else {}
    return all(key in settings and settings[key] == source.get(key, ...) for key in TEXT_SETTINGS)


def _symbols(question: Question, names: tuple[str, ...]) -> Bytes | None:
    """Return the symbols of each string, uint8[m, M]; None if strings are reported whole."""
    rows = [question.protocol.symbols(name) for name in ("", *names)]
    symbols = [row for row in rows if row is not None]
    if not symbols:
        return None
    return np.frombuffer(b"".join(symbols), np.uint8).reshape(len(rows), -1)[1:]


def axes_of(
    questions: Sequence[Question],
    candidates: Mapping[str, Strings],
    count: Callable[[Question, AnyModel], ReportCounts],
    settings: TableSettings,
) -> tuple[list[AnyModel], list[Axis]]:
    """Return the model of each question's fitted categories, and how they are shown.

    Parameters
    ----------
    questions : sequence of Question
        Questions of the joint table, in the order of its axes.
    candidates : mapping
        Candidates of each string question, by its name.
    count : callable
        Counts a question's reports for the marginal of its model.
    settings : TableSettings
        Which categories the table gets.
    """
    # The paper's model of Other, and a table without Other, fit only the categories that are shown.
    if not settings.fitted and settings.other in (True, "mixture"):
        options = [
            len(q.protocol.mechanisms[0].labels) + 1 for q in questions if q.kind != "string"
        ]
        fitted = how_many_to_fit(settings.top, len(questions) - len(options), prod(options))
        settings = replace(settings, fitted=fitted)
    models, axes = [], []
    for question in questions:
        every = model_of(candidates_of(question, candidates.get(question.name)))
        model, axis = every.fitted(question.name, partial(count, question, every), settings)
        models.append(model)
        axes.append(axis)
    return models, axes


def joint_of(
    questions: Sequence[str], axes: Sequence[Axis], shown: Covariance, reports: int, tests: Tests
) -> Joint:
    """Return the result for an estimated table with its covariance.

    The log-likelihood is left out. A table from reports adds it, with the details of its fit.
    """
    intervals = shown.intervals()
    last_shares = [
        float(np.moveaxis(shown.table, question, 0)[-1].sum()) for question in range(len(axes))
    ]
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
        other=tuple(
            axis.last_category(share) for axis, share in zip(axes, last_shares, strict=True)
        ),
        tests=tests,
    )
