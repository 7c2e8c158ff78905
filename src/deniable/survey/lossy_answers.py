"""Answers that reports cannot contain in full: warn about them, or refuse them.

This is for simulations and tests. The client of a real survey does neither, because a refusal or a
warning would reveal something about the answer.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from deniable.errors import InputError, LossyAnswerWarning, did_you_mean
from deniable.formatting import counted
from deniable.protocols.base import Value
from deniable.survey.survey import Question, Survey

MAX_EXAMPLES = 3
MAX_OPTIONS_SHOWN = 8


@dataclass
class _Loss:
    """Answers to one question that lose the same thing: how many, and the first of them."""

    question: Question
    reason: str
    answers: int
    examples: list[str]


class LossyAnswers:
    """Collects the answers that are not reported in full, and warns about all of them at once.

    Parameters
    ----------
    strict : bool, default False
        Raise InputError at the first of them instead.
    """

    def __init__(self, strict: bool = False) -> None:
        self._strict = strict
        self._found: dict[tuple[str, str], _Loss] = {}

    def add(self, question: Question, answers: Iterable[tuple[Value, int]]) -> None:
        """Look at answers to a question, each with the number of clients that give it."""
        for value, clients in answers:
            if clients and (reason := question.lost(value)):
                new = _Loss(question, reason, 0, [])
                loss = self._found.setdefault((question.name, reason), new)
                loss.answers += clients
                if len(loss.examples) < MAX_EXAMPLES and value not in loss.examples:
                    loss.examples.append(value)
        if self._strict and self._found:
            raise InputError(self.message())

    def add_report(self, survey: Survey, values: Mapping[str, object]) -> None:
        """Look at the answers of one client, by question."""
        for question in survey.questions:
            self.add(question, [(values.get(question.name), 1)])

    def message(self) -> str:
        """Return one sentence per question and reason; empty if nothing was lost."""
        return "\n".join(_describe(loss) for loss in self._found.values())

    def warn(self, stacklevel: int) -> None:
        """Warn about all answers that were lost, if any; 1 means the line of the caller."""
        if message := self.message():
            warnings.warn(message, LossyAnswerWarning, stacklevel=stacklevel + 1)


def _describe(loss: _Loss) -> str:
    """Return a sentence with the number of answers, examples, and the options of a choice."""
    examples = ", ".join(f"{value!r:.60}" for value in loss.examples)
    text = (
        f"question {loss.question.name!r}: {loss.reason} ({counted(loss.answers, 'answer')}, such "
        f"as {examples})."
    )
    options = loss.question.protocol.mechanisms[0].labels
    if not options:
        return text
    shown = ", ".join(options[:MAX_OPTIONS_SHOWN]) + ", …" * (len(options) > MAX_OPTIONS_SHOWN)
    noun = "bins" if loss.question.kind == "number" else "options"
    return f"{text} The {noun} are {shown}.{did_you_mean(loss.examples[0], options)}"
