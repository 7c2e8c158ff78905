"""Predictions against simulation: thresholds within 10%, numbers found within their spread."""

from __future__ import annotations

import numpy as np
import pytest

from deniable.analysis import decode
from deniable.errors import InputError
from deniable.planning import (
    best_split,
    detectable,
    discoverable,
    expected_found,
    noise_sd,
    split_threshold,
)
from deniable.protocols import Alphabet
from deniable.simulation import Population, exponential, simulate
from deniable.survey import Survey

HEAD = """name = "plans"
version = 1
owner = "tests"
description = "tests"
expires = 2999-12-31
collect = "once"
"""


def survey(body: str) -> Survey:
    return Survey.from_toml(HEAD + body)


WORDS = tuple(f"w{i}" for i in range(100))


@pytest.mark.parametrize(
    "noise",
    ["epsilon = 4.39", "epsilon = 2.0", "p = 0.25\nq = 0.75\nhashes = 2\nbits = 128",
     "p = 0.1\nq = 0.6\nf = 0.25\nbits = 512"],
)  # fmt: skip
def test_known_dictionary(noise: str) -> None:
    s = survey(f'[questions.w]\nkind = "string"\n{noise}\n')
    rng = np.random.default_rng(3)
    population = Population(WORDS, exponential(100, 20.0))
    predicted = detectable(s.questions[0], 100_000, candidates=100)
    mechanism = s.questions[0].protocol.mechanisms[0]
    expected = expected_found(population.weights.tolist(), predicted, noise_sd(mechanism, 1e5))
    found = []
    for _ in range(6):
        reports = simulate(s, population.draw(100_000, rng), rng=rng)
        marginal = decode(s, reports, "w", WORDS)
        found.append(int(marginal.detected.sum()))
        assert marginal.detection_threshold == pytest.approx(predicted, rel=0.1)
    # A detection is a coin near the threshold: the mean of six counts has a spread of about 1.
    assert np.mean(found) == pytest.approx(expected, abs=4)


def test_choice_is_tested_against_its_options() -> None:
    s = survey('[questions.c]\nkind = "choice"\noptions = ["a", "b", "c"]\nepsilon = 1.0\n')
    rng = np.random.default_rng(4)
    marginal = decode(s, simulate(s, ["a"] * 50_000, rng=rng), "c")
    assert detectable(s.questions[0], 50_000) == pytest.approx(
        marginal.detection_threshold, rel=0.1
    )


def test_thresholds_fall_with_the_root_of_the_crowd() -> None:
    s = survey(
        '[questions.w]\nkind = "string"\nepsilon = 4.0\n[questions.w.dictionary]\n'
        'protocol = "prefixes"\nmax_length = 20\nalphabet = "a-z"\n'
    )
    q = s.questions[0]
    assert discoverable(q, 1e6) == pytest.approx(discoverable(q, 1e4) / 10)
    assert discoverable(q, 1e6, nats=10) < discoverable(q, 1e6)
    plain = survey('[questions.w]\nkind = "string"\nepsilon = 4.0\n')
    with pytest.raises(InputError, match="give it a dictionary"):
        discoverable(plain.questions[0], 1e6)


def test_best_split_beats_equal_thirds() -> None:
    letters = Alphabet("abcdefghijklmnopqrstuvwxyz0123456789.-_")
    best = best_split(4.394, 1e6, letters, 20)
    equal = split_threshold(4.394, (1, 1, 1), 1e6, letters, 20)
    assert best.threshold < 0.85 * equal
    assert sum(best.shares) == pytest.approx(1)
    assert best.shares[0] < best.shares[1], "grams are told apart from fewer clients"
