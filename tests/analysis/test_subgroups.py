"""decode of a subgroup: conditions of every kind, agreement with associate, and what is refused."""

from __future__ import annotations

import json
from datetime import date
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

from deniable import store
from deniable.analysis import Stored, associate, count, decode, subgroups, trend
from deniable.cli.app import app
from deniable.columns import ReportBatch, write
from deniable.compute.executors import Threads
from deniable.errors import InputError
from deniable.formatting import PValue, p_value, percent
from deniable.render.view import view_of
from deniable.results import Marginal, Result, Trend
from deniable.simulation import simulate
from deniable.store.bulk import import_batches
from tests.surveys import make_survey

SURVEY = make_survey(
    """
[questions.editor]
kind = "choice"
options = ["vim", "emacs", "nano"]
epsilon = 3.0

[questions.browser]
kind = "choice"
options = ["Firefox", "Safari", "Chromium"]
epsilon = 3.0

[questions.dark]
kind = "boolean"
epsilon = 2.0

[questions.page]
kind = "string"
epsilon = 4.0
cohorts = 16

[questions.plugin]
kind = "string"
epsilon = 4.0
cohorts = 16
[questions.plugin.dictionary]
protocol = "prefixes"
max_length = 8
levels = [2, 4, 6, 8]
alphabet = "a-z0-9"
"""
)
PAGES = tuple(f"page{i}" for i in range(6))
N = 40_000
Answers = dict[str, list[Any]]


@cache
def crowd() -> tuple[Answers, ReportBatch]:
    rng = np.random.default_rng(3)
    browser = rng.choice(["Firefox", "Safari", "Chromium"], N, p=[0.3, 0.1, 0.6])
    firefox = browser == "Firefox"
    editor = np.where(
        firefox,
        rng.choice(["vim", "emacs", "nano"], N, p=[0.7, 0.2, 0.1]),
        rng.choice(["vim", "emacs", "nano"], N, p=[0.2, 0.3, 0.5]),
    )
    page = rng.choice(PAGES, N, p=[0.3, 0.25, 0.2, 0.15, 0.06, 0.04])
    dark = rng.random(N) < np.where(page == "page0", 0.9, 0.2)
    answers = {
        "editor": editor.tolist(),
        "browser": browser.tolist(),
        "dark": dark.tolist(),
        "page": page.tolist(),
        "plugin": [f"plug{i}" for i in rng.integers(3, size=N)],
    }
    return answers, simulate(SURVEY, answers, rng=rng)


def decoded(question: str, where: Any, **more: Any) -> Marginal:
    return decode(SURVEY, crowd()[1], question, where=where, **more)


def true_shares(question: str, names: tuple[str, ...], **where: tuple[Any, ...]) -> list[float]:
    answers = {name: np.array(values) for name, values in crowd()[0].items()}
    inside = np.ones(N, bool)
    for name, allowed in where.items():
        inside &= np.isin(answers[name], allowed)
    values = answers[question][inside]
    return [float((values == (n == "yes" if question == "dark" else n)).mean()) for n in names]


CASES: dict[str, tuple[str, dict[str, Any], dict[str, tuple[Any, ...]], dict[str, Any]]] = {
    "an option": ("editor", {"browser": "Firefox"}, {"browser": ("Firefox",)}, {}),
    "any of two options": (
        "editor",
        {"browser": ["Firefox", "Safari"]},
        {"browser": ("Firefox", "Safari")},
        {},
    ),
    "yes": ("page", {"dark": True}, {"dark": (True,)}, {"candidates": PAGES}),
    "no, in words": ("page", {"dark": "No"}, {"dark": (False,)}, {"candidates": PAGES[:4]}),
    "a string": ("dark", {"page": "page0"}, {"page": ("page0",)}, {}),
    "a string among candidates": (
        "dark",
        {"page": "page1"},
        {"page": ("page1",)},
        {"candidates": {"page": PAGES}},
    ),
    "two conditions": (
        "editor",
        {"browser": "Firefox", "dark": False},
        {"browser": ("Firefox",), "dark": (False,)},
        {},
    ),
    "a prefix question": ("editor", {"plugin": "plug1"}, {"plugin": ("plug1",)}, {}),
}


