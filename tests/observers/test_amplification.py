"""Amplification by shuffling against exhaustive computation, known figures and attacks."""

from __future__ import annotations

import math
import sys
from collections import Counter, defaultdict
from itertools import product

import numpy as np
import pytest
from experiments.paper.audit import upper_limit

from deniable import amplified
from deniable.errors import InputError
from deniable.mechanisms.local_hash import LocalHash
from deniable.mechanisms.noise import Noise
from deniable.mechanisms.options import Choice
from deniable.observers import amplification
from deniable.observers.amplification import shuffled_epsilon, smallest_crowd
from deniable.observers.clone_sums import numerical_delta, numerical_epsilon
from deniable.observers.clones import exponential_delta, exponential_epsilon
from deniable.privacy import binary_response, total_variation
from tests.surveys import make_survey

Distribution = dict[int, float]


def response(k: int, epsilon: float) -> dict[int, Distribution]:
    """Return k-ary randomised response: the probabilities of outputs, by value."""
    rest = 1 / (math.exp(epsilon) + k - 1)
    return {x: {y: rest * (math.exp(epsilon) if x == y else 1) for y in range(k)} for x in range(k)}


def unary(k: int, p: float, q: float) -> dict[int, Distribution]:
    """Return one noisy bit per option: the probabilities of outputs, by value."""
    return {
        x: {
            sum(bit << i for i, bit in enumerate(bits)): math.prod(
                (q if bit else 1 - q) if i == x else (p if bit else 1 - p)
                for i, bit in enumerate(bits)
            )
            for bits in product((0, 1), repeat=k)
        }
        for x in range(k)
    }


def shuffled(clients: list[Distribution]) -> dict[tuple[tuple[int, int], ...], float]:
    """Return the distribution of the multiset of all clients' outputs."""
    result: dict[tuple[tuple[int, int], ...], float] = {(): 1.0}
    for client in clients:
        following: dict[tuple[tuple[int, int], ...], float] = defaultdict(float)
        for counts, weight in result.items():
            for output, probability in client.items():
                more = Counter(dict(counts))
                more[output] += 1
                following[tuple(sorted(more.items()))] += weight * probability
        result = following
    return result


def exact_delta(values: dict[int, Distribution], crowd: int, epsilon: float) -> float:
    """Return δ of the worst neighbours, with every combination of the other clients' values."""
    worst = 0.0
    others = {tuple(sorted(rest)) for rest in product(values, repeat=crowd - 1)}
    for rest in others:
        known = [values[x] for x in rest]
        first, second = shuffled([values[0], *known]), shuffled([values[1], *known])
        excess = (first[o] - math.exp(epsilon) * second.get(o, 0.0) for o in first)
        worst = max(worst, sum(max(0.0, e) for e in excess))
    return worst


def variation_of(values: dict[int, Distribution]) -> float:
    """Return the total variation between the first two values."""
    return sum(max(0.0, values[0][y] - values[1][y]) for y in values[0])


RANDOMISERS = [
    (response(2, 1.0), 1.0),
    (response(3, 1.5), 1.5),
    (response(4, 0.7), 0.7),
    (unary(2, 0.25, 0.5), math.log(3)),
]


@pytest.mark.parametrize("crowd", [2, 3, 5])
@pytest.mark.parametrize(("values", "local"), RANDOMISERS)
def test_bounds_are_never_below_exhaustive_computation(
    values: dict[int, Distribution], local: float, crowd: int
) -> None:
    beta = variation_of(values)
    for share in (0.1, 0.4, 0.8):
        exact = exact_delta(values, crowd, share * local)
        numerical = numerical_delta(share * local, local, beta, crowd)
        assert exact <= numerical <= exponential_delta(share * local, local, beta, crowd)


def test_the_bound_is_almost_exact_for_binary_response() -> None:
    # All outputs of the others are clones if they answer the opposite: nothing is given away.
    values = response(2, 1.0)
    exact = exact_delta(values, 5, 0.3)
    assert exact <= numerical_delta(0.3, 1.0, variation_of(values), 5) < 1.6 * exact


