"""Simulate the reports of many clients at once, by compiled kernels.

Distinct answers are hashed once. The cohort and the clear fields of a client are drawn from `rng`,
or, if `secrets` are given, from its secret exactly as its own client draws them; the same holds for
permanent noise. Fresh noise always comes from `rng`: a simulation protects nobody and can be
repeated. Tests compare simulated reports with those of `client.Client` for the same secrets and
random words, bit for bit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias, TypeVar

import numpy as np

from deniable.columns import ReportBatch
from deniable.errors import InputError
from deniable.kernels.array_types import Bytes, Int32s, UInt16s
from deniable.kernels.random_generator import Randomness, generator_of
from deniable.simulation.bit_parts import BitPart, BloomPart
from deniable.simulation.clear_fields import drawn_fields, fields_of_secrets
from deniable.simulation.coded import NO_ANSWER, Coded, Levels
from deniable.simulation.number_parts import HashPart, PermanentHashPart
from deniable.simulation.parts import (
    CLIENTS_PER_CHUNK,
    Clients,
    ClientStates,
    EncodingPart,
    PartSimulator,
)
from deniable.simulation.subset_parts import SubsetPart
from deniable.survey import Survey, SurveyOrPath
from deniable.survey.lossy_answers import LossyAnswers

Values = Mapping[str, Coded | Iterable[object]] | Coded | Iterable[object]
"""Answers per question, or the answers of a survey's only question."""
Codes = Mapping[str, Int32s]
"""One code per client for each question."""
T = TypeVar("T")
AnySimulator: TypeAlias = PartSimulator[Any]

SIMULATORS: dict[str, type[AnySimulator]] = {
    "bloom": BloomPart,
    "bloom-asymmetric": BloomPart,
    "boolean": BitPart,
    "choice": BitPart,
    "choice-asymmetric": BitPart,
    "localhash": HashPart,
    "subset": SubsetPart,
    "localhash-permanent": PermanentHashPart,
}
"""Simulators by kind of mechanism; any other kind is simulated by its own encoder."""


def simulate(
    survey: SurveyOrPath,
    values: Values,
    *,
    rng: Randomness = None,
    secrets: Bytes | None = None,
    strict: bool = False,
) -> ReportBatch:
    """Simulate one report per client.

    Parameters
    ----------
    survey : Survey, str or Path
        Survey that the clients answer, or the path of its file.
    values : mapping of str to sequence, data frame, or sequence
        Answers per question, with the clients in the same order for every question; also as a
        pandas or polars data frame. A single sequence serves for a survey of one question. None
        means no answer.
    rng : None, int or numpy.random.Generator, default None
        Source of randomness: a generator, a seed, or None for a new seed.
    secrets : ndarray of uint8, shape (N, 32), optional
        One secret per client. Cohorts, clear fields and permanent noise are then those that a
        client with this secret has. By default everything is drawn from `rng`.
    strict : bool, default False
        Raise InputError for an answer that cannot be reported in full: a choice that is not an
        option, or a string that is too long or has characters outside the alphabet of the question.
        By default, warn.

    Returns
    -------
    ReportBatch
        One report per client, in the order of the answers.

    Raises
    ------
    InputError
        If an answer does not fit its question, or the questions have different numbers of answers.

    Warns
    -----
    LossyAnswerWarning
        If answers cannot be reported in full and not `strict`.

    Examples
    --------
    >>> survey = Survey.from_toml('''
    ... name = "fruit"
    ... version = 1
    ... owner = "Ann, ann@example.org"
    ... description = "Which fruit do people like?"
    ... expires = 2099-12-31
    ... collect = "once"
    ... [questions.likes_pears]
    ... kind = "boolean"
    ... epsilon = 2
    ... ''')
    >>> len(simulate(survey, [True, False, None], rng=np.random.default_rng(1)))
    3
    """
    lossy = LossyAnswers(strict)
    crowd, codes = crowd_of(survey, values, lossy)
    lossy.warn(stacklevel=2)
    return crowd.report(codes, rng=rng, secrets=secrets)


