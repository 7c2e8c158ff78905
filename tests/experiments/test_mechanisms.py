"""Mechanisms side by side: bounds are bounds, and the figure shows present mechanisms."""

import json

import pytest
from experiments.mechanisms import DATA, least_variance, rows


def test_no_mechanism_beats_the_lower_bound() -> None:
    found = list(rows())
    bounds = {
        (row["question"], row["epsilon"]): row["variance"]
        for row in found
        if row["mechanism"] == "lower bound"
    }
    for row in found:
        assert row["variance"] >= 0.999999 * bounds.get((row["question"], row["epsilon"]), 0)
        assert row["liar"] >= 1
        if row["mechanism"] == "subset selection":
            assert row["variance"] == pytest.approx(bounds[row["question"], row["epsilon"]])


def test_the_bound_for_many_options_approaches_that_for_strings() -> None:
    many, strings = least_variance(1.0, 100_000), least_variance(1.0, None)
    assert many == pytest.approx(strings, rel=1e-3)
    assert least_variance(1.0, 4) < strings


def test_the_figure_shows_present_mechanisms() -> None:
    for kept, row in zip(json.loads(DATA.read_text()), rows(), strict=True):
        assert kept == pytest.approx(row), "run `python -m experiments.mechanisms`"
