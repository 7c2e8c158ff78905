"""The check of reports: what is flagged, what cannot be checked, and how it is shown."""

from dataclasses import replace

import numpy as np
import pytest
from experiments.fit_check import HEAD, SURVEYS, check, simulate, survey_of

from deniable import Survey, associate, count, decode, discover
from deniable.analysis import compare
from deniable.columns import ReportBatch
from deniable.inference import fit_counts
from deniable.inference.fit_check import possible_shares
from deniable.inference.fit_counts import FitCounter
from deniable.render.html import report
from deniable.render.view import view_of
from deniable.results import Marginal, Result, Trend
from deniable.results.fit_check import LEVEL


@pytest.fixture(scope="module")
def bloom() -> ReportBatch:
    survey = survey_of("Bloom, ε = 4")
    return simulate(survey, {"word": ["wa", "wb"] * 1_000}, rng=np.random.default_rng(1))


def test_copies_of_one_report_are_flagged_everywhere(bloom):
    copies = bloom.select(np.zeros(2_000, int))
    result = decode(bloom.survey, copies, "word", ["wa", "wb"])
    assert result.fit.suspicious
    assert "SUSPICIOUS REPORTS" in repr(result)
    assert str(result).startswith("SUSPICIOUS REPORTS: they do not look like answers of honest")
    assert "do not look like" in result._repr_html_()
    assert "do not look like" in report([result])
    assert Marginal.from_json(result.to_json()) == result


