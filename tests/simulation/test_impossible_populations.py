"""Populations that cannot be, or that would not fit into memory."""

from __future__ import annotations

import pytest

from deniable.errors import InputError
from deniable.simulation import correlated, from_spec, uniform
from deniable.simulation.number_populations import numbers_from_spec


@pytest.mark.parametrize(
    "spec, words",
    [("zipf:n=1e12", "n must be a whole number from 1 to 10,000,000, not 1000000000000"),
     ("uniform:n=2.5", "n must be a whole number"), ("step:n=8", "n must be a whole number from 9"),
     ("zipf:n=10000000,length=11", "random strings of length 11 have more than 100,000,000"),
     ("zipf:length=1e300", "more than 100,000,000"), ("zipf:length=1.5", "length must be a whole"),
     ("zipf:s=-1", "s must be a number from 0, not -1"), ("geometric:p=-1", "p must be a number"),
     ("geometric:p=1", "p must be below 1"), ("power:floor=-1", "floor must be a number from 0"),
     ("power:exponent=-1", "exponent must be"), ("exponential:scale=0", "scale must be above 0")],
)  # fmt: skip
def test_impossible_shapes_are_refused_before_memory_is_taken(spec: str, words: str) -> None:
    with pytest.raises(InputError, match=f"^{spec}: .*{words}"):
        from_spec(spec, 1)


@pytest.mark.parametrize("spec", ["normal:sd=-5", "lognormal:sigma=-1", "lognormal:median=-1"])
def test_impossible_numbers_are_refused(spec: str) -> None:
    with pytest.raises(InputError, match=f"^{spec}: .* must be a number from 0"):
        numbers_from_spec(spec)
    with pytest.raises(InputError, match="low must not be above high, not 5 and 1"):
        numbers_from_spec("uniform:low=5,high=1")


def test_tables_beyond_memory_are_refused() -> None:
    with pytest.raises(InputError, match="at most 100,000,000 cells, not 10,000,000,000"):
        correlated(uniform(100_000), uniform(100_000), strength=0.5)
