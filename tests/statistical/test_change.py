"""The test of change between two periods; `python -m experiments.changes` has the full table.

Bit counts of two periods are drawn directly, with the permanent noise of clients that answer in
both.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from experiments.changes import TwoPeriods, contains
from experiments.repeated_coverage import Crowds

from deniable.analysis import compare
from deniable.kernels.array_types import Mask
from deniable.results import Marginal, Trend

CROWDS = 1000


def rejections(two: TwoPeriods, crowds: int = CROWDS, narrowed: float = 1.0) -> float:
    """Return the share of crowds in which some value is said to have changed.

    narrowed : factor of the standard errors
    """
    rng, found = np.random.default_rng(8), []
    for _ in range(crowds):
        trend = two.draw(rng)
        parts = [
            replace(part, standard_error=narrowed * part.standard_error) for part in trend.marginals
        ]
        found.append(changed(parts).any())
    return float(np.mean(found))


@pytest.mark.parametrize(("epsilon", "repeats"), [(4.0, 30), (8.0, 7), (2.0, 1)])
def test_size(epsilon: float, repeats: int) -> None:
    """A boolean that did not change: .05 ± .023 rejections, one false alarm in 1,000 seeds.

    Clients that are the same in both periods make the test cautious. The twin, with errors that are
    too small by 30%, finds changes that are not there.
    """
    crowds = Crowds.of("boolean", epsilon)
    assert abs(rejections(TwoPeriods(crowds, repeats, 0.0)) - 0.05) < 0.023
    assert rejections(TwoPeriods(crowds, repeats, 1.0), 300) < 0.09
    assert rejections(TwoPeriods(crowds, repeats, 0.0), 300, 0.7) > 0.1


def test_family_and_intervals() -> None:
    """Six options: any false change in at most .09 of 300 crowds, intervals cover in .93 or more.

    Fewer than one false alarm in 1,000 seeds.
    """
    rng, two = np.random.default_rng(9), TwoPeriods(Crowds.of("choice", 4.0), 7, 0.0)
    inside = [contains(compare(two.draw(rng)), np.zeros(6)).mean() for _ in range(300)]
    assert np.mean(inside) > 0.93
    assert rejections(two, 300) <= 0.09


def test_power() -> None:
    """A change by three standard errors is found in about .85 of the crowds."""
    two = TwoPeriods(Crowds.of("boolean", 8.0), 30, 0.0, shift=0.046)
    assert rejections(two, 300) > 0.75


def changed(parts: Sequence[Marginal]) -> Mask:
    """Return which values changed from the first to the second part."""
    return compare(Trend("day", ("2027-01-04", "2027-01-05"), tuple(parts))).changed
