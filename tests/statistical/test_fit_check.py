"""Honest crowds are seldom called suspicious, and faulty ones are.

Each crowd may be called suspicious with probability .01. Of 60 crowds, more than 5 are with
probability below 6e-5 (binomial); 12 cases: below 8e-4 together. The twins: every report of an
honest crowd is sent twice; reports of the same clients are taken for reports of different clients.
"""

import numpy as np
import pytest
from experiments.fit_check import (
    FAULTS,
    LARGE,
    WRONG,
    Honest,
    alarms,
    answers_of,
    check,
    sent_twice,
    survey_of,
    wrong_parameters,
)

from deniable import simulate
from deniable.inference import fit_check

CROWDS, MOST = 60, 5
BLOOM, PAPER, HASH = "Bloom, ε = 4", "Bloom, h = 2", "local hash, ε = 4"


@pytest.mark.parametrize("population", ["60%", "unlisted", "nobody"])
@pytest.mark.parametrize("name", [BLOOM, HASH, "choice"])
def test_honest_crowds_are_seldom_suspicious(name, population):
    assert alarms(Honest(name, 0, 1_000, population, CROWDS, 7)) <= MOST


@pytest.mark.parametrize("name", [BLOOM, "choice", "boolean"])
def test_reports_of_the_same_clients_are_no_reason_for_suspicion(name):
    assert alarms(Honest(name, 30, 3_000, "one value", CROWDS, 8)) <= MOST


def test_clients_must_not_be_taken_for_as_many_as_their_reports(monkeypatch):
    monkeypatch.setattr(fit_check, "MOST_REPEATS", 1)
    assert alarms(Honest(BLOOM, 30, 3_000, "one value", CROWDS, 8)) > MOST


def test_the_bound_can_be_exceeded():
    rng, survey = np.random.default_rng(8), survey_of(BLOOM)
    suspicious = 0
    for crowd in range(CROWDS):
        batch = simulate(survey, {"word": answers_of(survey, "Zipf", 1_000, crowd, rng)}, rng=rng)
        suspicious += check(survey, sent_twice(1.0)(batch), crowd).suspicious
    assert suspicious > MOST


@pytest.mark.parametrize("name", [BLOOM, PAPER, HASH])
def test_every_fault_is_found_in_100_000_reports(name):
    # p-values are below 1e-10 on several seeds, far from the level .001.
    rng, survey = np.random.default_rng(9), survey_of(name)
    batch = simulate(survey, {"word": answers_of(survey, "Zipf", LARGE, 0, rng)}, rng=rng)
    assert not check(survey, batch).suspicious
    faulty = {fault: make(batch) for fault, make in FAULTS.items()}
    for whose, collect, fault in WRONG:
        if (whose, collect) == (name, "once"):
            faulty[fault] = wrong_parameters(batch, name, fault, 10)
    assert [fault for fault, reports in faulty.items() if not check(survey, reports).problems] == []
