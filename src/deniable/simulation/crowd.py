"""Reports of many clients at once, by compiled kernels.

Distinct answers are hashed once. A client's cohort and clear bytes are drawn from `rng`, or, where
`secrets` are given, from its secret exactly as its own client would; so is permanent noise. Fresh
noise always comes from `rng`: a simulation protects nobody, and can be repeated. Tests tie this to
`client.Client` on the same secrets and random words, bit for bit.
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
from deniable.simulation.bit_parts import BitPart, BloomPart
from deniable.simulation.clear_fields import drawn_fields, fields_of_secrets
from deniable.simulation.coded import NO_ANSWER, Coded, Levels
from deniable.simulation.number_parts import HashPart
from deniable.simulation.parts import ROWS, Clients, EncodingPart, Kept, PartSimulator
from deniable.survey import Survey

Values = Mapping[str, Coded | Iterable[object]] | Coded | Iterable[object]
Codes = Mapping[str, Int32s]
T = TypeVar("T")
AnySimulator: TypeAlias = PartSimulator[Any]

SIMULATORS: dict[str, type[AnySimulator]] = {
    "bloom": BloomPart,
    "boolean": BitPart,
    "choice": BitPart,
    "localhash": HashPart,
}
"""By kind of mechanism; any other kind is simulated by its own encoder."""


def simulate(
    survey: Survey, values: Values, *, rng: np.random.Generator, secrets: Bytes | None = None
) -> ReportBatch:
    """One report from each client.

    values : for each question its clients' answers in one order, also as a pandas or polars frame;
        a single sequence for a survey of one question. None is no answer.
    secrets : u8[N, 32], to draw what a client draws from its secret as it would
    """
    crowd, codes = _crowd_of(survey, values)
    return crowd.report(codes, rng=rng, secrets=secrets)


def simulate_days(
    survey: Survey,
    values: Values,
    days: int,
    *,
    rng: np.random.Generator,
    secrets: Bytes | None = None,
) -> Iterator[ReportBatch]:
    """The same clients, with the same answers, on several days: permanent noise is kept."""
    crowd, codes = _crowd_of(survey, values)
    permanent = crowd.permanent(codes, rng=rng, secrets=secrets)
    for _ in range(days):
        yield permanent.report(rng)


def simulate_stream(
    survey: Survey,
    draw: Callable[[int, np.random.Generator], Mapping[str, Coded]],
    clients: int,
    *,
    rng: np.random.Generator,
    rows: int = ROWS,
) -> Iterator[ReportBatch]:
    """Any number of clients in bounded memory; `draw(n, rng)` gives the next n clients' answers."""
    crowd: Crowd | None = None
    for start in range(0, clients, rows):
        values = draw(min(rows, clients - start), rng)
        levels = {name: coded.levels for name, coded in values.items()}
        if crowd is None or crowd.levels != levels:
            crowd = Crowd(survey, levels)
        yield crowd.report({name: c.codes for name, c in values.items()}, rng=rng)


@dataclass(frozen=True, eq=False)
class PermanentResponses:
    """What clients keep from one report to the next: clear fields, and each part's own state."""

    survey: Survey
    cohort: UInt16s
    clear: tuple[Bytes, ...]
    parts: tuple[tuple[Kept, ...], ...]

    def report(self, rng: np.random.Generator) -> ReportBatch:
        """One report from each client, with fresh noise."""
        bits = tuple(tuple(kept.report(rng) for kept in parts) for parts in self.parts)
        origin = _origin(rng)
        return ReportBatch(self.survey, self.cohort, self.clear, bits, origin, trusted=True)