def test_a_bound_that_counts_too_many_clones_is_caught() -> None:
    # The broken twin: twice as many clients as there are.
    values = response(2, 1.0)
    assert exact_delta(values, 3, 0.5) > numerical_delta(0.5, 1.0, variation_of(values), 6)


@pytest.mark.parametrize(
    ("local", "crowd", "expected"),
    [
        (1, 10**6, 0.027),
        (2, 10**6, 0.071),
        (4.39, 10**6, 0.27),
        (1, 10**5, 0.082),
        (2, 10**5, 0.21),
        (4.39, 10**5, 0.69),
    ],
)
def test_closed_form(local: float, crowd: int, expected: float) -> None:
    value = shuffled_epsilon(local, crowd, 1e-8)
    assert value == pytest.approx(expected, rel=0.02)
    beta = total_variation([binary_response(local)])
    exponential = exponential_epsilon(local, beta, crowd, 1e-8)
    assert numerical_epsilon(local, beta, crowd, 1e-8) < exponential < value / 3


def test_numerical_bound_of_a_known_case() -> None:
    beta = total_variation([binary_response(1.0)])
    assert numerical_epsilon(1.0, beta, 10**4, 1e-9) == pytest.approx(0.0622, abs=0.0002)
    assert shuffled_epsilon(1.0, 10**4, 1e-9) == pytest.approx(0.2528, abs=0.0001)


def test_a_hundred_million_reports_need_no_large_lattice() -> None:
    beta = total_variation([binary_response(4.39)])
    assert numerical_epsilon(4.39, beta, 10**8, 1e-8) == pytest.approx(0.00496, rel=0.01)


@pytest.mark.parametrize("crowd", [1, 2, 100])
def test_small_crowds_gain_nothing_at_large_epsilon(crowd: int) -> None:
    assert numerical_epsilon(5.0, 0.98, crowd, 1e-8) == 5.0
    assert shuffled_epsilon(5.0, crowd, 1e-8) is None


def test_extreme_losses_do_not_fail() -> None:
    for local in (0.01, 30.0, 300.0):
        beta = total_variation([binary_response(local)])
        assert 0 < numerical_epsilon(local, beta, 10**5, 1e-8) <= local


def test_attacks_on_shuffled_reports_stay_below_the_bound() -> None:
    """The best test between two values, given all other values, never beats (ε, δ).

    False-alarm rate: 4 · 10⁻⁴ (Clopper–Pearson limits at 10⁻⁴ each).
    """
    rng, crowd, local, runs = np.random.default_rng(5), 1000, 1.0, 200_000
    yes = math.exp(local) / (1 + math.exp(local))
    # All others say no; the observer sees how many yes there are.
    others = rng.binomial(crowd - 1, 1 - yes, size=(2, runs))
    counts = others + (rng.random((2, runs)) < [[yes], [1 - yes]])
    beta = total_variation([binary_response(local)])
    for delta in (0.01, 0.05):
        epsilon = numerical_epsilon(local, beta, crowd, delta)
        for quantile in (0.8, 0.95):
            cut = np.quantile(counts[0], quantile)
            first, second = (int((row >= cut).sum()) for row in counts)
            low = 1 - upper_limit(runs - first, runs, 1e-4)
            high = upper_limit(second, runs, 1e-4)
            assert low <= math.exp(epsilon) * high + delta


def test_the_attack_succeeds_on_a_collector_that_does_not_shuffle() -> None:
    # The broken twin: the observer sees the client's own report beside the others.
    rng, runs, local = np.random.default_rng(6), 200_000, 1.0
    yes = math.exp(local) / (1 + math.exp(local))
    first, second = (int((rng.random(runs) < p).sum()) for p in (yes, 1 - yes))
    beta = total_variation([binary_response(local)])
    epsilon = numerical_epsilon(local, beta, 1000, 0.01)
    low = 1 - upper_limit(runs - first, runs, 1e-4)
    assert low > math.exp(epsilon) * upper_limit(second, runs, 1e-4) + 0.01


