"""Subgroups of clients, as users ask for them: conditions on the answers to other questions."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from deniable.arguments import BOOLEANS
from deniable.errors import InputError, did_you_mean
from deniable.survey import Question, Survey

Answer = str | bool
Where = Mapping[str, Answer | Iterable[Answer]]
"""Answers that put a client into a subgroup, by question."""


@dataclass(frozen=True)
class Subgroup:
    """A question, and the answers to other questions that select clients.

    Parameters
    ----------
    questions : tuple of Question
        First the question whose distribution is wanted, then those of the conditions.
    answers : tuple of tuple of str
        For each condition, the answers of which a client must have given one.
    """

    questions: tuple[Question, ...]
    answers: tuple[tuple[str, ...], ...]

    @property
    def where(self) -> dict[str, tuple[str, ...]]:
        """The answers, by question."""
        return {q.name: a for q, a in zip(self.questions[1:], self.answers, strict=True)}

    @classmethod
    def of(cls, survey: Survey, question: str, where: Where) -> "Subgroup":
        """Return a subgroup; raise InputError if a condition cannot be asked for."""
        if not isinstance(where, Mapping):
            raise InputError(
                'where must map questions to answers, such as {"browser": "Firefox"}, got '
                f"{type(where).__name__}"
            )
        if question in where:
            raise InputError(
                f"question {question!r} cannot be decoded and be a condition at the same time: "
                "leave it out of where (--where on the command line)"
            )
        asked, *others = map(survey.question, (question, *where))
        return cls((asked, *others), tuple(_answers(q, where[q.name]) for q in others))


def _answers(question: Question, given: Answer | Iterable[Answer]) -> tuple[str, ...]:
    """Return the labels of the answers that a condition gives, without duplicates."""
    values = list(given) if isinstance(given, Iterable) and not isinstance(given, str) else [given]
    if not values:
        raise InputError(f"where gives no answer to question {question.name!r}")
    if question.kind == "string":
        if wrong := [v for v in values if not isinstance(v, str)]:
            raise InputError(
                f"question {question.name!r} is a string question: where must give a string, got "
                f"{wrong[0]!r}"
            )
        return tuple(dict.fromkeys(map(str, values)))
    if question.kind == "boolean":
        options = {word: "yes" if value else "no" for word, value in BOOLEANS.items()}
        keys = [str(v).strip().lower() for v in values]
    else:
        options = {label: label for label in question.protocol.mechanisms[0].labels}
        keys = [str(v) for v in values]
    for key, value in zip(keys, values, strict=True):
        if key not in options:
            raise InputError(
                f"where: {value!r} is not an answer to question {question.name!r}, which has the "
                f"answers {', '.join(dict.fromkeys(options.values()))}."
                f"{did_you_mean(key, options)}"
            )
    return tuple(dict.fromkeys(options[key] for key in keys))
