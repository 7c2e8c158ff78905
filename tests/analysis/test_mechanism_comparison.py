"""Mechanisms side by side: variances are those of estimates, and bounds are bounds."""

from __future__ import annotations

import numpy as np
import pytest

from deniable import decode, simulate
from deniable.analysis import compare_mechanisms
from deniable.analysis.mechanism_comparison import least_variance
from deniable.errors import InputError
from deniable.planning.recommend import OpenDesign, designs_for
from deniable.planning.thresholds import detectable


@pytest.mark.parametrize("collect", ["once", "repeatedly"])
@pytest.mark.parametrize("kind", ["boolean", "choice", "string"])
def test_no_mechanism_beats_the_lower_bound(kind: str, collect: str) -> None:
    table = compare_mechanisms(kind=kind, options=6, collect=collect, timed=False)
    assert all(row.variance >= row.bound * (1 - 1e-6) for row in table)
    assert all(row.liar >= 1 for row in table)
    repeated = [row.variance_30 < row.variance for row in table]
    assert all(repeated) if collect == "repeatedly" else not any(repeated)


def test_binary_response_reaches_the_bound() -> None:
    for row in compare_mechanisms(kind="boolean", timed=False):
        assert row.variance == pytest.approx(row.bound, rel=1e-6)


def test_the_bound_for_many_options_approaches_that_for_strings() -> None:
    many, strings = least_variance(1.0, 100_000), least_variance(1.0, None)
    assert many == pytest.approx(strings, rel=1e-3)
    assert least_variance(1.0, 4) < strings


def test_variance_is_that_of_estimates() -> None:
    """False alarms: variances of 100 estimates are within 0.6 to 1.5 of the truth but for 1e-3."""
    crowds, clients, epsilon = 100, 2_000, 2.0
    rng = np.random.default_rng(5)
    table = compare_mechanisms(kind="choice", options=3, epsilons=[epsilon], timed=False)
    for design in designs_for(OpenDesign("choice", "once", detectable), 3, False, 20, "a-z"):
        survey = design.draft(epsilon).survey()
        answers = np.array(["option 1", "option 2", "option 3", None], dtype=object)
        estimates = [
            decode(
                survey,
                simulate(survey, {"answer": rng.choice(answers, clients)}, rng=rng),
                "answer",
            ).estimate
            for _ in range(crowds)
        ]
        measured = clients * np.var(estimates, axis=0, ddof=1).mean()
        assert 0.6 < measured / table[f"{design.name}, ε = 2"].variance < 1.5


def test_times_are_measured() -> None:
    (row,) = compare_mechanisms(kind="boolean", epsilons=[1.0]).mechanisms
    assert 0 < row.encode_microseconds < 1e6
    assert 0 < row.decode_seconds < 100


def test_bad_arguments() -> None:
    with pytest.raises(InputError, match="at least 2 options"):
        compare_mechanisms(kind="choice", options=1, timed=False)
    with pytest.raises(InputError, match="kind must be"):
        compare_mechanisms(kind="chioce", timed=False)