@dataclass(frozen=True, eq=False)
class Crowd:
    """A survey and the distinct answers that its clients give, hashed once."""

    survey: Survey
    levels: Mapping[str, Levels]

    def __post_init__(self) -> None:
        for name, levels in self.levels.items():
            question = self.survey.question(name)
            for level in levels:
                question.checked(level)

    @cached_property
    def _simulators(self) -> list[list[AnySimulator]]:
        """One for each part of each question."""
        return [
            [
                SIMULATORS.get(m.kind, EncodingPart)(q.protocol, i, self.levels.get(q.name, ()))
                for i, m in enumerate(q.protocol.mechanisms)
            ]
            for q in self.survey.questions
        ]

    def report(
        self, codes: Codes, *, rng: np.random.Generator, secrets: Bytes | None = None
    ) -> ReportBatch:
        """One report from each client; codes are indices into `levels`."""
        if secrets is not None:
            return self.permanent(codes, rng=rng, secrets=secrets).report(rng)
        cohort, clear, bits = self._by_part(
            codes, None, rng, lambda simulator, clients: simulator.once(clients, rng)
        )
        return ReportBatch(self.survey, cohort, clear, bits, _origin(rng), trusted=True)

    def permanent(
        self, codes: Codes, *, rng: np.random.Generator, secrets: Bytes | None = None
    ) -> PermanentResponses:
        """What each client keeps, before any fresh noise."""
        columns = self._by_part(
            codes, secrets, rng, lambda simulator, clients: simulator.keep(clients, rng)
        )
        return PermanentResponses(self.survey, *columns)

    def _by_part(
        self,
        codes: Codes,
        secrets: Bytes | None,
        rng: np.random.Generator,
        encode: Callable[[AnySimulator, Clients], T],
    ) -> tuple[UInt16s, tuple[Bytes, ...], tuple[tuple[T, ...], ...]]:
        """Cohorts, clear fields, and what `encode` makes of each part of each question."""
        n = _number_of_clients(codes, secrets)
        questions = self.survey.questions
        each: Iterable[Bytes]
        if secrets is None:
            cohort = rng.integers(0, self.survey.cohorts, n, dtype=np.uint16)
            # Drawn between the parts of one question and the next: a seed's reports depend on it.
            each = (drawn_fields(q.protocol, n, rng) for q in questions)
        else:
            cohort, each = fields_of_secrets(self.survey, secrets)
        clear, made = [], []
        for question, simulators, fields in zip(questions, self._simulators, each, strict=True):
            answer = codes.get(question.name, np.full(n, NO_ANSWER, np.int32))
            crowd = Clients(answer, np.zeros(n, np.uint8), cohort, secrets)
            clear.append(fields)
            made.append(tuple(encode(s, s.own_view(crowd, fields)) for s in simulators))
        return cohort, tuple(clear), tuple(made)


def _origin(rng: np.random.Generator) -> str:
    """The seed that the generator was made from, so that a result can name it."""
    seed = getattr(rng.bit_generator.seed_seq, "entropy", None)
    return f"simulated, seed {seed}"


def _crowd_of(survey: Survey, values: Values) -> tuple[Crowd, dict[str, Int32s]]:
    frame: Any = values
    if hasattr(frame, "columns"):  # pandas or polars
        values = {str(name): frame[name].to_list() for name in frame.columns}
    if not isinstance(values, Mapping):
        if len(survey.questions) != 1:
            names = ", ".join(q.name for q in survey.questions)
            raise InputError(f"expected answers by question, a mapping of {names}")
        values = {survey.questions[0].name: values}
    coded = {str(name): Coded.of(v) for name, v in values.items()}
    crowd = Crowd(survey, {name: c.levels for name, c in coded.items()})
    return crowd, {name: c.codes for name, c in coded.items()}


def _number_of_clients(codes: Mapping[str, Int32s], secrets: Bytes | None) -> int:
    lengths = {name: len(code) for name, code in codes.items()}
    if secrets is not None:
        lengths["secrets"] = len(secrets)
    if len(set(lengths.values())) != 1:
        raise InputError(f"expected one answer a client for each question, got {lengths or 'none'}")
    return next(iter(lengths.values()))