def simulate_days(
    survey: SurveyOrPath,
    values: Values,
    days: int,
    *,
    rng: Randomness = None,
    secrets: Bytes | None = None,
    strict: bool = False,
) -> Iterator[ReportBatch]:
    """Simulate the reports of the same clients with the same answers on several days.

    Each client keeps its permanent noise and adds fresh noise every day.

    Parameters
    ----------
    survey : Survey, str or Path
        Survey that the clients answer, or the path of its file.
    values : mapping of str to sequence, data frame, or sequence
        Answers; see `simulate`.
    days : int
        Number of reports per client.
    rng : None, int or numpy.random.Generator, default None
        Source of randomness: a generator, a seed, or None for a new seed.
    secrets : ndarray of uint8, shape (N, 32), optional
        One secret per client; see `simulate`.
    strict : bool, default False
        Raise InputError for an answer that cannot be reported in full, instead of a warning; see
        `simulate`.

    Yields
    ------
    ReportBatch
        The reports of one day, in the order of the answers.

    Examples
    --------
    >>> survey = Survey.from_toml('''
    ... name = "fruit"
    ... version = 1
    ... owner = "Ann, ann@example.org"
    ... description = "Which fruit do people like?"
    ... expires = 2099-12-31
    ... collect = "repeatedly"
    ... [questions.likes_pears]
    ... kind = "boolean"
    ... epsilon = 2
    ... ''')
    >>> [len(day) for day in simulate_days(survey, [True] * 5, 3, rng=np.random.default_rng(1))]
    [5, 5, 5]
    """
    lossy, rng = LossyAnswers(strict), generator_of(rng)
    crowd, codes = crowd_of(survey, values, lossy)
    lossy.warn(stacklevel=2)
    permanent = crowd.permanent(codes, rng=rng, secrets=secrets)
    for _ in range(days):
        yield permanent.report(rng)


def simulate_stream(
    survey: SurveyOrPath,
    draw: Callable[[int, np.random.Generator], Mapping[str, Coded]],
    clients: int,
    *,
    rng: Randomness = None,
    rows: int = CLIENTS_PER_CHUNK,
    strict: bool = False,
) -> Iterator[ReportBatch]:
    """Simulate any number of reports in bounded memory.

    Parameters
    ----------
    survey : Survey, str or Path
        Survey that the clients answer, or the path of its file.
    draw : callable
        `draw(n, rng)` returns the answers of the next n clients: one `Coded` per question.
    clients : int
        Number of clients.
    rng : None, int or numpy.random.Generator, default None
        Source of randomness: a generator, a seed, or None for a new seed.
    rows : int, default 131072
        Maximum number of reports per batch.
    strict : bool, default False
        Raise InputError for an answer that cannot be reported in full; see `simulate`. By default,
        warn after the last batch.

    Yields
    ------
    ReportBatch
        The reports of the next clients.

    Examples
    --------
    >>> survey = Survey.from_toml('''
    ... name = "fruit"
    ... version = 1
    ... owner = "Ann, ann@example.org"
    ... description = "Which fruit do people like?"
    ... expires = 2099-12-31
    ... collect = "once"
    ... [questions.likes_pears]
    ... kind = "boolean"
    ... epsilon = 2
    ... ''')
    >>> def draw(n, rng):
    ...     return {"likes_pears": Coded((True, False), rng.integers(0, 2, n, dtype=np.int32))}
    >>> stream = simulate_stream(survey, draw, 250, rng=np.random.default_rng(1), rows=100)
    >>> [len(batch) for batch in stream]
    [100, 100, 50]
    """
    survey, rng = Survey.of(survey), generator_of(rng)
    crowd: Crowd | None = None
    lossy = LossyAnswers(strict)
    for start in range(0, clients, rows):
        values = draw(min(rows, clients - start), rng)
        levels = {name: coded.levels for name, coded in values.items()}
        if crowd is None or crowd.levels != levels:
            crowd = Crowd(survey, levels)
        codes = {name: c.codes for name, c in values.items()}
        crowd.find_lossy(codes, lossy)
        yield crowd.report(codes, rng=rng)
    lossy.warn(stacklevel=2)