@pytest.mark.parametrize("case", CASES)
def test_estimates_are_those_of_the_subgroup(case: str) -> None:
    """Within 4.5 standard errors: one false alarm in 10,000 fresh crowds, over some 30 values."""
    question, where, truly, more = CASES[case]
    found = decoded(question, where, **more)
    truth = np.array(true_shares(question, found.names, **truly))
    known = found.identified
    assert known.any()
    assert (np.abs(found.estimate - truth)[known] < 4.5 * found.standard_error[known]).all()
    assert (found.high - found.low)[known].max() < 0.5
    mass, remainder = found.mass_found, found.mass_unexplained
    assert remainder.estimate == pytest.approx(1 - mass.estimate)
    assert (remainder.low, remainder.high) == pytest.approx((1 - mass.high, 1 - mass.low))
    inside = np.isin(crowd()[0][next(iter(truly))], next(iter(truly.values()))).mean()
    if len(truly) == 1:
        assert found.subgroup is not None
        assert abs(found.subgroup.estimate - inside) < 4.5 * found.subgroup.standard_error


def test_agrees_with_the_conditional_rates_of_associate() -> None:
    """Inside the simplex the step is 0, and the interval of a large subgroup is that of a ratio."""
    found = decoded("editor", {"browser": "Firefox"})
    rates = associate(SURVEY, crowd()[1], ["browser", "editor"]).conditional("browser")
    assert found.estimate == pytest.approx(rates.estimate[0], abs=1e-4)
    assert found.standard_error == pytest.approx(rates.standard_error[0], rel=1e-3)
    assert found.low == pytest.approx(rates.low[0], abs=1e-3)


def test_a_subgroup_too_small_says_so() -> None:
    found = decoded("editor", {"page": "nobody has this page"})
    assert np.isnan(found.estimate).all() and not found.identified.any()
    assert found.low.tolist() == [0] * 3 and found.high.tolist() == [1] * 3
    assert "too small" in found.heading()
    assert any("Nothing can be said" in note for note in view_of(found).notes())
    assert "Nothing can be said" in view_of(found).section(SURVEY)


def test_candidates_that_nobody_has_are_without_an_estimate() -> None:
    found = decoded("page", {"dark": True}, candidates=[*PAGES, "nowhere"])
    absent = found.names.index("nowhere")
    assert np.isnan(found.estimate[absent]) and not found.detected[absent]
    assert (found.low[absent], found.high[absent]) == (0, 1)
    assert any(note.startswith("1 candidate without") for note in view_of(found).notes())


def test_repeated_reports_widen_the_intervals() -> None:
    once, often = (
        decoded("editor", {"browser": "Firefox"}, reports_per_client=r) for r in (1.0, 4.0)
    )
    assert often.standard_error == pytest.approx(2 * once.standard_error)
    assert often.estimate == pytest.approx(once.estimate)


def test_files_and_executors_give_the_same(tmp_path: Path) -> None:
    path = tmp_path / "reports.parquet"
    write(path, crowd()[1])
    expected = decoded("editor", {"browser": "Firefox"})
    found = decode(SURVEY, path, "editor", where={"browser": "Firefox"}, executor=Threads(2))
    assert found.estimate == pytest.approx(expected.estimate, abs=1e-6)


def test_json_keeps_the_subgroup_and_others_have_no_such_keys() -> None:
    found = decoded("editor", {"browser": ["Firefox", "Safari"]})
    again = Result.from_json(found.to_json())
    assert isinstance(again, Marginal)
    assert again.where == {"browser": ("Firefox", "Safari")} and again.subgroup == found.subgroup
    assert again.heading() == found.heading()
    ordinary = decode(SURVEY, crowd()[1], "editor").to_json()
    assert not {"where", "subgroup", "total_reports"} & set(json.loads(ordinary))


REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "the question itself": ({"where": {"editor": "vim"}}, "cannot be decoded and be a condition"),
    "an unknown question": ({"where": {"browsr": "Firefox"}}, 'Did you mean "browser"'),
    "an unknown option": ({"where": {"browser": "Firefix"}}, 'Did you mean "Firefox"'),
    "no boolean": ({"where": {"dark": "maybe"}}, "'maybe' is not an answer to question 'dark'"),
    "a number for a string": ({"where": {"page": 7}}, "must give a string, got 7"),
    "no answers": ({"where": {"browser": []}}, "gives no answer to question 'browser'"),
    "no mapping": ({"where": "browser"}, "must map questions to answers"),
    "other candidates": (
        {"where": {"dark": True}, "candidates": {"page": PAGES}},
        "candidates are given for 'page'",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_asked_is_refused(case: str) -> None:
    given, message = REFUSED[case]
    with pytest.raises(InputError, match=message):
        decode(SURVEY, crowd()[1], "editor", **given)


def test_a_string_question_needs_candidates() -> None:
    with pytest.raises(InputError, match="pass the candidates"):
        decoded("page", {"dark": True})


def test_a_table_that_is_too_large_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subgroups, "MAX_CELLS", 17)
    with pytest.raises(
        InputError, match=r"18 cells \(3 of 'editor' × 3 of 'browser' × 2 of 'dark'"
    ):
        decoded("editor", {"browser": "Firefox", "dark": True})


# --- what results say, beside their numbers ------------------------------------------------------


def test_the_share_of_other_in_words_is_that_of_the_table() -> None:
    """Other includes detected strings that have no row, whether fitted separately or not."""
    questions, reports = ["page", "editor"], crowd()[1]
    for source in (reports, count(SURVEY, reports, questions)):
        joint = associate(SURVEY, source, questions, candidates={"page": PAGES[:5]}, top=2)
        share = float(joint.table[joint.labels[0].index("(other)")].sum())
        said = f"(other) of page: all values except the 2 named ones, about {percent(share)}"
        assert share == pytest.approx(0.45, abs=0.05)
        assert said in "\n".join(view_of(joint).notes())
        assert said in view_of(joint).section(SURVEY)


def test_without_a_model_of_other_the_row_is_explained() -> None:
    joint = associate(
        SURVEY,
        crowd()[1],
        ["page", "editor"],
        candidates={"page": PAGES},
        top=2,
        fitted=6,
        other=False,
    )
    assert joint.labels[0][-1] == "(other)"
    assert joint.other[0].startswith("the detected strings except the 2 named ones, about ")


def test_no_answer_is_called_no_answer() -> None:
    answers = {"editor": ["vim", None] * 5000, "dark": [True] * 10_000}
    reports = simulate(SURVEY, answers, rng=np.random.default_rng(8))
    joint = associate(SURVEY, reports, ["editor", "dark"])
    said = "(no answer) of editor: clients that gave none of the options."
    assert said in view_of(joint).notes() and said in joint._repr_html_()


def test_reports_of_short_prefixes_are_counted_apart() -> None:
    found = decode(SURVEY, crowd()[1], "plugin", ["plug0", "plug1", "longplug"])
    assert found.total_reports == N and found.reports < N
    said = f"{found.reports:,} of {N:,} reports"
    assert said in found.heading() and json.loads(found.to_json())["total_reports"] == N
    shown = view_of(found).section(SURVEY)
    assert f"{said} are used: the others report only a shorter prefix" in shown
    assert any(said in note for note in view_of(found).notes())


def test_a_boolean_shows_yes_and_no() -> None:
    found = decode(SURVEY, crowd()[1], "dark")
    rows = {row[0]: row for row in view_of(found).table().rows}
    assert rows.keys() == {"yes", "no"}
    ends = [f"{percent(1 - float(end[0]))}" for end in (found.high, found.low)]
    assert rows["no"][-1] == " … ".join(ends)
    assert "of clients say no" in view_of(found).section(SURVEY)
    assert "hold none" not in view_of(found).section(SURVEY)
    assert found.columns()["value"] == ["yes"]  # files keep their rows


