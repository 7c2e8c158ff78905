"""The categories of each question in a joint table."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from math import prod

from deniable.analysis.candidates import Strings, candidates_of
from deniable.inference.joint.collapse import how_many_to_fit
from deniable.inference.models import model_of
from deniable.inference.models.base import AnyModel, Axis, CategoryChoice, Counts, OtherModel
from deniable.survey import Question


@dataclass(frozen=True)
class TableSettings:
    """Which categories a joint table gets; see `associate`."""

    top: int = 10
    other: bool | OtherModel = True
    fitted: int | None = None
    alpha: float = 0.05


def axes_of(
    questions: Sequence[Question],
    candidates: Mapping[str, Strings],
    count: Callable[[Question, AnyModel], Counts],
    settings: TableSettings,
) -> list[tuple[AnyModel, Axis]]:
    """The model of each question's fitted categories, and how they are shown.

    count : counts a question's reports for the marginal of its model
    """
    fitted = settings.fitted or settings.top
    # The paper's model fits what is shown; so does leaving Other out.
    if not settings.fitted and settings.other in (True, "mixture"):
        options = [
            len(q.protocol.mechanisms[0].labels) + 1 for q in questions if q.kind != "string"
        ]
        fitted = how_many_to_fit(settings.top, len(questions) - len(options), prod(options))
    axes = []
    for question in questions:
        model = model_of(candidates_of(question, candidates.get(question.name)))
        choice = CategoryChoice(question.name, settings.top, fitted, settings.other, settings.alpha)
        axes.append(model.fitted(partial(count, question, model), choice))
    return axes
