"""A heavy string that nobody listed: intervals of joint tables cover all the same."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from experiments.from_counts import SETTINGS, population, trial

from deniable.analysis import associating
from deniable.reproduction.trials import TrialTable, coverage, generators

SETTING = replace(SETTINGS["h = 2, unlisted"], reports=10**6)
TRIALS = 6


def test_intervals_allow_for_what_nobody_listed(monkeypatch: pytest.MonkeyPatch) -> None:
    """216 cells by the likelihood, with the heaviest of 60 Zipf strings unlisted."""
    widened, narrow = associating.widen_errors, []

    def recorded(shown: Any, *arguments: Any) -> Any:
        narrow.append(shown)
        return widened(shown, *arguments)

    monkeypatch.setattr(associating, "widen_errors", recorded)
    tables, twins = [], []
    for rng in generators(3, TRIALS):
        crowd = population(SETTING, 0.3, rng)
        (joint,) = trial(SETTING, crowd, rng, (False,))
        tables.append(TrialTable.of(crowd, joint))
        # The broken twin: errors as if Other were random strings.
        shown = narrow.pop()
        interval = shown.intervals()
        twin = replace(
            joint, standard_error=shown.standard_errors, low=interval.low, high=interval.high
        )
        twins.append(TrialTable.of(crowd, twin))
    assert coverage(tables)[0] > 0.9
    assert coverage(twins)[0] < 0.9
