"""What an attacker guesses: exact, simulated, and bounded probabilities agree."""

from __future__ import annotations

import math
from itertools import combinations, product
from typing import Any

import numpy as np
import pytest

from deniable import guessed
from deniable.errors import InputError
from deniable.mechanisms import Subset
from deniable.observers import guessing
from deniable.observers.guessing import _simulated, evidence_of, guess_bound
from deniable.survey import Survey
from tests.surveys import make_survey

CHOICE = """
[questions.editor]
kind = "choice"
options = ["a", "b", "c", "d"]
epsilon = {epsilon}
"""


def choice(epsilon: float = 2.0, **header: object) -> Survey:
    return make_survey(CHOICE.format(epsilon=epsilon), **header)


def enumerated(survey: Survey, weights: list[float], reports: int) -> float:
    """Return Σ over all reports of the largest weight × likelihood."""
    noise = survey.questions[0].protocol.mechanisms[0].noise
    flip, p, q = (x / 2**32 for x in (noise.flip, noise.p, noise.q))

    def chance(ones: int, is_set: bool) -> float:
        kept = 1 - flip if is_set else flip
        fresh = [x**ones * (1 - x) ** (reports - ones) for x in (p, q)]
        return math.comb(reports, ones) * ((1 - kept) * fresh[0] + kept * fresh[1])

    return sum(
        max(
            weight * math.prod(chance(ones, i == x) for i, ones in enumerate(counts))
            for x, weight in enumerate(weights)
        )
        for counts in product(range(reports + 1), repeat=len(weights))
    )


@pytest.mark.parametrize("weights", [[1, 1, 1, 1], [5, 3, 1, 1], [90, 5, 4, 1]])
@pytest.mark.parametrize("reports", [1, 3])
@pytest.mark.parametrize("collect", ["once", "repeatedly"])
def test_exact_guesses_equal_enumeration(weights: list[float], reports: int, collect: str) -> None:
    survey = choice(3.0, collect=collect)
    found = guessed(survey, "editor", weights, reports=(reports,))
    shares = [w / sum(weights) for w in weights]
    assert found.exact and found.without == max(shares)
    assert found.after[reports] == pytest.approx(enumerated(survey, shares, reports), abs=1e-9)


def test_simulation_agrees_with_the_exact_value() -> None:
    # Five standard errors of 4,000 trials; the seed is fixed.
    survey = choice(3.0)
    evidence = evidence_of(survey.questions[0].protocol.mechanisms[0], 2)
    assert evidence is not None
    weights = np.array([0.4, 0.3, 0.2, 0.1])
    simulated = _simulated([evidence], weights, np.random.default_rng(1))
    assert simulated == pytest.approx(evidence.best_guess(weights), abs=0.02)


def test_local_hashing_agrees_with_its_formula() -> None:
    """With g numbers, the value is one of about n/g that share the reported number."""
    question = (
        '[questions.page]\nkind = "string"\nmechanism = "localhash"\nepsilon = 3\n'
        '[questions.page.dictionary]\nprotocol = "prefixes"\nmax_length = 4\nalphabet = "a-z"\n'
        "levels = [4]\n"
    )
    survey = make_survey(question)
    mechanism = survey.questions[0].protocol.mechanisms[0]
    n, g, q = 50, mechanism.outcomes, mechanism.noise.q / 2**32
    alone = (1 - (1 - 1 / g) ** n) * g / n  # E[1/(1 + number of others that share the hash)]
    found = guessed(survey, "page", n)
    assert found.after[1] == pytest.approx(q * alone, abs=0.03) and not found.exact


def test_no_attacker_beats_the_bound_of_epsilon() -> None:
    survey = make_survey('[questions.page]\nkind = "string"\nepsilon = 3\n', collect="repeatedly")
    found = guessed(survey, "page", 100, reports=(1, 30, 300))
    uniform = np.full(100, 0.01)
    for n, share in found.after.items():
        loss = survey.questions[0].protocol.mechanisms[0].loss_after(n)
        assert 0.01 < share <= guess_bound(uniform, loss, 0.0) + 0.01
    total = guess_bound(uniform, survey.loss.in_total, 0.0)
    assert found.after[1] < found.after[30] < found.after[300] + 0.01 <= total + 0.01


