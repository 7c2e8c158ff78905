"""The HTML report: everything is in it, nothing in it runs, nothing is fetched."""

from __future__ import annotations

import base64
import hashlib
import itertools
import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from click.testing import CliRunner
from matplotlib import pyplot as plt

from deniable import associate, decode, discover, simulate
from deniable.cli.app import app
from deniable.errors import InputError
from deniable.planning import clients_to_move
from deniable.render import svg, view_of
from deniable.render.colours import LIGHT
from deniable.render.html import report
from deniable.render.svg_marks import WIDE, standalone
from deniable.results import Joint, Marginal, Result, Trend
from deniable.simulation import Population, zipf
from tests.results.samples import SHARE, joint, marginal
from tests.surveys import make_survey

HOSTILE = ('<script>alert("x")</script>', '"><img src=x onerror=alert(1)>', "</svg>&amp;\u202eabc")
SURVEY = make_survey(
    f"""
[questions.browser]
kind = "choice"
options = ["firefox", "{HOSTILE[0].replace('"', chr(92) + '"')}", '{HOSTILE[1]}', "{HOSTILE[2]}"]
epsilon = 2.0
[questions.blocker]
kind = "boolean"
epsilon = 1.0
[questions.word]
kind = "string"
mechanism = "localhash"
epsilon = 4.0
[questions.word.dictionary]
protocol = "prefixes"
max_length = 5
alphabet = "abehlnortxy<>/"
""",
    name="report",
    description="<i>what</i> people use",
)


@pytest.fixture(scope="module")
def results() -> list[Result]:
    rng, n = np.random.default_rng(7), 20_000
    browser = rng.integers(0, 4, n)
    options = ("firefox", *HOSTILE)
    words = Population(("otter", "<b>", "lynx", "hare"), zipf(4))
    reports = simulate(
        SURVEY,
        {"browser": [options[i] for i in browser], "blocker": (browser < 2).tolist(),
         "word": words.draw(n, rng)},
        rng=rng,
    )  # fmt: skip
    return [
        decode(SURVEY, reports, "browser"),
        associate(SURVEY, reports, ("browser", "blocker")),
        discover(SURVEY, reports, "word"),
    ]


