"""One question's categories in a joint table: which strings get one, and what Other is made of.

Marginals choose the categories; what was detected beyond those that are shown is fitted too, and
added up into Other afterwards (see `inference.joint.collapse`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from deniable.analysis.candidates import Strings, candidates_of
from deniable.analysis.reading import NO_ANSWER, OTHER, OptionReading, Reading, reading_of
from deniable.compute.arrays import ArrayKernels, Likelihood
from deniable.compute.cpu.array_kernels import CPU_KERNELS
from deniable.errors import InputError
from deniable.inference.joint.collapse import choose_categories, how_many_to_fit
from deniable.inference.marginal.design import BloomDesign
from deniable.inference.models.bit_channel import BitChannel
from deniable.inference.models.hash_design import HashDesign
from deniable.inference.models.likelihood import likelihood_rows
from deniable.inference.models.other import (
    NoOther,
    Other,
    likelihood_with_other,
    mixture_other,
    product_other,
)
from deniable.survey import Question

OtherModel = Literal["mixture", "product"]


@dataclass(frozen=True, eq=False)
class Axis:
    """One question's categories: as fitted, and as shown after adding some up.

    known : the categories but Other; model : of Other, or None where it is left out;
    meaning : what the last category stands for, "" where it is one of the values.
    """

    reading: Reading
    known: BloomDesign | HashDesign | BitChannel
    model: Other | None
    labels: tuple[str, ...]
    shown: tuple[str, ...]
    groups: NDArray[np.intp]
    meaning: str

    def likelihood(
        self,
        bits: NDArray[np.uint8],
        stratum: NDArray[np.integer[Any]],
        arrays: ArrayKernels = CPU_KERNELS,
    ) -> Likelihood:
        """One row a report over the fitted categories, in the memory of these kernels."""
        if self.model is None or isinstance(self.known, BitChannel):
            return likelihood_rows(bits, stratum, self.known, arrays)
        return likelihood_with_other(bits, stratum, self.known, self.model, arrays)


def axes_of(
    questions: Sequence[Question],
    candidates: dict[str, Strings],
    count: Callable[[Reading], Any],
    *,
    top: int,
    other: bool | OtherModel,
    fitted: int | None,
    alpha: float,
) -> list[Axis]:
    """An axis for each question; see `associate`. count : what a marginal needs of the reports."""
    # The paper's model fits what is shown; so does leaving Other out.
    most = fitted or (_fit_count(questions, top) if other in (True, "mixture") else top)
    readings = [reading_of(q, candidates_of(q, candidates.get(q.name))) for q in questions]
    return [_axis(reading, count, top, other, most, alpha) for reading in readings]


def _fit_count(questions: Sequence[Question], top: int) -> int:
    options = [len(candidates_of(q, None).names) + 1 for q in questions if q.kind != "string"]
    return how_many_to_fit(top, len(questions) - len(options), prod(options))


def _axis(
    reading: Reading,
    count: Callable[[Reading], Any],
    top: int,
    other: bool | OtherModel,
    fitted: int,
    alpha: float,
) -> Axis:
    question = reading.question
    if isinstance(reading, OptionReading) and question.kind == "boolean":
        return _whole(reading, no_answer=False)
    counts = count(reading)
    marginal = reading.marginal(counts, alpha=alpha, correction="bonferroni")
    if isinstance(reading, OptionReading):
        total = float(marginal.estimate.sum())
        error = float(np.sqrt((marginal.standard_error**2).sum()))
        return _whole(reading, no_answer=bool(other) and 1 - total > 3 * error)
    design, names = reading.source, reading.candidates.names
    assert isinstance(design, BloomDesign | HashDesign)
    chosen = choose_categories(marginal, top, cap=max(fitted, top))
    if chosen.fitted.size == 0:
        raise InputError(
            f"question {question.name!r}: none of {len(names)} candidates was detected in "
            f"{counts.reports:,} reports; {marginal.detection_threshold:.4f} would be detectable"
        )
    known = design.take(chosen.fitted)
    labels = tuple(names[i] for i in chosen.fitted)
    if not other:
        groups = np.minimum(np.arange(len(labels)), chosen.shown)
        shown = labels[: chosen.shown] + ((OTHER,) if len(labels) > chosen.shown else ())
        return Axis(reading, known, None, labels, shown, groups, "")
    model: Other
    if other == "product":
        if not isinstance(known, BloomDesign):
            raise InputError(
                f'question {question.name!r} is reported by local hashing: other="product", the '
                'paper\'s model of bits, does not apply; leave it at "mixture"'
            )
        model = product_other(counts, known, marginal.estimate[chosen.fitted])
    else:
        model = mixture_other(marginal, design, chosen.fitted)
    absent = isinstance(model, NoOther)
    fit_labels = labels if absent else (*labels, OTHER)
    groups = chosen.groups(other=not absent)
    shown = labels[: chosen.shown] + ((OTHER,) if int(groups.max()) == chosen.shown else ())
    meaning = (
        model.reason
        if isinstance(model, NoOther)
        else f"everything but the {chosen.shown} named values, about {model.mass:.1%} of reports"
    )
    return Axis(reading, known, model, fit_labels, shown, groups, meaning)


def _whole(reading: OptionReading, *, no_answer: bool) -> Axis:
    """All the options of a question that has them."""
    channel = reading.channel(no_answer=no_answer)
    labels = channel.labels or ()
    meaning = "clients that gave none of the options" if NO_ANSWER in labels else ""
    return Axis(reading, channel, None, labels, labels, np.arange(len(labels)), meaning)