@dataclass(frozen=True, eq=False)
class PermanentResponses:
    """State that clients keep from report to report: cohort, clear fields, and state of each part.

    cohort : uint16[N]; clear : uint8[N, fields] per question; parts : one state per part of each
    question.
    """

    survey: Survey
    cohort: UInt16s
    clear: tuple[Bytes, ...]
    parts: tuple[tuple[ClientStates, ...], ...]

    def report(self, rng: Randomness = None) -> ReportBatch:
        """Return one report per client, with fresh noise."""
        rng = generator_of(rng)
        bits = tuple(tuple(states.report(rng) for states in parts) for parts in self.parts)
        origin = origin_of(rng)
        return ReportBatch(self.survey, self.cohort, self.clear, bits, origin, trusted=True)


@dataclass(frozen=True, eq=False)
class Crowd:
    """A survey and the distinct answers that its clients give, hashed once.

    Parameters
    ----------
    survey : Survey
        Survey that the clients answer.
    levels : mapping of str to tuple
        Distinct answers per question; a question that is left out has no answers.

    Raises
    ------
    InputError
        If an answer does not fit its question.

    Examples
    --------
    >>> survey = Survey.from_toml('''
    ... name = "fruit"
    ... version = 1
    ... owner = "Ann, ann@example.org"
    ... description = "Which fruit do people like?"
    ... expires = 2099-12-31
    ... collect = "once"
    ... [questions.likes_pears]
    ... kind = "boolean"
    ... epsilon = 2
    ... ''')
    >>> crowd = Crowd(survey, {"likes_pears": (True, False)})
    >>> codes = {"likes_pears": np.array([0, 1, 1, -1], np.int32)}
    >>> len(crowd.report(codes, rng=np.random.default_rng(1)))
    4
    """

    survey: Survey
    levels: Mapping[str, Levels]

    def __post_init__(self) -> None:
        for name, levels in self.levels.items():
            question = self.survey.question(name)
            for level in levels:
                question.checked(level)

    def __repr__(self) -> str:
        return f"<Crowd of {self.survey!r}>"

    @cached_property
    def _lossy_levels(self) -> dict[str, list[int]]:
        """Per question, the indices of the answers that reports do not contain in full."""
        questions = {name: self.survey.question(name) for name in self.levels}
        return {
            name: [i for i, level in enumerate(levels) if questions[name].lost(level)]
            for name, levels in self.levels.items()
        }

    def find_lossy(self, codes: Codes, lossy: LossyAnswers) -> None:
        """Collect the answers of these clients that reports do not contain in full.

        Parameters
        ----------
        codes : mapping of str to ndarray of int32, shape (N,)
            Per question and client the index of the answer in `levels`; −1 for no answer.
        lossy : LossyAnswers
            Collects them, or raises InputError if it is strict.
        """
        for name, indices in self._lossy_levels.items():
            if indices:
                clients = np.bincount(codes[name] + 1, minlength=len(self.levels[name]) + 1)[1:]
                lost = [(self.levels[name][i], int(clients[i])) for i in indices]
                lossy.add(self.survey.question(name), lost)

    @cached_property
    def _simulators(self) -> list[list[AnySimulator]]:
        """One simulator per part of each question."""
        return [
            [
                SIMULATORS.get(m.kind, EncodingPart)(q.protocol, i, self.levels.get(q.name, ()))
                for i, m in enumerate(q.protocol.mechanisms)
            ]
            for q in self.survey.questions
        ]

    def report(
        self, codes: Codes, *, rng: Randomness = None, secrets: Bytes | None = None
    ) -> ReportBatch:
        """Simulate one report per client.

        Parameters
        ----------
        codes : mapping of str to ndarray of int32, shape (N,)
            Per question and client the index of the answer in `levels`; −1 for no answer.
        rng : None, int or numpy.random.Generator, default None
            Source of randomness: a generator, a seed, or None for a new seed.
        secrets : ndarray of uint8, shape (N, 32), optional
            One secret per client; see `simulate`.

        Returns
        -------
        ReportBatch
            One report per client.
        """
        rng = generator_of(rng)
        if secrets is not None:
            return self.permanent(codes, rng=rng, secrets=secrets).report(rng)
        cohort, clear, bits = self._by_part(
            codes, None, rng, lambda simulator, clients: simulator.single_reports(clients, rng)
        )
        return ReportBatch(self.survey, cohort, clear, bits, origin_of(rng), trusted=True)

    def permanent(
        self, codes: Codes, *, rng: Randomness = None, secrets: Bytes | None = None
    ) -> PermanentResponses:
        """Draw what each client keeps from report to report.

        Parameters
        ----------
        codes : mapping of str to ndarray of int32, shape (N,)
            Per question and client the index of the answer in `levels`; −1 for no answer.
        rng : None, int or numpy.random.Generator, default None
            Source of randomness: a generator, a seed, or None for a new seed.
        secrets : ndarray of uint8, shape (N, 32), optional
            One secret per client; see `simulate`.

        Returns
        -------
        PermanentResponses
            Its method `report(rng)` adds fresh noise and returns one report per client.
        """
        rng = generator_of(rng)
        columns = self._by_part(
            codes, secrets, rng, lambda simulator, clients: simulator.states(clients, rng)
        )
        return PermanentResponses(self.survey, *columns)

    def _by_part(
        self,
        codes: Codes,
        secrets: Bytes | None,
        rng: np.random.Generator,
        encode: Callable[[AnySimulator, Clients], T],
    ) -> tuple[UInt16s, tuple[Bytes, ...], tuple[tuple[T, ...], ...]]:
        """Return cohorts, clear fields, and encode(simulator, clients) of every part."""
        n = _number_of_clients(codes, secrets)
        questions = self.survey.questions
        clear_fields: Iterable[Bytes]
        if secrets is None:
            cohort = rng.integers(0, self.survey.cohorts, n, dtype=np.uint16)
            # Evaluated question by question, between the noise of one question and that of the
            # next: the reports of a seed depend on this order.
            clear_fields = (drawn_fields(q.protocol, n, rng) for q in questions)
        else:
            cohort, clear_fields = fields_of_secrets(self.survey, secrets)
        clear, parts = [], []
        for question, simulators, fields in zip(
            questions, self._simulators, clear_fields, strict=True
        ):
            answer = codes.get(question.name, np.full(n, NO_ANSWER, np.int32))
            clients = Clients(answer, np.zeros(n, np.uint8), cohort, secrets)
            clear.append(fields)
            parts.append(tuple(encode(s, s.clients_of_part(clients, fields)) for s in simulators))
        return cohort, tuple(clear), tuple(parts)