class Page(HTMLParser):
    """Tags with their attributes, in order, and the text between them."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in ("meta", "line", "circle", "rect", "polyline", "polygon", "input"):
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def test_hostile_strings_stay_text_and_only_our_script_may_run(results: list[Result]) -> None:
    text = report(results, survey=SURVEY)
    page = Page(text)
    assert page.open == []
    assert [tag for tag, _ in page.tags].count("script") == 1
    assert not {"img", "b", "i", "link", "iframe"} & {t for t, _ in page.tags} - {"b"}
    assert not any(name.startswith("on") for _, attrs in page.tags for name in attrs)
    assert not any("src" in attrs or "href" in attrs for _, attrs in page.tags)
    for word in HOSTILE[:2]:
        assert word not in text
    assert "\u202e" not in text


def test_the_policy_names_the_script_and_style_by_their_hashes(results: list[Result]) -> None:
    text = report(results)
    policy = next(a for t, a in Page(text).tags if "http-equiv" in a)["content"]
    for tag in ("script", "style"):
        inside = re.search(f"<{tag}>(.*?)</{tag}>", text, re.DOTALL)
        assert inside is not None
        digest = base64.b64encode(hashlib.sha256(inside[1].encode()).digest()).decode()
        assert f"{tag}-src 'sha256-{digest}'" in str(policy)
    assert "default-src 'none'" in str(policy)
    assert "unsafe" not in str(policy)


def test_every_mark_says_its_numbers_and_charts_have_alternative_text(
    results: list[Result],
) -> None:
    page = Page(report(results, survey=SURVEY))
    charts = [a for t, a in page.tags if t == "svg"]
    assert len(charts) == 2 * 4, "one for wide and one for narrow windows"
    assert all(a["role"] == "img" and a["aria-label"] for a in charts)
    marks = [i for i, (_, a) in enumerate(page.tags) if a.get("class") == "mark"]
    assert marks
    assert all(page.tags[i + 1][0] == "title" and page.tags[i][1]["tabindex"] == "0" for i in marks)


def test_a_result_without_values_or_numbers_has_a_page(results: list[Result]) -> None:
    marginal = results[0]
    assert isinstance(marginal, Marginal)
    none = np.empty(0)
    fields = ("estimate", "standard_error", "low", "high", "p_value", "detected", "identified")
    empty = replace(marginal, labels=(), **dict.fromkeys(fields, none), detection_threshold=np.nan)  # type: ignore[arg-type]
    assert "no candidates to look for in 20,000 reports" in report([empty], survey=SURVEY)
    unknown = {name: np.full(4, np.nan) for name in fields[:5]}
    page = report([replace(marginal, **unknown, detection_threshold=np.nan)], survey=SURVEY)  # type: ignore[arg-type]
    assert page.count("not identified") == 2 * 4 and "malicious" not in page
    joint = results[1]
    assert isinstance(joint, Joint)
    lost = replace(joint, standard_error=np.full(joint.table.shape, np.nan))
    assert "nan" not in re.sub(r'data-key="nan"', "", svg.heatmap(lost))
    lost = replace(joint, covariance=np.full_like(joint.covariance, np.nan))
    assert lost._repr_html_().count('class="less0"') == joint.table.size


def test_charts_of_a_subgroup_are_about_the_subgroup() -> None:
    part = replace(marginal(0.4), where={"blocker": ("yes",)}, subgroup=SHARE)
    trend = Trend("day", ("2027-01-04", "2027-01-05"), (part, part))
    for result in (part, trend):
        chart = view_of(result).chart(WIDE)
        assert "share of the subgroup" in chart and "share of clients" not in chart
        axes = result.plot()
        assert "% of the subgroup" in axes.get_xlabel() + axes.get_ylabel()
        plt.close(axes.figure)


def test_a_trend_of_one_period_shows_its_intervals_and_counts_in_the_singular() -> None:
    trend = Trend("day", ("2027-01-04",), (marginal(0.4),))
    assert view_of(trend).chart(WIDE).count('<line class="line series') == 2
    page = view_of(trend).section()
    assert "<b>1</b>day<" in page and "<b>7</b>reports<" in page and "Bands" not in page
    axes = trend.plot()
    assert [t.get_text() for t in axes.get_xticklabels()] == ["2027-01-04"]
    assert len(axes.containers) == 2, "one bar with its interval per value"
    plt.close(axes.figure)


def test_names_of_lines_stay_beside_the_plot() -> None:
    """Lines that end at the bottom have names that differ, above the days."""
    near = [[0.9, 0.9], [0.01, 0.01], [0.005, 0.005], [0.0, 0.0]]
    chart = svg.lines(
        ("2027-01-04", "2027-01-05"), "abcd", (near, near, near), WIDE, svg.ShareScale("share")
    )
    found = [float(y) for y in re.findall(r'y="([\d.]+)" class="label"', chart)]
    day = float(re.findall(r'y="([\d.]+)"[^>]*>2027-01-04<', chart)[0])
    assert len(found) == 4 and max(found) < day - 10
    assert min(b - a for a, b in itertools.pairwise(sorted(found))) >= 15


def test_three_questions_are_tested_and_their_saved_table_still_has_a_page() -> None:
    table = joint("editor", "dark", "tabs")
    page = view_of(table).section()
    assert "Joint distribution of editor, dark and tabs" in page
    assert "The questions are associated (score test of independence" in page
    assert "All cells" in view_of(Joint.from_json(table.to_json())).section()


def test_a_boolean_says_yes_and_no_in_every_form() -> None:
    reports = simulate(SURVEY, {"blocker": [True] * 300 + [False] * 700}, rng=1)
    result = decode(SURVEY, reports, "blocker")
    for text in (result._repr_html_(), view_of(result).section()):
        assert ">yes<" in text and ">no<" in text and "(other)" not in text
    axes = result.plot()
    assert "detected" not in axes.get_title(loc="left")
    plt.close(axes.figure)


def test_cells_of_a_plot_leave_room_for_long_labels() -> None:
    table = joint()
    long = replace(table, labels=(tuple("x" * 60 + c for c in "abc"), table.labels[1]))
    axes = long.plot()
    axes.figure.canvas.draw()
    assert axes.get_window_extent().width / axes.figure.dpi > 1.4, "two cells of 0.7 inches"
    plt.close(axes.figure)


def test_a_p_value_of_zero_is_too_small_to_compute(results: list[Result]) -> None:
    marginal = results[0]
    assert isinstance(marginal, Marginal)
    assert "&lt; 1e-300</td>" in report([replace(marginal, p_value=np.zeros(4))])


def test_a_saved_chart_has_its_colours_and_is_well_formed(results: list[Result]) -> None:
    for result in results:
        saved = standalone(view_of(result).chart(WIDE))
        assert ElementTree.fromstring(saved).tag == "{http://www.w3.org/2000/svg}svg"
        assert LIGHT["sure"] in saved and "var(" not in saved


def test_a_budget_for_several_answers_is_named(results: list[Result]) -> None:
    assert "each client answers once" in report(results, survey=SURVEY)
    generous = replace(SURVEY, budget=2 * SURVEY.budget)
    text = report(results, survey=generous)
    assert "answers once" not in text and "in total no more than the budget" in text


def test_the_command_reads_saved_results(results: list[Result], tmp_path: Path) -> None:
    for i, result in enumerate(results):
        result.save(tmp_path / f"{i}.json")
    survey = tmp_path / "survey.json"
    SURVEY.publish(survey)
    files = [str(tmp_path / f"{i}.json") for i in range(len(results))]
    out = tmp_path / "report.html"
    run = CliRunner().invoke(app, ["report", *files, "--survey", str(survey), "-o", str(out)])
    assert run.exit_code == 0, run.output
    again = report([Result.from_json(Path(f).read_text()) for f in files], survey=SURVEY)
    assert out.read_text() == again
    broken = tmp_path / "broken.json"
    broken.write_text("{}")
    run = CliRunner().invoke(app, ["report", str(broken), "-o", str(out)])
    assert run.exit_code == 1
    assert "not a result" in run.output
    with pytest.raises(InputError, match="at least one"):
        report([])


def test_ticks_are_round_and_inside() -> None:
    for low, high in ((0, 0.37), (-0.02, 0.11), (0, 1e-5)):
        marks = svg.ticks(low, high)
        assert 2 <= len(marks) <= 12
        assert low - 1e-12 <= marks[0] < marks[-1] <= high + 1e-12


def test_that_many_malicious_clients_do_move_an_estimate_that_far() -> None:
    """Clients who always send "firefox" without noise shift the estimate as predicted."""
    rng, n = np.random.default_rng(3), 40_000
    honest = simulate(SURVEY, {"browser": [HOSTILE[1]] * n}, rng=rng)
    evil = clients_to_move(SURVEY.question("browser"), n, 0.05)
    bits = honest.column("browser").bits.copy()
    before = decode(SURVEY, honest, "browser").estimate[0]
    bits[:evil, 0] |= 1  # option 0 is bit 0
    after = (bits[:, 0] & 1).mean()
    noise = SURVEY.question("browser").protocol.mechanisms[0].noise
    p, q = float(noise.p_star), float(noise.q_star)
    assert (after - p) / (q - p) - before == pytest.approx(0.05, rel=0.1)
