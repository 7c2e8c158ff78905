"""What every result can do: repr, len, iteration, lookup, equality, copies, pickles, frames."""

from __future__ import annotations

import copy
import pickle
import re
import subprocess
import sys
from dataclasses import FrozenInstanceError, replace

import numpy as np
import pytest

from deniable import count, simulate
from deniable.errors import InputError, MissingPackage
from deniable.results import Interval, Joint, Marginal, Measured, Provenance, Result, Trend
from deniable.results.base import TEST_DATA
from deniable.results.rows import Rows
from tests.results.samples import discovery, editors, joint, marginal, samples

SAMPLES = samples()
each_result = pytest.mark.parametrize("result", SAMPLES.values(), ids=SAMPLES.keys())


def test_every_class_of_results_has_a_sample() -> None:
    ours = {kind for kind in Result._kinds.values() if kind.__module__.startswith("deniable.")}
    assert ours <= {type(result) for result in SAMPLES.values()}, "add it to samples.py"
    assert all(issubclass(kind, Rows) for kind in ours)


@each_result
def test_a_prompt_shows_one_short_line(result: Result) -> None:
    shown = repr(result)
    assert shown.startswith(f"<{type(result).__name__} ") and shown.endswith(">")
    assert "\n" not in shown and "array" not in shown and len(shown) < 120
    assert str(result).startswith(result.heading())


@each_result
def test_rows_are_counted_iterated_and_looked_up(result: Result) -> None:
    assert isinstance(result, Rows)
    keys = list(result._keys())
    assert len(result) == len(keys) == len(list(result)) and bool(result) == bool(keys)
    assert all(result[key] is row for key, row in zip(keys, result, strict=True))
    assert all(key in result for key in keys) and "nowhere" not in result
    for wrong in ("nowhere", 0, slice(2), ("nowhere",) * 9, None):
        with pytest.raises(KeyError) as caught:
            result[wrong]
        assert isinstance(caught.value, InputError) and "object at" not in str(caught.value)


@each_result
@pytest.mark.parametrize(
    "copied",
    [copy.copy, copy.deepcopy, *(lambda r, p=p: pickle.loads(pickle.dumps(r, p)) for p in (2, 5))],
    ids=["copy", "deepcopy", "pickle 2", "pickle 5"],
)
def test_copies_are_equal(result: Result, copied: object) -> None:
    list(result)  # type: ignore[call-overload]  # what iteration caches is not copied
    again = copied(result)  # type: ignore[operator]
    assert again is not result and type(again) is type(result)
    assert again == result and hash(again) == hash(result)
    assert again.to_json() == result.to_json() and repr(again) == repr(result)
    assert "_by_key" not in vars(again)


@each_result
def test_results_differ_if_a_number_does(result: Result) -> None:
    assert result != "something else"
    for name, value in vars(copy.copy(result)).items():
        if isinstance(value, np.ndarray) and value.size:
            other = value.copy()
            other.flat[0] = 0 if other.flat[0] else 1
            assert replace(result, **{name: other}) != result, name  # type: ignore[type-var]


def test_results_cannot_be_changed() -> None:
    with pytest.raises(FrozenInstanceError):
        marginal(0.3).reports = 8  # type: ignore[misc]


@each_result
def test_frames_agree_with_the_columns(result: Result) -> None:
    columns = {name: list(column) for name, column in result.columns().items()}
    rows = len(next(iter(columns.values())))
    arrow, pandas, polars = result.to_arrow(), result.to_pandas(), result.to_polars()
    assert arrow.column_names == list(pandas.columns) == polars.columns == list(columns)
    assert (arrow.num_rows, len(pandas), polars.height) == (rows,) * 3
    for name, column in columns.items():
        kinds = {type(value) for value in column}
        assert len(kinds) <= 1, f"{name} has one type"
        if kinds and kinds != {float}:
            assert pandas[name].tolist() == polars[name].to_list() == column


