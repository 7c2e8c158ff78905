"""The model of subsets: likelihoods, covariances and sums agree with the mechanism."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest

from deniable import associate, decode, simulate
from deniable.analysis import count
from deniable.inference.models.base import Candidates, model_of
from deniable.inference.models.subset import SubsetModel
from deniable.kernels.array_types import Bytes, Floats
from deniable.mechanisms import Subset
from deniable.planning import clients_to_move, detectable
from deniable.results.joint import NO_ANSWER
from deniable.survey import Survey
from tests.surveys import make_survey

LETTERS = tuple("abcdefghi")
CHOICE = '[questions.{}]\nkind = "choice"\nepsilon = 1.5\noptions = {}\nmembers = {}\n'


def survey(options: int, members: int) -> Survey:
    letters = list(LETTERS[:options])
    asked = [CHOICE.format(name, letters, members) for name in "xy"]
    return make_survey("".join(asked), defaults=2)


def model_and_reports(options: int, members: int) -> tuple[Subset, SubsetModel, Bytes, Floats]:
    """The model with "no answer", every report, and P(report | category) of the mechanism."""
    question = survey(options, members).questions[0]
    mechanism = question.protocol.mechanisms[0]
    assert isinstance(mechanism, Subset)
    made = model_of(Candidates(question, mechanism.labels))
    assert isinstance(made, SubsetModel)
    model = replace(made, silent=NO_ANSWER)
    sets = list(combinations(range(options + 1), members))
    bits = np.array([[i in members for i in range(options + 1)] for members in sets])
    with_own, without = mechanism.subsets
    own = mechanism.support[1]
    chance = np.where(bits, own / with_own, (1 - own) / without)
    return mechanism, model, np.packbits(bits, axis=1, bitorder="little"), chance


SETTINGS = [(2, 1), (4, 2), (4, 4), (8, 3), (9, 2)]


@pytest.mark.parametrize(("options", "members"), SETTINGS)
def test_likelihoods_are_those_of_the_mechanism(options: int, members: int) -> None:
    _, model, reports, chance = model_and_reports(options, members)
    found = model.likelihood(reports, np.zeros(len(reports), int))
    rows = np.asarray(found.rows) * np.exp(np.asarray(found.log_scale))[:, None]
    assert rows == pytest.approx(chance, rel=1e-5)
    assert chance.sum(axis=0) == pytest.approx(np.ones(options + 1))


@pytest.mark.parametrize(("options", "members"), SETTINGS)
def test_means_and_covariances_are_those_of_all_reports(options: int, members: int) -> None:
    _, model, reports, chance = model_and_reports(options, members)
    bits = np.unpackbits(reports, axis=1, count=options + 1, bitorder="little").astype(float)
    parts = model.components()
    assert parts.contrast_variance is not None
    contrast = np.random.default_rng(1).normal(size=options + 1)
    contrast -= contrast.mean()
    for category in range(options + 1):
        weight = chance[:, category]
        mean = weight @ bits
        assert mean == pytest.approx(parts.theta(np.zeros(1, int))[0, category])
        variance = weight @ np.square((bits - mean) @ contrast)
        assert variance == pytest.approx(contrast**2 @ parts.contrast_variance[category])
        covariance = (bits * weight[:, None]).T @ bits - np.outer(mean, mean)
        others = [i for i in range(options + 1) if i != category]
        found = covariance[others[0], others[1]], covariance[category, others[0]]
        assert found == pytest.approx(model.pair_covariances)


def test_the_sum_of_all_options_has_the_error_of_no_answer() -> None:
    """All bits sum to w: the share of all options is 1 less that of "no answer"."""
    made = survey(4, 2)
    reports = simulate(made, {"x": ["a", "b", "c", "d", None] * 2000}, rng=1)
    marginal = decode(made, reports, "x")
    question = made.questions[0]
    model = model_of(Candidates(question, question.protocol.mechanisms[0].labels))
    share, error = model.silent_share(model.counter()(reports.column("x")), 0.05)
    assert 1 - float(marginal.estimate.sum()) == pytest.approx(share)
    assert marginal.detected.all()
    assert marginal.mass_found.standard_error == pytest.approx(error, rel=1e-6)


def test_tables_by_likelihood_and_by_counts_agree() -> None:
    made = survey(4, 1)
    rng = np.random.default_rng(3)
    x = rng.choice(["a", "b", "c", "d"], 30_000, p=[0.4, 0.3, 0.2, 0.1])
    y = np.where(rng.random(30_000) < 0.4, x, rng.choice(["a", "b", "c", "d"], 30_000))
    answers = {"x": [None if i % 5 == 0 else v for i, v in enumerate(x)], "y": y.tolist()}
    reports = simulate(made, answers, rng=rng)
    by_reports = associate(made, reports, ["x", "y"])
    by_counts = associate(made, count(made, reports, ["x", "y"]), ["x", "y"])
    assert by_reports.labels == by_counts.labels == ((*"abcd", NO_ANSWER), tuple("abcd"))
    off = np.abs(by_reports.table - by_counts.table) / by_reports.standard_error
    assert off.max() < 0.5
    assert by_counts.standard_error == pytest.approx(by_reports.standard_error, rel=0.1)


def test_everyone_answers_so_there_is_no_category_for_it() -> None:
    made = survey(4, 1)
    answers = {"x": ["a", "b", "c", "d"] * 500, "y": ["a", "a", "c", "d"] * 500}
    joint = associate(made, simulate(made, answers, rng=1), ["x", "y"])
    assert joint.labels == (tuple("abcd"), tuple("abcd"))


def test_planning_uses_the_subsets_probabilities() -> None:
    question = survey(4, 1).questions[0]
    p, q = question.protocol.mechanisms[0].support
    assert clients_to_move(question, 10_000, 0.01) == np.ceil(100 * (q - p) / (1 - p))
    bits = make_survey(CHOICE.format("x", list("abcd"), 1).replace("members = 1\n", ""))
    assert detectable(question, 10_000) < 0.75 * detectable(bits.questions[0], 10_000)
