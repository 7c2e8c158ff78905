"""Where detection begins: below, there are estimates and intervals, no tests, and one sentence."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from deniable import Survey, associate, decode, discover, plan, simulate
from deniable.analysis import compare
from deniable.cli.output import print_result, write_result
from deniable.errors import InputError
from deniable.planning import detectable, discoverable
from deniable.render import view_of
from deniable.results import Result, Trend
from deniable.survey.detection import NOT_TESTED
from tests.surveys import make_survey

BLOOM = '[questions.{}]\nkind = "string"\nepsilon = 4.0\nbits = 256\nhashes = 1\ncohorts = {}\n'
DARK = '[questions.dark]\nkind = "boolean"\nepsilon = 3.0\n'
PREFIXES = '[questions.page.dictionary]\nprotocol = "prefixes"\nmax_length = 2\nalphabet = "a-z"\n'
FAMILIES = (
    '[questions.page]\nkind = "string"\nepsilon = 4.0\nmechanism = "localhash"\nfamilies = {}\n'
)
CANDIDATES = ["aa", "bb", "cc"]


def crowd(survey: Survey, size: int = 4_000):
    rng = np.random.default_rng(1)
    values = rng.choice(["aa", "bb", "zz"], size)
    answers = {
        q.name: (values == "aa").tolist() if q.kind == "boolean" else values.tolist()
        for q in survey.questions
    }
    return simulate(survey, answers, rng=rng)


def shown_without_tests(result: Result, survey: Survey, capsys: pytest.CaptureFixture[str]) -> bool:
    """Return whether the result says in every form that nothing is tested; all forms agree."""
    print_result(result, as_json=False)
    printed = " ".join(capsys.readouterr().out.split())
    again = Result.from_json(result.to_json())
    forms = (printed, str(result), str(again), result._repr_html_())
    says = [text.count(NOT_TESTED) for text in (*forms, view_of(result).section(survey))]
    assert len(set(says)) == 1 and says[0] <= 1
    return bool(says[0])


@pytest.mark.parametrize(
    ("questions", "size", "tested"),
    [
        (BLOOM.format("page", 8), 1_000, True),
        (BLOOM.format("page", 8), 999, False),
        (BLOOM.format("page", 7), 4_000, False),
        (BLOOM.format("page", 4) + PREFIXES, 4_000, False),
        (FAMILIES.format(2) + PREFIXES, 4_000, False),
        (FAMILIES.format(8) + PREFIXES, 1_000, True),
    ],
)
def test_strings(
    questions: str, size: int, tested: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    survey = make_survey(questions)
    reports = crowd(survey, size)
    results: list[Result] = [decode(survey, reports, "page", CANDIDATES)]
    if "dictionary" in questions:
        results.append(discover(survey, reports, "page"))
    for result in results:
        assert result.tested == tested and (result.fit is not None) == tested
        assert shown_without_tests(result, survey, capsys) == (not tested)
    found = results[0]
    assert found.detected.any() == tested and np.isnan(found.p_value).all() == (not tested)
    assert abs(found["aa"].estimate - 1 / 3) < 0.3 and found.low[0] < found.high[0]
    assert tested or discover_finds_nothing(results[1:])


def discover_finds_nothing(results: list[Result]) -> bool:
    return all(len(result) == 0 for result in results)


@pytest.mark.parametrize("clients", [99, 100])
def test_repeated_collection(clients: int) -> None:
    survey = make_survey(DARK, collect="repeatedly")
    assert decode(survey, crowd(survey, clients), "dark").tested == (clients == 100)
    three = decode(survey, crowd(survey, 3 * clients), "dark", reports_per_client=3)
    assert three.tested == (clients == 100)


def test_options_that_are_asked_once_are_tested_at_every_size() -> None:
    survey = make_survey(DARK)
    reports = simulate(survey, {"dark": [True] * 12}, rng=1)
    result = decode(survey, reports, "dark")
    assert result.tested and result.detected.all() and result.limitation == ""


def test_a_subgroup_counts_its_own_reports() -> None:
    """A third of 2,000 clients are in the subgroup, and two thirds of 4,000 in the other one."""
    survey = make_survey(DARK + BLOOM.format("page", 16))
    small = decode(survey, crowd(survey, 2_000), "page", CANDIDATES, where={"dark": True})
    large = decode(survey, crowd(survey, 4_000), "page", CANDIDATES, where={"dark": False})
    assert (small.tested, large.tested) == (False, True)
    assert not small.detected.any() and np.isfinite(small.estimate).any()


def test_joint_tables(capsys: pytest.CaptureFixture[str]) -> None:
    survey = make_survey(BLOOM.format("x", 4) + BLOOM.format("y", 64))
    names = {"x": CANDIDATES, "y": CANDIDATES}
    result = associate(survey, crowd(survey), ["x", "y"], candidates=names)
    assert shown_without_tests(result, survey, capsys)
    assert np.isnan(result.p_value).all() and result.low[0, 0] > 0.1 and result.fit is None
    for test in (result.test, result.mutual_independence):
        with pytest.raises(InputError, match="Nothing is tested"):
            test()
    assert result.cramers_v().high > 0


def test_trends_and_changes(capsys: pytest.CaptureFixture[str]) -> None:
    survey = make_survey(BLOOM.format("page", 16))
    parts = [decode(survey, crowd(survey, size), "page", CANDIDATES) for size in (500, 5_000)]
    trend = Trend("day", ("2027-01-04", "2027-01-05"), tuple(parts), provenance=parts[0].provenance)
    assert shown_without_tests(trend, survey, capsys)
    again = Result.from_json(trend.to_json())
    assert isinstance(again, Trend) and [part.tested for part in again.parts] == [False, True]
    change = compare(trend)
    assert not change.changed.any() and np.isnan(change.p_value).all()
    assert np.isfinite(change.estimate).all()


def test_missing_p_values_in_files(tmp_path: Path) -> None:
    survey = make_survey(BLOOM.format("page", 16))
    result = decode(survey, crowd(survey, 500), "page", CANDIDATES)
    paths = [tmp_path / f"page.{kind}" for kind in ("csv", "json", "html", "svg")]
    write_result(result, paths, survey)
    csv, data, page, _ = (path.read_text() for path in paths)
    assert all(line.split(",")[5] == "" for line in csv.splitlines()[1:])
    assert json.loads(data)["p_value"] == [None, None, None]
    assert page.count('<td data-key="nan">–</td>') == 3


def test_nothing_is_promised_before_there_are_reports() -> None:
    few, many = (make_survey(BLOOM.format("page", n)).question("page") for n in (7, 8))
    assert np.isinf([detectable(few, 10**6), detectable(many, 999)]).all()
    assert detectable(many, 1_000) < 1
    prefixes = make_survey(FAMILIES.format(16) + PREFIXES).question("page")
    assert np.isinf(discoverable(prefixes, 999)) and discoverable(prefixes, 1_000) < 1
    small = plan(clients=500, epsilon=4.0)
    assert not small.tested and NOT_TESTED in str(small) and np.isnan(small.threshold)
    assert plan(epsilon=4.0, detect=0.9).clients == 1_000
    with pytest.raises(InputError, match="Nothing is tested"):
        plan(clients=500, detect=0.1)