@pytest.mark.parametrize("package", ["pandas", "polars"])
def test_a_missing_package_of_frames_is_named(
    package: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(MissingPackage, match=rf"to_{package}\(\) needs {package}.*\[frames\]"):
        getattr(marginal(0.3), f"to_{package}")()


def test_data_frames_do_not_need_arrow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    assert marginal(0.3).to_pandas()["value"].tolist() == ["b", "a"]
    assert marginal(0.3).to_polars()["value"].to_list() == ["b", "a"]
    with pytest.raises(MissingPackage, match="to_arrow"):
        marginal(0.3).to_arrow()


def test_results_of_test_data_say_so_wherever_they_are_shown() -> None:
    origin = f"{TEST_DATA}; simulated"
    source = Provenance("tests", 1, "00ff", ("page",), {}, {"page": 1.0}, 7, origin, "0.1.0")
    for result in (marginal(0.3), joint(), discovery("cat")):
        marked = replace(result, provenance=source)
        shown = (repr(marked), str(marked), marked._repr_html_())
        assert all(TEST_DATA in text for text in shown)
        assert TEST_DATA not in repr(result) + str(result) + result._repr_html_()


# --- rows of each class --------------------------------------------------------------------------


def test_a_value_is_looked_up_by_its_name() -> None:
    row = marginal(0.3)["a"]
    assert (row.value, row.estimate, row.detected) == ("a", 0.3, True)
    assert [row.value for row in marginal(0.3)] == ["b", "a"], "largest first, as in the table"
    assert discovery("cat", "dog")["dog"].detected
    with pytest.raises(KeyError, match=r"^this Discovery has no 'dgo'\. Did you mean \"dog\"\?$"):
        discovery("cat", "dog")["dgo"]
    with pytest.raises(KeyError, match="list"):
        marginal(0.3)[0]


def test_a_cell_is_looked_up_by_its_categories() -> None:
    cell = joint()["vim", "yes"]
    assert cell.values == ("vim", "yes") and cell.estimate == joint().table[0, 0]
    assert joint().cell("vim", "yes") == dict(
        zip(("table", "standard_error", "low", "high", "p_value"), cell[1:], strict=True)
    )
    assert ("vim", "yes") in joint() and ("vim", "maybe") not in joint()
    with pytest.raises(KeyError, match=r"has no category 'vmi' .* mean .vim."):
        joint()["vmi", "yes"]
    with pytest.raises(InputError, match=r"one category per question \(editor, dark\), got 1"):
        joint()["vim"]


def test_a_trend_is_a_collection_of_its_parts() -> None:
    trend = SAMPLES["Trend"]
    assert isinstance(trend, Trend)
    assert trend["2027-01-05"] == marginal(0.6) and list(trend) == list(trend.parts)


# --- a joint table without its reports -----------------------------------------------------------


def test_an_unpickled_table_keeps_the_test_of_two_questions() -> None:
    again = pickle.loads(pickle.dumps(joint()))
    assert again.test() == joint().test() and again.cramers_v() == joint().cramers_v()
    with pytest.raises(InputError, match=r"unpickled .*run associate again"):
        again.test("lrt")
    assert copy.deepcopy(joint()).test("lrt") == joint().test("lrt"), "a copy has the reports"


def test_a_table_is_pickled_even_if_its_reports_are_gone() -> None:
    def closed(*_: object) -> None:
        raise InputError("the cluster was closed")

    tests = joint().tests
    assert tests is not None
    gone = replace(joint(), tests=replace(tests, association=closed))
    assert pickle.loads(pickle.dumps(gone)) == joint()


def test_numbers_with_nan_compare_equal() -> None:
    nan = Measured.normal(np.nan, np.nan)
    assert pickle.loads(pickle.dumps(nan)) == nan != Measured.normal(np.nan, 0.1)
    zeros = np.zeros(2)
    one = Interval(zeros, zeros, zeros, np.array([np.nan, 1.0]))
    assert copy.deepcopy(one) == one != replace(one, low=np.ones(2))
    assert repr(one) == "<Interval of 2 estimates>"


def test_counts_compare_and_pickle_too() -> None:
    reports = simulate(editors(), {"editor": ["vim"] * 9, "dark": [True] * 9}, rng=1)
    counts = count(editors(), reports, ["editor", "dark"])
    again = pickle.loads(pickle.dumps(counts))
    assert again == counts and hash(again) == hash(counts)
    assert counts != count(editors(), reports.select(slice(8)), ["editor", "dark"])


# --- in a notebook -------------------------------------------------------------------------------


@each_result
def test_a_notebook_shows_heading_picture_and_table(result: Result) -> None:
    html = result._repr_html_()
    assert html.startswith('<div class="deniable-result">') and html.count("<table") >= 1
    assert html.count("<div") == html.count("</div>") and "<b>nano" not in html
    if type(result) in (Marginal, Trend) and not isinstance(next(iter(result)), Joint):
        assert "<svg" in html


@each_result
def test_every_class_in_a_notebook_has_a_style(result: Result) -> None:
    _, style, body = re.split("</?style>", result._repr_html_())
    names = {name for group in re.findall(r'class="([^"]*)"', body) for name in group.split()}
    unstyled = {"mark", "cell", "more0", "less0"}
    assert not [name for name in names - unstyled if not re.search(rf"\.{name}\b", style)]
    variables = set(re.findall(r"var\((--\w+)\)", style))
    assert not variables - set(re.findall(r"(--\w+):", style)), "they are those of pages"


def test_without_packages_for_pictures_there_is_still_a_table(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "deniable.render.notebook", None)
    html = marginal(0.3)._repr_html_()
    assert "<svg" not in html and "<table" in html and "70.0%" in html


def test_a_joint_table_is_a_crosstab() -> None:
    html = joint()._repr_html_()
    rows = re.findall(r"<tr>(.*?)</tr>", html)
    assert len(rows) == 1 + 3 + 1, "a row of names, three of cells, one of margins"
    assert all(row.count("<t") - row.count("<th ") >= 0 and row.count("</t") == 4 for row in rows)
    assert "editor \\ dark" in rows[0] and "all" in rows[-1] and "100%" in rows[-1]
    share = joint().margin("dark").estimate[0]
    assert f"{100 * share:.1f}%" in rows[-1]
    assert 'class="more4" title="vim and yes"' in html and "confidence intervals" in html


def test_three_questions_make_one_crosstab_per_category_of_the_third() -> None:
    table = joint("editor", "dark", "tabs")
    html = table._repr_html_()
    assert html.count('class="crosstab"') == 2 and "<caption>tabs = yes</caption>" in html
    share = table.margin("tabs").estimate[0]
    assert f'<td class="margin">{100 * share:.1f}%</td>' in html, "the total of one table"


def test_every_result_is_read_by_a_program_that_made_none() -> None:
    read = "from sys import argv; from deniable.results import Result; Result.from_json(argv[1])"
    for name in ("Discovery", "Trend", "Series"):
        command = [sys.executable, "-c", read, SAMPLES[name].to_json()]
        done = subprocess.run(command, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr[-400:]
