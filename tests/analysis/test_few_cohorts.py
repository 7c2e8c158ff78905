"""Results of questions with few cohorts say so: in Python, on pages and in terminals."""

from __future__ import annotations

import numpy as np
import pytest

from deniable import Survey, associate, decode, discover, simulate
from deniable.cli.output import print_result
from deniable.render import view_of
from deniable.results import Result, Trend
from tests.surveys import make_survey

BLOOM = '[questions.{}]\nkind = "string"\nepsilon = 4.0\nbits = 256\nhashes = 1\ncohorts = {}\n'
PREFIXES = '[questions.page.dictionary]\nprotocol = "prefixes"\nmax_length = 2\nalphabet = "a-z"\n'
FAMILIES = (
    '[questions.page]\nkind = "string"\nepsilon = 4.0\nmechanism = "localhash"\nfamilies = 2\n'
)
WARNING = "fewer than 8 cohorts"
CANDIDATES = ["aa", "bb", "cc"]


def crowd(survey: Survey):
    rng = np.random.default_rng(1)
    values = rng.choice(["aa", "bb", "zz"], 4_000).tolist()
    return simulate(survey, {q.name: values for q in survey.questions}, rng=rng)


@pytest.mark.parametrize(
    ("questions", "few"),
    [
        (BLOOM.format("page", 2), True),
        (BLOOM.format("page", 8), False),
        (BLOOM.format("page", 4) + PREFIXES, True),
        (FAMILIES + PREFIXES, True),
    ],
)
def test_results_warn_about_few_cohorts(questions: str, few: bool) -> None:
    survey = make_survey(questions)
    result = decode(survey, crowd(survey), "page", CANDIDATES)
    assert (WARNING in result.limitation) == few
    assert (WARNING in str(result)) == few and (WARNING in result._repr_html_()) == few
    assert (WARNING in view_of(result).section(survey)) == few


def test_trends_and_discoveries_warn_about_few_cohorts(capsys: pytest.CaptureFixture[str]) -> None:
    survey = make_survey(FAMILIES + PREFIXES)
    part = decode(survey, crowd(survey), "page", CANDIDATES)
    trend = Trend("day", ("2027-01-04",), (part,), provenance=part.provenance)
    for result in (Result.from_json(trend.to_json()), discover(survey, crowd(survey), "page")):
        print_result(result, as_json=False)
        assert f"Warning: page: {WARNING}" in capsys.readouterr().out
        assert WARNING in view_of(result).section(survey)


def test_joint_tables_warn_about_few_cohorts() -> None:
    survey = make_survey(BLOOM.format("x", 4) + BLOOM.format("y", 64))
    names = {"x": CANDIDATES, "y": CANDIDATES}
    result = associate(survey, crowd(survey), ["x", "y"], candidates=names)
    assert result.limitation.startswith("x: fewer than 8 cohorts")
    assert WARNING in str(result) and WARNING in view_of(result).section(survey)


def test_nothing_is_detectable_among_many_candidates_in_one_cohort() -> None:
    survey = make_survey(BLOOM.format("page", 1))
    reports = crowd(survey)
    # An unlisted string has the bit of one of 40 candidates with a probability of 15%.
    many = decode(survey, reports, "page", [*CANDIDATES, *(f"d{i}" for i in range(37))])
    assert not many.detected.any() and many.detection_threshold == 1.0
    few = decode(survey, reports, "page", CANDIDATES)
    assert few.detected.tolist() == [True, True, False] and few.detection_threshold < 0.1