def test_copies_are_found_in_a_sample_of_the_reports(bloom, monkeypatch):
    """Of 20 reports one is looked at, so of 400 pairs of copies about one."""
    rng = np.random.default_rng(3)
    many = simulate(bloom.survey, {"word": ["wa", "wb"] * 20_000}, rng=rng)
    twice = ReportBatch.concat([many, many.select(np.arange(8_000))])
    monkeypatch.setattr(fit_counts, "MAX_CHECKED", len(twice) // 20)
    assert decode(bloom.survey, twice, "word", ["wa", "wb"]).fit.suspicious
    assert not decode(bloom.survey, many, "word", ["wa", "wb"]).fit.suspicious


def test_an_honest_crowd_is_mentioned_in_the_details_of_the_page_only(bloom):
    result = decode(bloom.survey, bloom, "word", ["wa", "wb"])
    assert not result.fit.suspicious
    assert "reports look" not in str(result)
    assert not any("reports look" in note for note in view_of(result).notes())
    assert "The reports look as expected" in report([result])
    assert "Cannot be checked: whether strings are hashed" in str(result.fit)


def test_a_boolean_cannot_be_checked_unless_its_share_is_impossible():
    survey = survey_of("boolean")
    batch = simulate(survey, {"word": [True, False] * 500}, rng=np.random.default_rng(2))
    fit = decode(survey, batch, "word").fit
    assert str(fit).startswith("Cannot be checked: a boolean")
    all_ones = ReportBatch(survey, batch.cohort, batch.clear, ((np.ones((1_000, 1), np.uint8),),))
    result = decode(survey, all_ones, "word")
    assert result.estimate[0] > 1.1
    assert result.fit.suspicious


def test_counts_do_not_depend_on_how_reports_are_cut(bloom):
    counter = FitCounter(("word",), len(bloom))
    whole, (first, second) = (
        counter(bloom),
        (counter(bloom.select(rows)) for rows in (slice(700), slice(700, None))),
    )
    together = first + second
    assert np.array_equal(whole.cohorts, together.cohorts)
    assert np.array_equal(whole.parts[0][0].ones, together.parts[0][0].ones)
    assert np.array_equal(np.concatenate(whole.rare), np.concatenate(together.rare))
    assert together.coincidence == pytest.approx(whole.coincidence)


def test_reports_of_repeated_collection_are_not_compared_by_cohort():
    survey = survey_of("Bloom, ε = 4", "repeatedly")
    batch = simulate(survey, {"word": ["wa"] * 2_000}, rng=np.random.default_rng(3))
    one_cohort = ReportBatch(survey, np.zeros(2_000, np.uint16), batch.clear, batch.bits)
    fit = check(survey, one_cohort)
    assert not fit.suspicious
    assert "cohorts are uniform" in str(fit)


def test_an_estimate_above_1_by_more_than_its_error_is_impossible():
    def p_value(estimate: list[float], reports: int, collect: str = "once") -> float:
        survey = survey_of("choice", collect)
        shares = np.array(estimate), np.where(np.isfinite(estimate), 0.01, np.nan)
        (test,) = possible_shares(survey, survey.question("word"), shares, reports)
        return test.p_value

    assert p_value([1.2, 0.1, np.nan], 100_000) < 1e-50
    assert p_value([1.01], 100_000) > 0.1
    assert p_value([1.2], 10) > 0.1  # 10 reports cannot have so small an error
    assert p_value([1.2], 3_000, "repeatedly") > 0.1  # nor can 30 clients


def test_a_trend_corrects_for_its_periods_and_names_those_that_are_suspicious(bloom):
    good = decode(bloom.survey, bloom, "word", ["wa", "wb"])
    bad = decode(bloom.survey, bloom.select(np.zeros(2_000, int)), "word", ["wa", "wb"])
    assert not Trend("day", ("2027-01-04", "2027-01-05"), (good, good)).fit.suspicious
    trend = Trend("day", ("2027-01-04", "2027-01-05"), (good, bad))
    assert "2027-01-05: " in trend.warning
    assert "2027-01-04: " not in trend.warning
    assert trend.fit.p_value == pytest.approx(2 * bad.fit.p_value)
    assert "SUSPICIOUS REPORTS" in report([trend])
    assert Result.from_json(trend.to_json()).fit == trend.fit
    assert "SUSPICIOUS REPORTS" in str(compare(trend))
    doubtful = replace(good.fit, p_value=LEVEL / 2, problems=("odd",))
    parts = [replace(good, fit=doubtful)] + [good] * 9
    assert not Trend("day", tuple("abcdefghij"), tuple(parts)).fit.suspicious


def test_plots_carry_the_warning(bloom):
    bad = decode(bloom.survey, bloom.select(np.zeros(2_000, int)), "word", ["wa", "wb"])
    axes = bad.plot()
    assert "SUSPICIOUS REPORTS" in [text.get_text() for text in axes.texts]


def test_counts_are_checked_as_far_as_they_go():
    head, text = HEAD.format(collect="once"), SURVEYS["Bloom, h = 2"]
    survey = Survey.from_toml(head + text + '\n[questions.dark]\nkind = "boolean"\nepsilon = 2.0')
    answers = {"word": ["wa", "wb"] * 2_000, "dark": [True, False] * 2_000}
    batch = simulate(survey, answers, rng=np.random.default_rng(6))
    listed = {"word": ["wa", "wb"]}
    counts = count(survey, batch, ["word", "dark"])
    fit = associate(survey, counts, ["word", "dark"], candidates=listed).fit
    assert not fit.suspicious
    assert "whether some reports were sent twice" in fit.unchecked
    counts = count(survey, batch.select(batch.cohort < 32), ["word", "dark"])
    fit = associate(survey, counts, ["word", "dark"], candidates=listed).fit
    assert "cohorts are distributed unevenly" in str(fit)


def test_discover_and_associate_check_too():
    text = SURVEYS["local hash, ε = 4"].replace("max_length = 8", "max_length = 2")
    other = '\n[questions.dark]\nkind = "boolean"\nepsilon = 2.0'
    survey = Survey.from_toml(HEAD.format(collect="once") + text + other)
    answers = {"word": ["wa", "wb"] * 2_000, "dark": [True, False] * 2_000}
    batch = simulate(survey, answers, rng=np.random.default_rng(4))
    copies = ReportBatch.concat([batch] * 3)
    assert not discover(survey, batch, "word").fit.suspicious
    assert discover(survey, copies, "word").fit.suspicious
    listed = {"word": ["wa", "wb"]}
    assert not associate(survey, batch, ["word", "dark"], candidates=listed).fit.suspicious
    assert associate(survey, copies, ["word", "dark"], candidates=listed).fit.suspicious


def test_where_nothing_is_tested_there_is_no_verdict(bloom):
    twice = bloom.select(np.zeros(999, int))
    assert decode(bloom.survey, twice, "word", ["wa"]).fit is None
    survey = survey_of("choice")
    few = simulate(survey, {"word": ["wa"] * 5}, rng=1)
    assert decode(survey, few, "word").fit is not None
