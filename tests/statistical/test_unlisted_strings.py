"""Heavy strings that nobody listed: intervals of joint tables and their margins still cover.

`python -m experiments.joint_margins` measures the same in many settings.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest
from experiments.joint_margins import Setting, cover
from numpy.typing import NDArray

from deniable.inference.joint import unlisted
from deniable.inference.models import bloom

SETTING = Setting("string × choice", "heaviest", 64, 300_000, "counts")
SMALL = Setting("string × string", "30% spread", 64, 10_000, "counts")
TWO_HASHES = replace(SETTING, reports=300_000, made_from="reports", hashes=2)


@cache
def covers(setting: Setting, crowds: int) -> list[dict[str, NDArray[np.bool_]]]:
    """Return which intervals contain the truth, by crowd and column."""
    return [cover(setting, np.random.default_rng([31, crowd])) for crowd in range(crowds)]


def covered(setting: Setting, part: str, crowds: int) -> float:
    """Return the share of intervals of one part of the tables that contain the truth."""
    found = covers(setting, crowds)
    return float(np.mean(np.concatenate([each[part] for each in found])))


def test_margins_cover_from_counts() -> None:
    """About 300 margins of 16 crowds: less than .90 happens once in 1,000 runs."""
    assert covered(SETTING, "margins", 16) > 0.9


def test_margins_did_not_cover_by_the_former_rule() -> None:
    assert not covered(SETTING, "former", 16) > 0.9


def test_margins_and_other_cover_from_reports() -> None:
    """About 190 margins and 10 of Other: each limit is missed once in 1,000 runs or less."""
    assert covered(TWO_HASHES, "margins", 10) > 0.87
    assert not covered(TWO_HASHES, "former", 10) > 0.87
    assert covered(TWO_HASHES, "other", 10) > 0.6


def test_other_covers_in_a_small_crowd(monkeypatch: pytest.MonkeyPatch) -> None:
    """The shares of Other of 16 crowds, two each: 24 or fewer happen once in 1,000 runs."""
    assert covered(SMALL, "other", 16) > 24 / 32
    monkeypatch.setattr(unlisted, "_bias_of_other", lambda *_: 0.0)
    covers.cache_clear()
    assert not covered(SMALL, "other", 16) > 24 / 32


def test_other_does_not_cover_if_a_bit_may_be_set_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    """The likelihood of a random string, if a bit that two hashes choose counted twice."""

    def twice(bits: int, hashes: int) -> NDArray[Any]:
        ones = np.arange(bits + 1)
        chance = np.zeros((hashes + 1, hashes + 1, bits + 1))
        share = ones / bits
        chance[2] = [(1 - share) ** 2, 2 * share * (1 - share), share**2]
        return chance

    monkeypatch.setattr(bloom, "_random_bits", twice)
    monkeypatch.setitem(globals(), "covers", covers.__wrapped__)  # the cache has the other one
    assert not covered(TWO_HASHES, "other", 10) > 0.6
