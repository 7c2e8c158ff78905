"""A mechanism from outside: k-ary randomised response, defined and registered in this file alone.

A client reports its own option with probability q, and each other one with probability p. One class
says what the client does, another what its reports say of each option; everything else (surveys,
encoding, decoding, joint tables, tests of independence) is the package's.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import Self

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from deniable import ReportBatch, Survey, associate, count, decode, mechanisms
from deniable.columns import Column
from deniable.columns.batch import packed_numbers
from deniable.errors import InputError
from deniable.inference.marginal.bit_counts import BitCounts
from deniable.inference.marginal.closed_form import estimate_basic
from deniable.inference.marginal.detection import Correction
from deniable.inference.models import Candidates, CategoryModel, register
from deniable.inference.models.base import MODELS, Axis, Components, TableSettings
from deniable.inference.models.likelihood import Likelihood
from deniable.mechanisms.base import Settings
from deniable.mechanisms.noise import ONE, Noise
from deniable.mechanisms.number_mechanism import NumberMechanism, number_noise
from deniable.protocols import Single
from deniable.results import Marginal
from deniable.simulation import contingency, correlated, uniform, zipf
from deniable.survey import Question


@mechanisms.register
@dataclass(frozen=True, kw_only=True)
class KaryResponse(NumberMechanism):
    """One of the options, as its number."""

    options: tuple[str, ...]

    kind = "kary"
    question_kind = "choice"
    protocols = frozenset({"single"})

    @property
    def bound(self) -> int:
        return len(self.options)

    @property
    def labels(self) -> tuple[str, ...]:
        return self.options

    def number(self, token: str | None, cohort: int) -> int | None:
        return None if token is None else self.options.index(token)

    def encoding(self) -> Settings:
        return {"kind": self.kind, "options": list(self.options)}

    @classmethod
    def from_settings(cls, noise: Noise, settings: Settings) -> Self:
        return cls(noise=noise, options=tuple(settings.pop("options")), **settings)


@dataclass(frozen=True, eq=False)
class KaryModel(CategoryModel[BitCounts]):
    """P(number | option) is q for the option's own number, p for any other."""

    options: tuple[str, ...]
    p: float
    q: float

    @classmethod
    def of(cls, candidates: Candidates) -> KaryModel:
        noise = candidates.question.protocol.mechanisms[0].noise
        return cls(candidates.names, noise.p / ONE, noise.q / ONE)

    def counter(self) -> Callable[[Column], BitCounts]:
        return partial(count_numbers, len(self.options))

    def counts_from_bits(self, counts: BitCounts) -> BitCounts:
        return counts

    def marginal(self, counts: BitCounts, *, alpha: float, correction: Correction) -> Marginal:
        return estimate_basic(
            counts, self.p, self.q, alpha=alpha, correction=correction, labels=self.options
        )

    def fitted(
        self, question: str, count: Callable[[], BitCounts], settings: TableSettings
    ) -> tuple[KaryModel, Axis]:
        return self, Axis.whole(self.options)

    def likelihood(
        self,
        bits: NDArray[np.uint8],
        stratum: NDArray[np.integer],
    ) -> Likelihood:
        own = packed_numbers(bits)[:, None] == np.arange(len(self.options))
        rows = np.where(own, 1.0, self.p / self.q).astype(np.float32)
        return Likelihood(rows, np.full(len(rows), np.log(self.q)))

    def components(self) -> Components:
        k = len(self.options)
        theta = np.where(np.eye(k, dtype=bool), self.q, self.p)
        return Components(lambda strata: np.tile(theta, (len(strata), 1, 1)), np.eye(k), True)


def count_numbers(options: int, column: Column) -> BitCounts:
    """How often each number was sent."""
    sent = np.bincount(packed_numbers(column.bits), minlength=options)
    return BitCounts(sent[None], np.array([len(column)]))


register("kary", KaryModel)


# --- a survey and its reports --------------------------------------------------------------------

X, Y = tuple(f"x{i}" for i in range(5)), tuple(f"y{i}" for i in range(3))
TABLE = correlated(zipf(5), uniform(3), strength=0.5)
CLIENTS = 20_000


