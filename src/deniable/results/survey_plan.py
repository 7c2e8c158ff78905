"""The result of `plan`: recommended parameters, and what they will detect."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import isnan

from deniable.errors import InputError
from deniable.formatting import Columns, counted, percent
from deniable.kernels.array_types import Floats
from deniable.results.base import Result
from deniable.results.rows import Rows


@dataclass(frozen=True, repr=False)
class QuestionDesign:
    """One way to ask a question: what it promises, sends and detects.

    Parameters
    ----------
    name : str
        Name of the design, such as "prefixes, local hashing".
    threshold : float
        Detection threshold: share of clients at which a value is detected half of the time.
    noise_sd : float
        Standard deviation of the estimate of one value.
    once : float
        Privacy loss ε per report.
    forever : float
        Privacy loss ε in total, of any number of reports about one value.
    bytes : int
        Size of a report in a batch.
    parameters : mapping
        Parameters as a published survey has them.
    found : mapping of str to float
        Number of strings that are detected on average, by population.
    toml : str
        The question's tables in a survey file.

    Examples
    --------
    >>> from deniable import plan
    >>> design = plan(clients=100_000, epsilon=4.0, kind="boolean").best
    >>> design.name, design.bytes
    ('one bit', 1)
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

    def __repr__(self) -> str:
        threshold, size = percent(self.threshold), counted(self.bytes, "byte")
        return f"<QuestionDesign {self.name}: detection threshold {threshold}, {size} per report>"


@dataclass(frozen=True, eq=False, repr=False)
class Plan(Rows[QuestionDesign], Result):
    """Recommended parameters for a question, with predictions.

    Parameters
    ----------
    question : str
        Kind of the question, in words.
    collect : str
        "once" or "repeatedly".
    clients : int
        Number of clients.
    epsilon : float
        Privacy loss ε per report if collected once, in total if collected repeatedly.
    wanted : float or None
        Detection threshold that was asked for, if any.
    alpha : float
        Significance level.
    designs : tuple of QuestionDesign
        Designs at this ε, best first.
    epsilons : tuple of float
        Other ε for which the best design is predicted.
    sizes : tuple of int
        Other numbers of clients for which the best design is predicted.
    thresholds : ndarray of float64, shape (epsilons, sizes)
        Detection thresholds of the best design.
    populations : tuple of str
        Distributions of strings for which the number of detected strings is predicted.
    found : ndarray of float64, shape (epsilons, sizes, populations)
        Number of strings that the best design detects on average.
    draft : str
        Survey file in TOML with the best design.

    Raises
    ------
    InputError
        If there is no design, or an array has the wrong shape.

    Examples
    --------
    >>> from deniable import plan
    >>> planned = plan(clients=100_000, epsilon=4.0, kind="boolean")
    >>> planned
    <Plan a yes-or-no question: 100,000 clients, ε = 4 per report; best design: one bit>
    >>> round(planned["one bit"].threshold, 4)
    0.0007
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
    thresholds: Floats
    populations: tuple[str, ...]
    found: Floats
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
        """The recommended design."""
        return self.designs[0]

    @property
    def threshold(self) -> float:
        """Detection threshold of the recommended design; NaN if nothing is tested."""
        return self.best.threshold

    @property
    def tested(self) -> bool:
        """Whether this many clients are enough to test anything."""
        return not isnan(self.threshold)

    def survey_file(self, name: str = "survey.toml") -> str:
        """Return a survey file that asks as recommended.

        Parameters
        ----------
        name : str, default "survey.toml"
            Name of the file, from which the survey gets its name.

        Returns
        -------
        str
            The survey in TOML.
        """
        from deniable.survey.draft import survey_name, toml_value

        renamed = self.draft.replace('name = "plan"', f"name = {toml_value(survey_name(name))}", 1)
        return renamed.replace("survey.toml", name)

    def columns(self) -> Columns:
        """Return the predictions for the best design, one row per ε and number of clients.

        Returns
        -------
        dict of str to sequence
            Columns epsilon, clients, threshold, and one per population.
        """
        cells = [(i, j) for i in range(len(self.epsilons)) for j in range(len(self.sizes))]
        named: Columns = {
            "epsilon": [self.epsilons[i] for i, _ in cells],
            "clients": [self.sizes[j] for _, j in cells],
            "threshold": self.thresholds.ravel().tolist(),
        }
        for k, population in enumerate(self.populations):
            named[f"found of {population}"] = self.found[..., k].ravel().tolist()
        return named

    def _keys(self) -> Sequence[str]:
        return [design.name for design in self.designs]

    def _make_rows(self) -> Iterable[QuestionDesign]:
        return self.designs

    def summary(self) -> str:
        """Return the most important facts in a few words.

        Returns
        -------
        str
            Question, clients, ε, and the recommended design.
        """
        return (
            f"{self.question}: {counted(self.clients, 'client')}, ε = {self.epsilon:.4g} "
            f"{'per report' if self.collect == 'once' else 'in total'}; best design: "
            f"{self.best.name}"
        )

    def heading(self) -> str:
        """Return one line that summarises the plan.

        Returns
        -------
        str
            Question, clients, ε, the recommended design and its detection threshold.
        """
        return (
            f"{self.summary()}, detection threshold {percent(self.threshold)}, "
            f"{counted(self.best.bytes, 'byte')} per report"
        )