def origin_of(rng: np.random.Generator) -> str:
    """Return the seed of the generator in words, so that a result can name it."""
    seed = getattr(rng.bit_generator.seed_seq, "entropy", None)
    return f"simulated, seed {seed}"


def crowd_of(
    survey: SurveyOrPath, values: Values, lossy: LossyAnswers
) -> tuple[Crowd, dict[str, Int32s]]:
    """Return the crowd that gives these answers, and their codes; collect the lossy ones."""
    survey = Survey.of(survey)
    frame: Any = values
    if hasattr(frame, "columns"):  # pandas or polars
        values = {str(name): frame[name].to_list() for name in frame.columns}
    if not isinstance(values, Mapping):
        if len(survey.questions) != 1:
            names = ", ".join(q.name for q in survey.questions)
            raise InputError(
                f"the survey has several questions: give a mapping with the answers to {names}"
            )
        values = {survey.questions[0].name: values}
    coded = {survey.question(str(name)).name: _column(str(name), v) for name, v in values.items()}
    crowd = Crowd(survey, {name: c.levels for name, c in coded.items()})
    codes = {name: c.codes for name, c in coded.items()}
    crowd.find_lossy(codes, lossy)
    return crowd, codes


def _column(question: str, values: Coded | Iterable[object]) -> Coded:
    """Return the answers to a question as codes; an error names the question."""
    try:
        return Coded.of(values)
    except InputError as error:
        raise InputError(f"question {question!r}: {error}") from None


def _number_of_clients(codes: Codes, secrets: Bytes | None) -> int:
    """Return the number of clients, or raise if questions have different numbers of answers."""
    lengths = {name: len(code) for name, code in codes.items()}
    if secrets is not None:
        lengths["secrets"] = len(secrets)
    if len(set(lengths.values())) != 1:
        counts = ", ".join(f"{name}: {length}" for name, length in lengths.items())
        raise InputError(f"every question needs one answer per client, got {counts or 'none'}")
    return next(iter(lengths.values()))
