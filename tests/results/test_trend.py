"""Trends: one result for every verb, written as JSON in two layouts."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from deniable.analysis import compare
from deniable.errors import InputError
from deniable.results import Discovery, Result, Trend
from tests.results.samples import discovery, marginal

DAYS = ("2027-01-04", "2027-01-05")


def test_a_trend_of_marginals_is_written_as_arrays() -> None:
    trend = Trend("day", DAYS, (marginal(0.3), marginal(0.6)))
    data = json.loads(trend.to_json())
    assert data["kind"] == "Trend" and data["estimate"] == [[0.3, 0.7], [0.6, 0.4]]
    again = Result.from_json(trend.to_json())
    assert isinstance(again, Trend) and again.columns() == trend.columns()
    assert again.to_json() == trend.to_json()
    assert trend.columns()["value"] == ["b", "b", "a", "a"]
    assert np.allclose(again.parts[0].p_value, trend.parts[0].p_value)
    assert np.isnan(again.parts[0].detection_threshold), "what is not written is not known"


def test_a_trend_of_marginals_without_p_values_is_read() -> None:
    """Earlier versions did not write them."""
    trend = Trend("day", DAYS, (marginal(0.3), marginal(0.6)))
    data = json.loads(trend.to_json())
    del data["log_p_value"]
    again = Result.from_json(json.dumps(data))
    assert isinstance(again, Trend) and np.isnan(again.parts[0].p_value).all()
    assert compare(again).changed.tolist() == compare(trend).changed.tolist()


def test_a_trend_of_other_results_is_written_part_by_part() -> None:
    trend = Trend("week", DAYS, (discovery("cat"), discovery("dog", "cat")), {"2027-01-18": "no"})
    data = json.loads(trend.to_json())
    assert data["kind"] == "Series" and data["parts"][0]["paid"] == "all of them"
    again = Result.from_json(trend.to_json())
    assert isinstance(again, Trend) and again.columns() == trend.columns()
    assert again.skipped == trend.skipped and again.to_json() == trend.to_json()
    assert trend.columns()["period"] == [DAYS[0], DAYS[1], DAYS[1]]
    with pytest.raises(InputError, match="trend of marginals"):
        _ = trend.estimate


def test_parts_are_of_one_kind_and_one_per_period() -> None:
    with pytest.raises(InputError, match="one class"):
        Trend("day", DAYS, (marginal(0.3), discovery("cat")))
    with pytest.raises(InputError, match="each of 2 periods"):
        Trend("day", DAYS, (marginal(0.3),))
    assert Trend("day", (), ()).heading() == "0 days"


def test_a_discovery_keeps_the_keys_of_its_json() -> None:
    found = replace(discovery("cat"), truncation="beam")
    data = json.loads(found.to_json())
    assert (data["paid"], data["cut"]) == ("all of them", "beam")
    assert Discovery.from_json(found.to_json()).truncation == "beam"
