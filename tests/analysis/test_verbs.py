"""decode and associate through the front door: every kind of question, every kind of input."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import polars
import pytest

import deniable
from deniable.analysis import associate, compare, decode
from deniable.columns import ReportBatch, write
from deniable.columns.arrow import to_arrow
from deniable.compute.executors import Threads
from deniable.errors import InputError
from deniable.inference.joint.solver import NotConvergedWarning
from deniable.results import Joint, Marginal, Result, Trend
from deniable.simulation import Population, contingency, correlated, simulate, zipf
from tests.surveys import make_survey

SURVEY = make_survey(
    """
[questions.page]
kind = "string"
epsilon = 4.0
cohorts = 16

[questions.grams]
kind = "string"
epsilon = 12.0
bits = 64
cohorts = 16
[questions.grams.dictionary]
protocol = "ngrams"
max_length = 8
alphabet = "a-z0-9"

[questions.prefix]
kind = "string"
epsilon = 4.0
cohorts = 16
[questions.prefix.dictionary]
protocol = "prefixes"
max_length = 8
levels = [2, 4, 6, 8]
alphabet = "a-z0-9"

[questions.theme]
kind = "choice"
options = ["light", "dark", "auto"]
epsilon = 2.0

[questions.ads]
kind = "boolean"
epsilon = 2.0
""",
    name="analysis",
)
WORDS = tuple(f"w{i}" for i in range(12))
CLIENTS = 60_000


@pytest.fixture(scope="module")
def truth() -> dict[str, dict[str, float]]:
    shares = dict(zip(WORDS, zipf(12).tolist(), strict=True))
    return dict.fromkeys(("page", "grams", "prefix"), shares)


@pytest.fixture(scope="module")
def batch() -> ReportBatch:
    rng = np.random.default_rng(11)
    words = Population(WORDS, zipf(12))
    both = contingency([[0.3, 0.1], [0.1, 0.2], [0.05, 0.25]], theme=("light", "dark", "auto"),
                       ads=(True, False)).draw(CLIENTS, rng)  # fmt: skip
    strings = {name: words.draw(CLIENTS, rng) for name in ("page", "grams", "prefix")}
    return simulate(SURVEY, {**both, **strings}, rng=rng)


def worst(found: Marginal, shares: dict[str, float]) -> float:
    """Largest error in standard errors."""
    labels = found.labels or ()
    errors = [
        abs(e - shares.get(label, 0.0)) / s
        for label, e, s in zip(labels, found.estimate, found.standard_error, strict=True)
    ]
    return max(errors)


@pytest.mark.parametrize("question", ["page", "grams", "prefix"])
def test_strings_of_every_protocol(
    batch: ReportBatch, truth: dict[str, dict[str, float]], question: str
) -> None:
    """52 estimates, 4.5 standard errors: false alarm below 1e-3; seeds are fixed."""
    candidates = [*WORDS, *(f"no{i}" for i in range(40))]
    found = decode(SURVEY, batch, question, candidates)
    assert worst(found, truth[question]) < 4.5
    detected = {c for c, d in zip(candidates, found.detected, strict=True) if d}
    assert {"w0", "w1"} <= detected <= set(WORDS)
    wrong = decode(SURVEY, batch, question, [f"no{i}" for i in range(52)])
    assert not wrong.detected.any(), "strings that nobody gave"
    assert found.provenance is not None
    assert found.provenance.reports == found.reports


def test_prefix_reading_uses_the_levels_that_determine_a_string(batch: ReportBatch) -> None:
    """Levels 4, 6 and 8 of 2, 4, 6, 8 lie beyond the end of two- and three-letter words."""
    found = decode(SURVEY, batch, "prefix", WORDS)
    share = found.reports / CLIENTS
    assert share == pytest.approx(0.75, abs=0.01)
    mixed = decode(SURVEY, batch, "prefix", [*WORDS, "no", "abcdefgh"])
    assert mixed.reports == found.reports, "a long string takes no reports away from short ones"
    assert mixed.standard_error[-1] > 1.5 * mixed.standard_error[-2], "and has a third of theirs"
    long = decode(SURVEY, batch, "prefix", ["abcdefgh"])
    assert long.reports / CLIENTS == pytest.approx(0.25, abs=0.01)


def test_choice_and_boolean(batch: ReportBatch) -> None:
    theme = decode(SURVEY, batch, "theme")
    assert theme.labels == ("light", "dark", "auto")
    assert worst(theme, {"light": 0.4, "dark": 0.3, "auto": 0.3}) < 4
    ads = decode(SURVEY, batch, "ads")
    assert worst(ads, {"yes": 0.45}) < 4


def test_every_input_gives_the_same(batch: ReportBatch, tmp_path: Path) -> None:
    expected = decode(SURVEY, batch, "page", WORDS).estimate
    write(tmp_path / "r.parquet", batch)
    write(tmp_path / "r.dn", batch)
    halves = [batch.select(slice(0, 999)), batch.select(slice(999, None))]
    inputs: list[Any] = [
        halves, iter(halves), str(tmp_path / "r.parquet"), tmp_path / "r.dn", to_arrow(batch),
        [tmp_path / "r.parquet"], to_arrow(batch).to_pandas(), polars.from_arrow(to_arrow(batch)),
    ]  # fmt: skip
    for reports in inputs:
        got = decode(SURVEY, reports, "page", WORDS, executor=Threads(1))
        assert got.estimate == pytest.approx(expected, abs=1e-12)


def test_frames_that_are_not_reports(batch: ReportBatch) -> None:
    frame = to_arrow(batch).to_pandas()
    with pytest.raises(InputError, match="expected a frame with the columns"):
        decode(SURVEY, frame.drop(columns="cohort"), "page", WORDS)
    with pytest.raises(InputError, match="wrong types"):
        decode(SURVEY, frame.assign(cohort=-1), "page", WORDS)
    frame["page.0"] = b"x"
    with pytest.raises(InputError, match="wrong types"):
        decode(SURVEY, frame, "page", WORDS)


@pytest.mark.parametrize(
    ("args", "says"),
    [
        (("page", None), "pass the candidates"),
        (("page", "w0"), "a list of strings"),
        (("page", [3]), "strings, got 3"),
        (("theme", ["light"]), "options are known"),
        (("nope", ["x"]), "no question 'nope'"),
    ],
)
def test_wrong_questions(batch: ReportBatch, args: Any, says: str) -> None:
    with pytest.raises(InputError, match=says):
        decode(SURVEY, batch, *args)


def test_wrong_reports(batch: ReportBatch) -> None:
    other = make_survey(
        """
