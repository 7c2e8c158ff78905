"""Numbers as bins: edges, clamping, published texts, and what is refused."""

from __future__ import annotations

import json
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from deniable.client import Client
from deniable.errors import InputError, SurveyError
from deniable.mechanisms import Choice, Noise
from deniable.protocols import Bins, Single
from deniable.protocols.bins import (
    bin_labels,
    check_edges,
    edge_text,
    linear_edges,
    logarithmic_edges,
)
from deniable.survey import Question, Survey
from tests.surveys import make_survey, survey_toml

NOISE = Noise.of(p=0.25, q=0.75)
EDGES = (0.0, 0.1, 0.2, 0.3, 10.0)
NUMBER = '[questions.x]\nkind = "number"\nepsilon = 2\n'
finite = st.floats(allow_nan=False, allow_infinity=False)


def bins(edges: tuple[float, ...] = EDGES) -> Bins:
    return Bins(Choice(noise=NOISE, options=bin_labels(edges)), edges)


def index(protocol: Bins, value: float) -> int:
    return protocol.mechanism.labels.index(protocol.token(value, 0, 0))


@pytest.mark.parametrize("edge", range(1, 4))
def test_an_edge_belongs_to_the_bin_above_and_its_neighbour_below_does_not(edge: int) -> None:
    value = EDGES[edge]
    assert index(bins(), value) == edge
    assert index(bins(), math.nextafter(value, math.inf)) == edge
    assert index(bins(), math.nextafter(value, -math.inf)) == edge - 1


def test_numbers_outside_count_in_the_first_or_last_bin() -> None:
    assert [index(bins(), x) for x in (-1e-300, -math.inf, -(10**400))] == [0, 0, 0]
    assert [index(bins(), x) for x in (10, 10.1, math.inf, 10**400)] == [3, 3, 3, 3]
    assert bins().token(math.nan, 0, 0) is None


@given(st.lists(finite, min_size=3, max_size=20, unique=True), finite)
def test_every_number_has_the_bin_that_holds_it(edges: list[float], value: float) -> None:
    edges = sorted(e + 0.0 for e in edges)
    if len(set(edges)) < len(edges):
        return
    found = index(bins(tuple(edges)), value)
    assert found == 0 or value >= edges[found]
    assert found == len(edges) - 2 or value < edges[found + 1]


@given(finite)
def test_published_edges_come_back_exactly(edge: float) -> None:
    assert float(edge_text(edge)) == edge
    assert edge_text(float(edge_text(edge))) == edge_text(edge)


def test_edges_of_a_linear_scale_are_the_nearest_doubles() -> None:
    assert linear_edges(0.0, 1.0, 10) == (0.0, *(float(f"0.{i}") for i in range(1, 10)), 1.0)
    assert linear_edges(0.1, 0.7, 6) == (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7)
    assert linear_edges(0.0, 0.7, 7) == (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7)
    assert 0.7 * 3 / 7 != 0.3, "what arithmetic with doubles would give"


@pytest.mark.parametrize("low, high, count", [(1.0, 1e6, 6), (0.01, 0.011, 200), (1e-9, 1e9, 256)])
def test_edges_of_a_logarithmic_scale_increase_by_about_equal_ratios(
    low: float, high: float, count: int
) -> None:
    edges = np.array(logarithmic_edges(low, high, count))
    assert edges[0] == low and edges[-1] == high and len(edges) == count + 1
    ratios = np.diff(np.log(edges))
    assert (ratios > 0).all()
    assert np.abs(np.log(edges) - np.linspace(np.log(low), np.log(high), count + 1)).max() < 0.006


def test_a_published_survey_says_the_edges_and_what_happens_outside() -> None:
    survey = make_survey(NUMBER + 'low = 0\nhigh = 1\nbins = 10\nunit = "s"')
    published = json.loads(survey.canonical)["questions"][0]["protocol"]
    assert published["edges"][:4] == ["0", "0.1", "0.2", "0.3"] and published["unit"] == "s"
    assert published["outside"] == "nearest bin"
    assert published["mechanism"]["options"][2] == "0.2 to 0.3"
    assert Survey.from_json(survey.canonical) == survey


@pytest.mark.parametrize(
    "change",
    [{"edges": ["0", "1", "0.5"]}, {"edges": ["0", "1"]}, {"edges": [0, 1, 2]}, {"unit": 7},
     {"edges": ["0", "1_0", "20"]}, {"edges": ["0", "inf", "nan"]}, {"outside": "dropped"},
     {"edges": ["0", "10.0", "20"]}, {"edges": ["0", "5", "20"]}],
    ids=str,
)  # fmt: skip
def test_a_changed_published_survey_is_refused(change: dict[str, object]) -> None:
    survey = make_survey(NUMBER + "edges = [0, 10, 20]")
    data = json.loads(survey.canonical)
    data["questions"][0]["protocol"] |= change
    changed = json.dumps(data, sort_keys=True, separators=(",", ":")).encode()
    with pytest.raises(InputError):
        Survey.from_json(changed)