# --- mechanisms -----------------------------------------------------------------------------------


def test_total_variation_of_mechanisms_equals_enumeration() -> None:
    noise = Noise.of(p=0.25, q=0.5)
    choice = Choice(noise=noise, options=("a", "b", "c"))
    values = unary(3, 0.25, 0.5)
    assert total_variation([choice.worst_outcomes]) == pytest.approx(variation_of(values), abs=1e-7)
    hashed = LocalHash.spending(1.5, families=1)
    q, p = hashed.noise.q / 2**32, hashed.noise.p / 2**32
    assert total_variation([hashed.worst_outcomes]) == pytest.approx(q - p, abs=1e-7)


def test_total_variation_of_several_parts_equals_enumeration() -> None:
    parts = [response(3, 1.0), unary(3, 0.25, 0.5)]
    joint = {
        x: {100 * a + b: parts[0][x][a] * parts[1][x][b] for a in parts[0][0] for b in parts[1][0]}
        for x in (0, 1)
    }
    outcomes = [[(part[0][y], part[1][y]) for y in part[0]] for part in parts]
    assert total_variation(outcomes) == pytest.approx(variation_of(joint), abs=1e-7)


def test_many_parts_are_bounded_by_a_coupling() -> None:
    outcomes = [binary_response(0.1 + 0.01 * i) for i in range(40)]
    variation = total_variation(outcomes)
    assert 0.5 < variation < 1


# --- surveys --------------------------------------------------------------------------------------

QUESTIONS = """
[questions.dark_mode]
kind = "boolean"
epsilon = 1
[questions.page]
kind = "string"
epsilon = 2
"""


def test_questions_add_up_and_clear_fields_divide_the_crowd() -> None:
    survey = make_survey(QUESTIONS)
    bound = amplified(survey, 1_000_000)
    assert bound.local == pytest.approx(3.0, abs=1e-6)
    assert 14_500 < bound.crowd < 1_000_000 / survey.cohorts
    alone = numerical_epsilon(3.0, total_variation([binary_response(3.0)]), bound.crowd, 9e-9)
    assert bound.epsilon < alone  # the total variation is smaller than that of the worst case
    assert "of which at least 14," in str(bound) and bound.method == "numerical"


def test_a_crowd_is_smaller_than_stated_only_with_the_stated_probability() -> None:
    # False-alarm rate below 10⁻⁴: 10⁵ draws of an event of probability at most 10⁻³.
    draws = 1 + np.random.default_rng(1).binomial(999, 1 / 8, 10**5)
    assert (draws < smallest_crowd(1000, 1 / 8, 1e-3)).sum() < 140


def test_small_batches_have_no_amplification() -> None:
    bound = amplified(make_survey(QUESTIONS), 1001)
    assert (bound.epsilon, bound.delta, bound.method) == (bound.local, 0.0, "none")
    assert str(bound).endswith("as without shuffling")


def test_without_numpy_the_exponential_bound_is_used_and_named(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delitem(sys.modules, "deniable.observers.clone_sums")
    monkeypatch.setitem(sys.modules, "numpy", None)
    survey = make_survey(QUESTIONS.split("[questions.page]")[0])
    bound = amplified(survey, 10**6)
    assert bound.method == "exponential" and "exponential bound" in str(bound)
    assert bound.epsilon < 0.0055 < bound.closed_form


@pytest.mark.parametrize(
    "wrong", [{"reports": 0}, {"reports": 1.5}, {"delta": 0.0}, {"delta": 1.0}]
)
def test_arguments_out_of_range(wrong: dict[str, float]) -> None:
    with pytest.raises(InputError):
        amplified(make_survey(QUESTIONS), **{"reports": 1000, **wrong})


def test_nothing_is_said_about_reports_that_are_collected_repeatedly() -> None:
    with pytest.raises(InputError, match="collected once"):
        amplified(make_survey(QUESTIONS.split("[questions.page]")[0], collect="repeatedly"), 10**6)


def test_module_has_a_default_delta() -> None:
    assert amplification.DEFAULT_DELTA == 1e-8
