"""A heavy string that nobody listed: intervals of joint tables cover all the same."""

from __future__ import annotations

from dataclasses import replace

import pytest
from experiments.from_counts import SETTINGS, population, trial

from deniable.analysis import associating
from deniable.reproduction.trials import TrialTable, coverage, generators

SETTING = replace(SETTINGS["h = 2, unlisted"], reports=10**6)
TRIALS = 6


def covered() -> float:
    """Of 216 cells, by the likelihood, with the heaviest of 60 Zipf strings unlisted."""
    found = []
    for rng in generators(3, TRIALS):
        crowd = population(SETTING, 0.3, rng)
        (joint,) = trial(SETTING, crowd, rng, (False,))
        found.append(TrialTable.of(crowd, joint))
    return coverage(found)[0]


def test_intervals_allow_for_what_nobody_listed(monkeypatch: pytest.MonkeyPatch) -> None:
    assert covered() > 0.9
    # The broken twin: errors as if Other were random strings.
    monkeypatch.setattr(associating, "widened", lambda shown, pulls, rest: shown)
    assert covered() < 0.9