def test_the_unit_does_not_change_the_noise() -> None:
    """Permanent noise is keyed by the encoding; other edges draw new noise for every value."""
    encodings = [
        json.loads(make_survey(NUMBER + text).canonical)["questions"][0]["encodings"]
        for text in ("edges = [0, 1, 2]", 'edges = [0, 1, 2]\nunit = "s"', "edges = [0, 1, 3]")
    ]
    assert encodings[0] == encodings[1] != encodings[2]


@pytest.mark.parametrize(
    "settings, words",
    [("", "needs edges, or low, high and bins"),
     ("edges = [0, 1]", "2 to 256 bins"),
     (f"edges = {list(range(258))}", "2 to 256 bins"),
     ("edges = [0, 2, 1]", "must increase"),
     ("edges = [0, nan, 1]", "list of numbers"),
     ("edges = [0, inf, 1]", "list of numbers"),
     ("edges = [0, true, 2]", "list of numbers"),
     ("edges = [0, 1, 2]\nbins = 4", "leave out one"),
     ("low = 0\nhigh = 0\nbins = 4", "low must be below high"),
     ("low = 0\nhigh = 9\nbins = 4\nscale = 'log'", "low above 0"),
     ("low = 0\nhigh = 9\nbins = 4\nscale = 'logarithmic'", '"linear" or "log"'),
     ("low = 1\nhigh = 1.0000000000000002\nbins = 4", "must increase"),
     ("low = 0\nbins = 4", "high"),
     ("options = ['a', 'b']\nedges = [0, 1, 2]", "unknown setting of a number question")],
)  # fmt: skip
def test_mistakes_in_bins_are_named(settings: str, words: str) -> None:
    with pytest.raises(SurveyError, match=words):
        Survey.from_toml(survey_toml(NUMBER + settings))


@pytest.mark.parametrize("wrong", [True, "3", b"3", [3], 3j])
def test_what_is_not_a_number_is_refused(wrong: object) -> None:
    survey = make_survey(NUMBER + "edges = [0, 1, 2]")
    with pytest.raises(InputError, match="must be a number or None"):
        Client(survey, secret=bytes(32)).answer({"x": wrong})


@pytest.mark.parametrize("value", [0, -5, 1e308, math.inf, math.nan, Fraction(1, 3), np.float32(1)])
def test_every_number_is_reported_with_the_same_length(value: float) -> None:
    survey = make_survey(NUMBER + "edges = [0, 1, 2]")
    assert len(bytes(Client(survey, secret=bytes(32)).answer({"x": value}))) == 21


def test_simulations_say_what_is_lost() -> None:
    question = make_survey(NUMBER + "edges = [0, 1, 2]").question("x")
    assert question.lost(0) is None and question.lost(2) is None and question.lost(None) is None
    assert "outside 0 to 2" in str(question.lost(2.5))
    assert "no answer" in str(question.lost(math.nan))


def test_bins_belong_to_numbers_only() -> None:
    with pytest.raises(InputError, match="cannot use the mechanism"):
        Question("x", "choice", "", bins())
    with pytest.raises(InputError, match="cannot use the mechanism"):
        Question("x", "number", "", Single(bins().mechanism))
    with pytest.raises(InputError, match="labels of its bins"):
        Bins(Choice(noise=NOISE, options=("a", "b", "c", "d")), EDGES)


def test_huge_integers_are_compared_as_doubles() -> None:
    """As in JavaScript: 2^53 + 3 is 2^53 + 4 as a double."""
    edges = (0.0, float(2**53 + 4), 1e300)
    bins = Bins(Choice(noise=Noise.of(p=0.25, q=0.75), options=bin_labels(edges)), edges)
    labels = bin_labels(edges)
    assert bins.token(2**53 + 3, 0, 0) == labels[1] and bins.token(2**53, 0, 0) == labels[0]
    assert (bins.token(10**400, 0, 0), bins.token(-(10**400), 0, 0)) == (labels[1], labels[0])


@pytest.mark.parametrize("edges", [[0.0, 1.0, math.inf], [0.0, math.nan, 1.0], [0, 1, 2]])
def test_edges_are_finite_floating_point_numbers(edges: list[float]) -> None:
    with pytest.raises(InputError, match="finite numbers"):
        check_edges(edges)