@cache
def survey() -> Survey:
    """Two questions; read back from its published form, as a client and an analyst would."""
    mechanisms = {
        "x": KaryResponse(noise=number_noise(1.5, len(X)), options=X),
        "y": KaryResponse(noise=number_noise(1.0, len(Y)), options=Y),
    }
    made = Survey(
        name="outside",
        version=1,
        owner="tests",
        description="a mechanism of our own",
        expires=dt.date(2999, 12, 31),
        collect="once",
        budget=3 * 10**9,
        questions=tuple(Question(q, "choice", "", Single(m)) for q, m in mechanisms.items()),
    )
    return Survey.from_json(made.canonical)


@cache
def reports(seed: int = 4) -> ReportBatch:
    """Every client's answers, encoded one by one by the mechanism itself."""
    rng = np.random.default_rng(seed)
    drawn = contingency(TABLE, x=X, y=Y).draw(CLIENTS, rng)
    rows = []
    for question in survey().questions:
        mechanism, values = question.protocol.mechanisms[0], drawn[question.name]
        rand = rng.bytes(mechanism.rand_size * CLIENTS)
        sent = b"".join(
            mechanism.encode(
                values.levels[code], cohort=0, secret=b"", rand=rand[4 * i : 4 * i + 4]
            )
            for i, code in enumerate(values.codes)
        )
        rows.append((np.frombuffer(sent, np.uint8).reshape(CLIENTS, mechanism.size),))
    clear = (np.empty((CLIENTS, 0), np.uint8),) * len(rows)
    return ReportBatch(survey(), np.zeros(CLIENTS, np.uint16), clear, tuple(rows))


def shuffled(rng: np.random.Generator) -> ReportBatch:
    """The same reports of each question, each beside a report of somebody else."""
    batch = reports()
    (x,), (y,) = batch.bits
    return replace(batch, bits=((x,), (y[rng.permutation(len(y))],)), trusted=True)


def farthest(found: NDArray[np.float64], truth: NDArray[np.float64], error: object) -> float:
    """The largest error in standard errors."""
    return float((np.abs(found - truth) / error).max())


# --- everything an analyst needs -----------------------------------------------------------------


def test_marginals() -> None:
    """Eight estimates within 4.5 standard errors: false alarm below 1e-4."""
    for question, truth in (("x", zipf(5)), ("y", uniform(3))):
        found = decode(survey(), reports(), question)
        assert farthest(found.estimate, truth, found.standard_error) < 4.5
        assert found.labels == (X if question == "x" else Y)
        assert found.detected.all()


@pytest.mark.parametrize("from_counts", [False, True])
def test_joint_table(from_counts: bool) -> None:
    """15 cells within 4.5 standard errors: false alarm below 2e-4."""
    source = count(survey(), reports(), ["x", "y"]) if from_counts else reports()
    joint = associate(survey(), source, ["x", "y"])
    assert joint.labels == (X, Y) and joint.converged
    assert farthest(joint.table, TABLE, joint.standard_error) < 4.5


@pytest.fixture
def wrong_probabilities() -> Iterator[None]:
    """The broken twin: a model that takes q for a quarter more than it is."""

    class Wrong(KaryModel):
        @classmethod
        def of(cls, candidates: Candidates) -> KaryModel:
            right = KaryModel.of(candidates)
            q = 1.25 * right.q
            return replace(right, q=q, p=(1 - q) / (len(right.options) - 1))

    register("kary", Wrong)
    yield
    register("kary", KaryModel)


@pytest.mark.usefixtures("wrong_probabilities")
def test_wrong_probabilities_are_seen() -> None:
    found = decode(survey(), reports(), "x")
    assert farthest(found.estimate, zipf(5), found.standard_error) > 4.5
    joint = associate(survey(), reports(), ["x", "y"])
    assert farthest(joint.table, TABLE, joint.standard_error) > 4.5


def test_independence_is_rejected_where_there_is_none() -> None:
    for method in ("score", "lrt"):
        assert associate(survey(), reports(), ["x", "y"]).test(method).p_value < 1e-6


def test_p_values_of_independent_answers_are_uniform() -> None:
    """30 shuffles of the same reports; Kolmogorov and Smirnov: false alarm 1e-3."""
    rng = np.random.default_rng(9)
    found = [associate(survey(), shuffled(rng), ["x", "y"]).test().p_value for _ in range(30)]
    assert stats.kstest(found, "uniform").pvalue > 1e-3
    # The broken twin: p-values of half the size, from a test with too little variance.
    assert stats.kstest(np.array(found) ** 2, "uniform").pvalue < 1e-2


def test_a_mechanism_without_a_model_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(MODELS, "kary")
    with pytest.raises(InputError, match="register one"):
        decode(survey(), reports(), "x")