def test_a_tiny_p_value_reads_the_same_everywhere() -> None:
    found = decode(SURVEY, crowd()[1], "dark")
    assert found.p_value[0] == 1e-300 and found.columns()["p_value"] == [1e-300]
    assert -np.inf < found.log_p_value[0] < np.log(1e-300)
    text = p_value(PValue(1e-300, float(found.log_p_value[0])))
    assert text in str(found) and f"{text}</td>" in view_of(found).section(SURVEY)
    assert any(text in row for row in view_of(found).table().rows)
    again = Marginal.from_json(found.to_json())
    assert again == found and text in str(again)


def test_a_trend_of_a_subgroup_decodes_it_in_each_period(tmp_path: Path) -> None:
    days, firefox = [date(2027, 1, 4), date(2027, 1, 5)], {"browser": "Firefox"}
    with store.open(tmp_path / "reports.db", create=True) as opened:
        for i, day in enumerate(days):
            import_batches(opened, [crowd()[1].select(slice(i, None, 2))], day)
        shown = trend(SURVEY, opened, "editor", where=firefox)
        parts = [decode(SURVEY, Stored(opened, d, d), "editor", where=firefox) for d in days]
        assert shown.periods == ("2027-01-04", "2027-01-05")
        for found, part in zip(shown, parts, strict=True):
            assert found.title == "editor where browser = Firefox"
            np.testing.assert_allclose(found.estimate, part.estimate, rtol=1e-6)
        with pytest.raises(InputError, match="is not an answer"):
            trend(SURVEY, opened, "editor", where={"browser": "Netscape"})


def test_a_trend_of_a_subgroup_names_it_and_keeps_it_in_json() -> None:
    parts = tuple(decoded("editor", {"browser": "Firefox"}) for _ in range(2))
    weeks = Trend("week", ("2026-11-02", "2026-11-09"), parts)
    assert weeks.heading().startswith("editor where browser = Firefox by week")
    assert "editor where browser = Firefox: share of the subgroup" in view_of(weeks).section()
    again = Result.from_json(weeks.to_json())
    assert isinstance(again, Trend)
    assert again.marginals[1].where == {"browser": ("Firefox",)}
    assert again.marginals[1].subgroup == parts[1].subgroup


def test_from_the_command_line(tmp_path: Path) -> None:
    (tmp_path / "survey.json").write_bytes(SURVEY.canonical)
    write(tmp_path / "reports.parquet", crowd()[1])
    (tmp_path / "pages.txt").write_text("\n".join(PAGES))
    start = ["decode", str(tmp_path / "survey.json"), str(tmp_path / "reports.parquet")]
    conditions = ["--question", "editor", "--where", "browser=Firefox", "--where", "browser=Safari"]
    pages = ["--where", "page=page0", "--candidates", f"page={tmp_path / 'pages.txt'}"]
    done = CliRunner().invoke(app, [*start, *conditions, *pages, "--json"])
    assert done.exit_code == 0, done.output
    where = json.loads(done.stdout)["where"]
    assert where == {"browser": ["Firefox", "Safari"], "page": ["page0"]}
    for wrong in ("browser", "browser=Firefix", "browsr=Firefox", "editor=vim"):
        failed = CliRunner().invoke(app, [*start, "--question", "editor", "--where", wrong])
        assert failed.exit_code != 0 and "Traceback" not in failed.output


def test_a_value_is_no_surer_in_a_subgroup_than_among_all_clients() -> None:
    """The test among all clients is exact in small crowds; that of a subgroup is not."""
    reports = crowd()[1].select(slice(0, 300))
    inside = decode(SURVEY, reports, "browser", where={"dark": True})
    everywhere = decode(SURVEY, reports, "browser")
    assert (inside.p_value >= everywhere.p_value).all()