[questions.page]
kind = "string"
epsilon = 1.0
""",
        name="o",
    )
    with pytest.raises(InputError, match="must answer"):
        decode(other, batch, "page", WORDS)
    for reports, words in (([], "no reports"), ([3], "reports must be a ReportBatch")):
        with pytest.raises(InputError, match=words):
            decode(SURVEY, reports, "page", WORDS)


def test_candidates_given_twice_count_once(batch: ReportBatch) -> None:
    twice = decode(SURVEY, batch, "page", [*WORDS, *WORDS])
    assert twice.labels == WORDS
    assert twice.p_value == pytest.approx(decode(SURVEY, batch, "page", WORDS).p_value)


def test_candidates_that_cannot_be_told_apart(batch: ReportBatch) -> None:
    """Cut at eight symbols these are one string."""
    found = decode(SURVEY, batch, "grams", ["w0", "abcdefgh1", "abcdefgh2"])
    assert found.groups == ((1, 2),)
    assert not found.detected[1:].any()


def test_reports_of_short_prefixes_only_say_nothing_about_longer_strings(
    batch: ReportBatch,
) -> None:
    short = batch.select(batch.column("prefix").slot == 0)
    found = decode(SURVEY, short, "prefix", ["longer", "strings"])
    assert found.reports == 0 and not found.identified.any()
    assert found.total_reports == len(short)
    with pytest.raises(InputError, match="none of the 1 candidates was detected in 0 reports"):
        associate(SURVEY, short, ["prefix", "ads"], candidates={"prefix": ["longer"]})


def test_no_candidates(batch: ReportBatch) -> None:
    found = decode(SURVEY, batch, "page", [])
    assert len(found.estimate) == 0
    assert found.mass_unexplained.estimate == 1
    assert Marginal.from_json(found.to_json()).names == ()
    with pytest.raises(InputError, match="list of candidates is empty"):
        associate(SURVEY, batch, ["page", "grams"], candidates={"page": [], "grams": []})


def test_corrections(batch: ReportBatch) -> None:
    candidates = [*WORDS, *(f"no{i}" for i in range(500))]
    counts = [
        int(decode(SURVEY, batch, "page", candidates, correction=c).detected.sum())
        for c in ("bonferroni", "holm", "fdr", None)
    ]
    assert counts == sorted(counts)
    assert counts[3] > len(WORDS), "uncorrected, some of 500 false ones pass at .05"


# --- joints -----------------------------------------------------------------------------------


def weeks(reports_per_client: float = 1.0) -> Trend[Marginal]:
    """Ads are blocked by 500 of 1,000 clients in the first week, and by 900 in the second."""
    parts = []
    for yes in (500, 900):
        answers = {"ads": [True] * yes + [False] * (1000 - yes)}
        reports = simulate(SURVEY, answers, rng=yes)
        parts.append(decode(SURVEY, reports, "ads", reports_per_client=reports_per_client))
    return Trend("week", ("2027-01-04", "2027-01-11"), tuple(parts))


def test_two_periods_can_be_compared_one_cannot() -> None:
    change = compare(weeks())
    assert change.changed.all() and change.periods == ("2027-01-04", "2027-01-11")
    with pytest.raises(InputError, match="at least two periods"):
        compare(Trend("week", change.periods[:1], weeks().parts[:1]))


@pytest.fixture(scope="module")
def joint(batch: ReportBatch) -> Joint:
    return associate(SURVEY, batch, ["theme", "ads"])


def test_choice_by_boolean(joint: Joint) -> None:
    expected = np.array([[0.3, 0.1], [0.1, 0.2], [0.05, 0.25]])
    assert joint.labels == (("light", "dark", "auto"), ("yes", "no"))
    assert (np.abs(joint.table - expected) / joint.standard_error).max() < 4
    assert joint.table.sum() == pytest.approx(1)
    assert joint.converged
    assert joint.gap_nats <= 0.01
    assert joint.test().p_value < 1e-9
    effect = joint.cramers_v()
    margins = np.outer(expected.sum(1), expected.sum(0))
    true_v = math.sqrt(((expected - margins) ** 2 / margins).sum())
    assert effect.low < true_v < effect.high


def test_margins_conditionals_and_cells(joint: Joint) -> None:
    ads = joint.margin("ads")
    assert ads.estimate.tolist() == pytest.approx([0.45, 0.55], abs=0.03)
    rates = joint.conditional("theme")
    assert rates.estimate.sum(axis=1) == pytest.approx(np.ones(3))
    assert rates.estimate[0, 0] == pytest.approx(0.75, abs=0.05)
    assert joint.cell("light", "yes")["table"] == joint.table[0, 0]
    for wrong in (lambda: joint.cell("light"), lambda: joint.cell("light", "maybe"),
                  lambda: joint.margin("page"), lambda: joint.test("magic")):  # fmt: skip
        with pytest.raises(InputError):
            wrong()


def test_strings_with_other() -> None:
    rng = np.random.default_rng(5)
    words = [f"x{i}" for i in range(30)]
    table = correlated(zipf(30), np.array([0.5, 0.3, 0.2]), strength=0.5)
    people = contingency(table, page=words, theme=("light", "dark", "auto")).draw(CLIENTS, rng)
    reports = simulate(SURVEY, people, rng=rng)
    shown = associate(SURVEY, reports, ["page", "theme"], candidates={"page": words}, top=4)
    expected = np.vstack([table[:4], table[4:].sum(axis=0)])
    assert shown.labels[0] == ("x0", "x1", "x2", "x3", "(other)")
    assert "all values except the 4" in shown.other[0]
    assert (np.abs(shown.table - expected) / shown.standard_error).max() < 4.5
    more = associate(
        SURVEY, reports, ["page", "theme"], candidates={"page": words}, top=4, fitted=10
    )
    assert more.labels == shown.labels
    assert np.abs(more.table - expected).sum() < 0.1
    paper = associate(
        SURVEY, reports, ["page", "theme"], candidates={"page": words}, top=4, other="product"
    )
    without = associate(
        SURVEY, reports, ["page", "theme"], candidates={"page": words}, top=4, other=False
    )
    assert without.labels[0] == ("x0", "x1", "x2", "x3")
    truth = expected[:4] / expected[:4].sum()
    error = np.abs(without.table - truth).sum()
    assert error > 2 * np.abs(shown.table[:4] / shown.table[:4].sum() - truth).sum()
    assert paper.table.shape == shown.table.shape
    with pytest.raises(InputError, match="none of the 2 candidates was detected"):
        associate(SURVEY, reports, ["page", "theme"], candidates={"page": ["q", "r"]})


def test_no_answer_is_a_category_when_there_is_some() -> None:
    rng = np.random.default_rng(6)
    themes = ["light"] * 20_000 + ["dark"] * 10_000 + [None] * 10_000
    reports = simulate(SURVEY, {"theme": themes, "ads": [True] * 40_000}, rng=rng)
    found = associate(SURVEY, reports, ["theme", "ads"])
    assert found.labels[0] == ("light", "dark", "auto", "(no answer)")
    assert found.margin("theme").estimate == pytest.approx([0.5, 0.25, 0, 0.25], abs=0.03)
    assert found.other[0] == "clients that gave none of the options"


def test_three_questions(batch: ReportBatch) -> None:
    found = associate(SURVEY, batch, ["page", "theme", "ads"], candidates={"page": WORDS}, top=2)
    assert found.table.shape == (3, 3, 2)
    assert found.mutual_independence().p_value < 1e-6
    assert found.margin("page").estimate.sum() == pytest.approx(1)
    with pytest.raises(InputError, match="two variables"):
        found.test()


def test_dictionary_questions_can_be_associated(batch: ReportBatch) -> None:
    found = associate(
        SURVEY, batch, ["grams", "prefix"], candidates={"grams": WORDS, "prefix": WORDS}, top=2
    )
    expected = zipf(12)[:2]
    assert found.reports == CLIENTS, "also those that tell nothing of one of the two"
    assert np.abs(found.table[:2, :2] - np.outer(expected, expected)).max() < 0.03


def test_not_converging_is_said(batch: ReportBatch) -> None:
    with pytest.warns(NotConvergedWarning):
        found = associate(SURVEY, batch, ["theme", "ads"], max_passes=1, nats=1e-9)
    assert not found.converged
    assert "NOT CONVERGED" in str(found)


@pytest.mark.parametrize(
    ("questions", "options", "says"),
    [
        (["theme"], {}, "two or more different"),
        (["theme", "theme"], {}, "two or more different"),
        (["theme", "ads"], {"candidates": {"page": ["x"]}}, "is not one of the questions"),
        (["page", "ads"], {}, "pass the candidates"),
    ],
)
def test_wrong_associations(
    batch: ReportBatch, questions: list[str], options: Any, says: str
) -> None:
    with pytest.raises(InputError, match=says):
        associate(SURVEY, batch, questions, **options)


# --- results ----------------------------------------------------------------------------------


@pytest.mark.slow
def test_results_travel_as_json(batch: ReportBatch, joint: Joint, tmp_path: Path) -> None:
    joint.save(tmp_path / "j.json")
    again = Joint.from_json((tmp_path / "j.json").read_text())
    assert again.table == pytest.approx(joint.table)
    assert again.labels == joint.labels
    assert again.test() == joint.test()
    assert again.cramers_v() == joint.cramers_v()
    assert again.conditional("ads").estimate == pytest.approx(joint.conditional("ads").estimate)
    assert again.provenance == joint.provenance
    with pytest.raises(InputError, match="run associate again"):
        again.test("lrt")
    marginal = decode(SURVEY, batch, "grams", ["w0", "abcdefgh1", "abcdefgh2"])
    back = Result.from_json(marginal.to_json())
    assert isinstance(back, Marginal)
    assert back.to_json() == marginal.to_json()
    assert back.groups == marginal.groups
    with pytest.raises(InputError, match="expected a Marginal"):
        Marginal.from_json(joint.to_json())
    for text in ("", "{}", "[]", '{"format":"x","kind":"Joint"}'):
        with pytest.raises(InputError):
            Result.from_json(text)


def test_results_know_where_they_came_from(joint: Joint) -> None:
    found = joint.provenance
    assert found is not None
    assert found.digest == SURVEY.sha256.hex()
    assert found.origin == "simulated, seed 11"
    assert found.library == deniable.__version__
    assert found.questions == ("theme", "ads")
    assert found.epsilon["ads"] == pytest.approx(2.0)


def test_results_are_frames(batch: ReportBatch, joint: Joint) -> None:
    marginal = decode(SURVEY, batch, "page", WORDS)
    for result, rows in ((marginal, 12), (joint, 6)):
        assert result.to_arrow().num_rows == rows
        assert len(result.to_pandas()) == rows
        assert result.to_polars().height == rows
    assert marginal.to_arrow().column("value")[0].as_py() == "w0"


def test_results_print_and_escape(batch: ReportBatch) -> None:
    evil = "<script>alert(1)</script>"
    found = decode(SURVEY, batch, "page", [*WORDS, evil])
    assert "w0" in str(found)
    assert "detected" in str(found).splitlines()[0]
    assert evil not in found._repr_html_()
    assert "&lt;script&gt;" in found._repr_html_()
    many = decode(SURVEY, batch, "page", [f"c{i}" for i in range(100)])
    assert "60 more rows" in str(many)


@pytest.mark.slow
def test_results_are_drawn(batch: ReportBatch, joint: Joint, tmp_path: Path) -> None:
    import matplotlib as mpl

    mpl.use("Agg")
    odd = [*WORDS, "a$b$", "x" * 99, "line\nbreak"]
    marginal = decode(SURVEY, batch, "page", odd)
    for result, options in ((marginal, {"truth": {"w0": 0.3}}), (joint, {})):
        axes = result.plot(**options)
        axes.figure.savefig(tmp_path / "x.png")
        assert (tmp_path / "x.png").stat().st_size > 5000
        mpl.pyplot.close("all")
    three = associate(SURVEY, batch, ["page", "theme", "ads"], candidates={"page": WORDS}, top=1)
    with pytest.raises(InputError, match="two questions"):
        three.plot()
    mpl.pyplot.close("all")
