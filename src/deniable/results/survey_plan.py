"""The result of planning: which parameters, and what they will show."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from deniable.errors import InputError
from deniable.formatting import Columns
from deniable.results.base import Result


@dataclass(frozen=True)
class QuestionDesign:
    """One way to ask: what it promises, costs and shows.

    threshold : the frequency at which a value is found half the time; noise_sd : of one value's
    estimate; once, forever : ε of one report, and of any number about one value; bytes : of a
    report in a batch; parameters : as published; found : strings found on average, by population;
    toml : the question's tables, for a survey file.
    """

    name: str
    threshold: float
    noise_sd: float
    once: float
    forever: float
    bytes: int
    parameters: Mapping[str, object]
    found: Mapping[str, float]
    toml: str


@dataclass(frozen=True, eq=False)
class Plan(Result):
    """Parameters for a question, and predictions; the best design stands first.

    question : in words; clients, epsilon : the plan's; wanted : the frequency that was to be found,
    if that was asked for; designs : ways to ask at this ε, best first; epsilons, sizes : where the
    best design is also predicted, thresholds : float64[E, N], there, and found : float64[E, N, P],
    strings found on average of each of the `populations`; draft : a survey file.
    """

    question: str
    collect: str
    clients: int
    epsilon: float
    wanted: float | None
    alpha: float
    designs: tuple[QuestionDesign, ...]
    epsilons: tuple[float, ...]
    sizes: tuple[int, ...]
    thresholds: NDArray[np.float64]
    populations: tuple[str, ...]
    found: NDArray[np.float64]
    draft: str

    def __post_init__(self) -> None:
        if not self.designs:
            raise InputError("expected at least one design")
        shape = (len(self.epsilons), len(self.sizes))
        if self.thresholds.shape != shape or self.found.shape != (*shape, len(self.populations)):
            raise InputError(
                f"expected thresholds of {shape} and found of {(*shape, len(self.populations))}, "
                f"got {self.thresholds.shape} and {self.found.shape}"
            )

    @property
    def best(self) -> QuestionDesign:
        """What is recommended."""
        return self.designs[0]

    @property
    def threshold(self) -> float:
        """Of the best design."""
        return self.best.threshold

    def survey_file(self, name: str = "survey.toml") -> str:
        """The survey as TOML, for a file of this name."""
        from deniable.survey.draft import survey_name, text

        renamed = self.draft.replace('name = "plan"', f"name = {text(survey_name(name))}", 1)
        return renamed.replace("survey.toml", name)

    def columns(self) -> Columns:
        """The best design at other ε and numbers of clients, a row each."""
        cells = [(i, j) for i in range(len(self.epsilons)) for j in range(len(self.sizes))]
        named: Columns = {
            "epsilon": [self.epsilons[i] for i, _ in cells],
            "clients": [self.sizes[j] for _, j in cells],
            "threshold": [float(self.thresholds[cell]) for cell in cells],
        }
        for k, population in enumerate(self.populations):
            named[f"found of {population}"] = [float(self.found[(*cell, k)]) for cell in cells]
        return named

    def heading(self) -> str:
        return (
            f"{self.question}: {self.clients:,} clients at ε = {self.epsilon:.4g} "
            f"({'one report' if self.collect == 'once' else 'for ever'}); {self.best.name}: values "
            f"of {100 * self.threshold:.3g}% and more are found, in {self.best.bytes} bytes a "
            "report"
        )