def test_one_time_noise_wears_off_and_permanent_noise_does_not() -> None:
    once, permanent = choice(2.0), choice(2.0, collect="repeatedly")
    assert guessed(once, "editor", reports=(365,)).after[365] > 0.999
    after = guessed(permanent, "editor", reports=(365, 1)).after
    assert after[1] < after[365] < guess_bound(np.full(4, 0.25), 2.0, 0.0) + 1e-9


def test_the_bound_is_reached_by_k_ary_response() -> None:
    for k, epsilon in ((2, 1.0), (5, 2.0)):
        uniform = np.full(k, 1 / k)
        reached = math.exp(epsilon) / (math.exp(epsilon) + k - 1)
        assert guess_bound(uniform, epsilon, 0.0) == pytest.approx(reached)


def test_a_mechanism_that_is_not_known_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(guessing, "evidence_of", lambda *_: None)
    found = guessed(choice(2.0), "editor")
    assert found.after[1] == pytest.approx(math.exp(2) / (math.exp(2) + 3)) and not found.exact


def test_the_shuffled_store_tells_almost_nothing() -> None:
    found = guessed(choice(2.0), "editor")
    assert 0.25 < found.store < 0.26 < found.after[1]
    assert str(found).startswith("editor: if 4 values are equally common, the best attacker names")


@pytest.mark.parametrize("prior", [3, [1, 2], [0, 0, 0, 0], [1, -1, 1, 1], [1, 1, 1, math.nan]])
def test_priors_that_do_not_fit(prior: object) -> None:
    with pytest.raises(InputError):
        guessed(choice(), "editor", prior)  # type: ignore[arg-type]


@pytest.mark.parametrize("members", [1, 2])
def test_subsets_agree_with_enumeration(members: int) -> None:
    """Five standard errors of 4,000 trials; the seed is fixed."""
    extra = f'mechanism = "subset"\nmembers = {members}\n'
    survey = make_survey(CHOICE.format(epsilon=2.0) + extra)
    mechanism = survey.questions[0].protocol.mechanisms[0]
    assert isinstance(mechanism, Subset)
    weights = [0.4, 0.3, 0.2, 0.1]
    with_own, without = mechanism.subsets
    own = mechanism.support[1]
    best = 0.0
    for subset in combinations(range(5), members):
        chances = [own / with_own if x in subset else (1 - own) / without for x in range(4)]
        best += max(w * c for w, c in zip(weights, chances, strict=True))
    found = guessed(survey, "editor", weights)
    assert found.after[1] == pytest.approx(best, abs=0.03)
    assert found.after[1] < guess_bound(np.array(weights), mechanism.loss.per_report, 0.0)


def test_permanent_noise_limits_what_many_hashed_reports_tell() -> None:
    """Many reports reveal the kept number, which is the own one with probability κ at most."""
    question = '[questions.word]\nkind = "string"\nmechanism = "localhash"\nvalues = 5\n'
    survey = make_survey(
        question + "epsilon = 2.0\nepsilon_per_report = 1.0\n", collect="repeatedly"
    )
    noise = survey.questions[0].protocol.mechanisms[0].noise
    once, often = (guessed(survey, "word", 2, reports=(1, 3000)).after[n] for n in (1, 3000))
    kept, flipped = noise.kept / 2**32, noise.flip / 2**32
    # Two values have different numbers with probability 4/5; then the more likely one is named.
    limit = 0.5 * 0.2 + 0.8 * (0.5 + 0.5 * (kept - flipped))
    assert once < often == pytest.approx(limit, abs=0.03)


@pytest.mark.parametrize("reports", [7, (0,), ("1",)])
def test_numbers_of_reports_are_checked(reports: Any) -> None:
    with pytest.raises(InputError, match="whole numbers of at least 1"):
        guessed(choice(), "editor", reports=reports)


def test_a_prior_by_name_is_refused_in_words() -> None:
    with pytest.raises(InputError, match="in the order of the options"):
        guessed(choice(), "editor", {"a": 3})  # type: ignore[arg-type]
