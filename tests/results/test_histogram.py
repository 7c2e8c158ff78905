"""Histograms: mean and quantiles by hand, JSON, rows, and what is unknown."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from deniable.errors import InputError
from deniable.results import Histogram, Result, Trend
from deniable.results.histogram import rounded_together
from tests.results.samples import histogram


def exact(shares: list[float], edges: list[float], error: float = 0.0) -> Histogram:
    """Return a histogram of these shares, with independent errors."""
    sample = histogram()
    given = np.array(shares)
    flags = np.ones(len(shares), bool)
    return replace(
        sample,
        **dict.fromkeys(("estimate", "low", "high", "p_value", "log_p_value"), given),
        standard_error=np.full(len(shares), error),
        detected=flags,
        identified=flags,
        labels=tuple(map(str, range(len(shares)))),
        edges=np.array(edges),
        covariance=error**2 * np.eye(len(shares)),
    )


def test_mean_and_quantiles_of_known_shares() -> None:
    found = exact([0.25, 0.5, 0.25], [0, 1, 3, 7])
    assert found.mean.estimate == pytest.approx(0.25 * 0.5 + 0.5 * 2 + 0.25 * 5)
    # Without noise, the interval is the range of means that the bins allow.
    assert (found.mean.low, found.mean.high) == (pytest.approx(1.25), pytest.approx(3.5))
    assert found.mean.discretisation == pytest.approx((3.5 - 1.25) / 2)
    assert found.median.estimate == pytest.approx(2.0)
    assert (found.median.low, found.median.high) == (1.0, 3.0)
    assert found.quantile(0.9).estimate == pytest.approx(3 + 4 * 0.6)


def test_clients_without_an_answer_do_not_change_the_mean() -> None:
    some, every = exact([0.1, 0.2, 0.1], [0, 1, 3, 7]), exact([0.25, 0.5, 0.25], [0, 1, 3, 7])
    assert some.mean.estimate == pytest.approx(every.mean.estimate)
    assert some.median.estimate == pytest.approx(every.median.estimate)


def test_the_mean_moves_with_the_edges() -> None:
    """Sums of unnormalised shares would make the error grow with the distance from 0."""
    near, far = (exact([0.2, 0.5, 0.25], [x, x + 1, x + 2, x + 3], 0.02).mean for x in (0.0, 1e6))
    assert far.estimate - near.estimate == pytest.approx(1e6)
    assert far.high - far.low == pytest.approx(near.high - near.low, rel=1e-6)


def test_errors_of_the_mean_by_the_delta_method() -> None:
    shares, error = np.array([0.2, 0.5, 0.3]), 0.01
    found = exact(shares.tolist(), [0, 2, 4, 6], error)
    draws = np.random.default_rng(1).normal(shares, error, (100_000, 3))
    lowest = draws @ [0, 2, 4] / draws.sum(axis=1)
    assert found.mean.low == pytest.approx(np.quantile(lowest, 0.025), abs=0.002)


def test_estimates_that_fall_have_quantiles_all_the_same() -> None:
    found = exact([0.3, -0.1, 0.4, -0.05, 0.45], [0, 1, 2, 3, 4, 5], 0.05)
    quantiles = [found.quantile(p) for p in np.linspace(0.01, 0.99, 50)]
    estimates = [each.estimate for each in quantiles]
    assert estimates == sorted(estimates)
    assert all(each.low < each.high for each in quantiles)
    assert all(each.low <= each.estimate <= each.high for each in quantiles)


def test_nothing_is_known_where_nobody_certainly_answered() -> None:
    found = exact([0.01, 0.02, -0.01], [0, 1, 3, 7], 0.1)
    for each in (found.mean, found.median):
        assert np.isnan(each.estimate) and (each.low, each.high) == (0.0, 7.0)
    assert "too few" in found.summary()
    again = Result.from_json(found.to_json())
    assert isinstance(again, Histogram) and again.mean == found.mean


@pytest.mark.parametrize("p", [0, 1, -0.5, 1.5, "half", True, np.nan])
def test_a_quantile_needs_a_share(p: float) -> None:
    with pytest.raises(InputError):
        histogram().quantile(p)


def test_json_states_mean_and_median() -> None:
    found = histogram()
    data = json.loads(found.to_json())
    assert data["kind"] == "Histogram" and data["mean"]["estimate"] == found.mean.estimate
    assert data["median"]["unit"] == "ms"
    again = Result.from_json(found.to_json())
    assert again == found and isinstance(again, Histogram) and again.mean == found.mean


def test_rows_are_bins_in_their_order() -> None:
    found = histogram()
    assert [row.value for row in found] == ["0 to 10", "10 to 20"]
    assert found["10 to 20"].estimate == found.estimate[1]
    assert found.columns()["upper_edge"] == [10.0, 20.0]


def test_shapes_must_fit() -> None:
    with pytest.raises(InputError, match="needs 3 edges"):
        replace(histogram(), edges=np.array([0.0, 1.0]))


def test_a_trend_of_histograms_keeps_them() -> None:
    parts = (histogram(0.3), histogram(0.6))
    trend = Trend("day", ("2027-01-04", "2027-01-05"), parts)
    again = Result.from_json(trend.to_json())
    assert isinstance(again, Trend) and again.to_json() == trend.to_json()
    assert again.parts[1].mean == parts[1].mean
    assert trend.numbers("mean")[:, 0].tolist() == [part.mean.estimate for part in parts]
    with pytest.raises(InputError, match="number question"):
        trend.numbers("mode")


def test_numbers_are_rounded_by_their_interval() -> None:
    assert rounded_together(0.012343, 0.0121, 0.0125) == ("0.01234", "0.01210", "0.01250")
    assert rounded_together(np.nan, 0.0, 7.0)[0] == "nan"
