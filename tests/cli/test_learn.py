"""decode, associate and discover as a person types them, with right and wrong input."""

from __future__ import annotations

import csv
import hashlib
import json
import os
from datetime import date
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner, Result

from deniable import Survey, decode, simulate
from deniable.cli.app import app
from deniable.columns import ReportBatch, write
from deniable.columns.batch import to_bodies
from deniable.formatting import percent, visible
from deniable.render.html import report
from deniable.results import Discovery, Joint, Marginal, Trend
from deniable.results import Result as AnyResult
from deniable.simulation import Population, contingency, zipf
from deniable.store import Upload
from deniable.store import open as open_store
from tests.surveys import survey_toml

TOML = survey_toml(
    """
[questions.page]
kind = "string"
epsilon = 5.0
[questions.browser]
kind = "choice"
options = ["Firefox", "Safari"]
epsilon = 3.0
[questions.ads]
kind = "boolean"
epsilon = 3.0
[questions.word]
kind = "string"
mechanism = "localhash"
epsilon = 4.0
[questions.word.dictionary]
protocol = "prefixes"
max_length = 3
alphabet = "a-z"
""",
    name="pages",
    description="pages and browsers",
)
PAGES = ("=cmd()|x", "b[bold]c", "\x1b[31mred", "plain", "other")
WORDS = ("cat", "dog", "ox", "emu")
CLIENTS = 6000
SURVEY = Survey.from_toml(TOML)


def crowd(clients: int, seed: int) -> ReportBatch:
    rng = np.random.default_rng(seed)
    table = [[0.4, 0.1], [0.1, 0.4]]
    both = contingency(table, browser=("Firefox", "Safari"), ads=(True, False))
    pages, words = Population(PAGES, zipf(5)), Population(WORDS, zipf(4))
    answers = both.draw(clients, rng) | {
        "page": pages.draw(clients, rng), "word": words.draw(clients, rng)
    }  # fmt: skip
    return simulate(SURVEY, answers, rng=rng)


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a survey, reports, candidates, and a store of two weeks."""
    folder = tmp_path_factory.mktemp("analysis")
    (folder / "survey.toml").write_text(TOML)
    write(folder / "reports.parquet", crowd(CLIENTS, 1))
    (folder / "pages.txt").write_text("\n".join(PAGES) + "\nabsent\n")
    with open_store(folder / "store.db", create=True) as store:
        store.add_survey(SURVEY)
        for i, day in enumerate((date(2027, 1, 5), date(2027, 1, 6), date(2027, 1, 12))):
            bodies = to_bodies(crowd(CLIENTS, 10 + i)).tobytes()
            seal = hashlib.sha256(SURVEY.digest + bodies).digest()[:16]
            store.append([Upload(os.urandom(16), SURVEY.digest, CLIENTS, bodies, day, seal)])
    return folder


@pytest.fixture(autouse=True)
def _there(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(here)


def run(*args: str) -> Result:
    return CliRunner().invoke(app, args)


def fine(*args: str) -> str:
    """Standard output; on standard error stands only what was written, without a terminal."""
    got = run(*args)
    assert got.exit_code == 0, got.output
    assert all(line.startswith("Wrote ") for line in got.stderr.splitlines()), got.stderr
    return got.stdout


# --- decode --------------------------------------------------------------------------------------


def test_decode_prints_a_table() -> None:
    shown = fine("decode", "survey.toml", "reports.parquet", "--question", "browser")
    assert "6,000 reports; 2 of 2 candidates detected" in shown
    assert "Firefox" in shown and "95% interval" in shown and "%" in shown


def test_decode_as_json_is_what_python_finds() -> None:
    args = ("--question", "page", "--candidates", "pages.txt", "--alpha", "0.01")
    told = AnyResult.from_json(fine("decode", "survey.toml", "reports.parquet", *args, "--json"))
    assert isinstance(told, Marginal)
    again = decode(SURVEY, "reports.parquet", "page", [*PAGES, "absent"], alpha=0.01)
    assert np.array_equal(told.estimate, again.estimate)
    assert told.detected.tolist() == again.detected.tolist()
    assert told.alpha == 0.01


def test_decode_warns_of_suspicious_reports(tmp_path: Path) -> None:
    write(tmp_path / "copies.parquet", crowd(CLIENTS, 1).select(np.zeros(2_000, int)))
    args = ("decode", "survey.toml", str(tmp_path / "copies.parquet"), "--question", "browser")
    shown = run(*args).stdout
    assert shown.startswith("SUSPICIOUS REPORTS: they do not look like answers of honest clients")
    assert shown.rstrip().endswith("SUSPICIOUS REPORTS: see the warning above.")
    silent = run(*args, "--json")
    assert json.loads(silent.stdout)["fit"]["problems"]
    assert "SUSPICIOUS REPORTS" in silent.stderr


def test_decoded_strings_cannot_harm(tmp_path: Path) -> None:
    """They are hostile input: no escape codes on a terminal, no formulas in a spreadsheet."""
    output = tmp_path / "page.csv"
    args = ("--question", "page", "--candidates", "pages.txt", "-o", str(output))
    shown = fine("decode", "survey.toml", "reports.parquet", *args)
    assert "\x1b" not in shown
    assert "b[bold]c" in shown and "\N{REPLACEMENT CHARACTER}[31mred" in shown
    with output.open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert "'=cmd()|x" in {row["value"] for row in rows}
    assert visible("a\u202eb\n") == "a\N{REPLACEMENT CHARACTER}b\N{REPLACEMENT CHARACTER}"


def test_every_ending_is_written(tmp_path: Path) -> None:
    import pyarrow.parquet as pq

    endings = ("csv", "parquet", "json", "png", "svg", "html")
    outputs = [part for e in endings for part in ("-o", str(tmp_path / f"b.{e}"))]
    fine("decode", "survey.toml", "reports.parquet", "--question", "browser", *outputs)
    saved = AnyResult.from_json((tmp_path / "b.json").read_text())
    assert pq.read_table(tmp_path / "b.parquet").to_pydict() == saved.to_arrow().to_pydict()
    assert (tmp_path / "b.png").read_bytes()[:4] == b"\x89PNG"
    assert "<svg" in (tmp_path / "b.svg").read_text()
    page = (tmp_path / "b.html").read_text()
    assert "Firefox" in page and "pages and browsers" in page, "the survey's words are in it"


@pytest.mark.slow
def test_candidates_from_what_was_found(tmp_path: Path) -> None:
    """A CSV or JSON of one analysis is the list of the next; JSON keeps what was detected."""
    csv_file, json_file = tmp_path / "p.csv", tmp_path / "p.json"
    args = ("decode", "survey.toml", "reports.parquet", "--question", "page")
    fine(*args, "--candidates", "pages.txt", "-o", str(csv_file), "-o", str(json_file))
    again = json.loads(fine(*args, "--candidates", str(csv_file), "--json"))
    assert set(again["labels"]) == {*PAGES, "absent"}
    again = json.loads(fine(*args, "--candidates", str(json_file), "--json"))
    assert "absent" not in again["labels"] and "plain" in again["labels"]


def test_several_files_and_a_folder_count_all(tmp_path: Path) -> None:
    for i in range(2):
        write(tmp_path / f"{i}.dn", crowd(1000, i))
    one = json.loads(fine("decode", "survey.toml", str(tmp_path), "--question", "ads", "--json"))
    two = json.loads(
        fine("decode", "survey.toml", str(tmp_path / "0.dn"), str(tmp_path / "1.dn"),
             "--question", "ads", "--json")
    )  # fmt: skip
    assert one["reports"] == two["reports"] == 2000
    assert one["estimate"] == two["estimate"]


# --- stores and trends ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    "dates, reports",
    [((), 3), (("--since", "2027-01-06"), 2), (("--until", "2027-01-05"), 1),
     (("--since", "2027-01-06", "--until", "2027-01-06"), 1)],
)  # fmt: skip
def test_days_of_a_store(dates: tuple[str, ...], reports: int) -> None:
    got = fine("decode", "survey.toml", "store.db", "--question", "ads", "--json", *dates)
    assert json.loads(got)["reports"] == reports * CLIENTS


def test_a_trend(tmp_path: Path) -> None:
    picture = tmp_path / "t.svg"
    got = fine("decode", "pages", "store.db", "--question", "browser", "--by", "week", "--json",
               "-o", str(picture))  # fmt: skip
    told = AnyResult.from_json(got)
    assert isinstance(told, Trend)
    assert told.periods == ("2027-01-04", "2027-01-11")
    assert told.reports.tolist() == [2 * CLIENTS, CLIENTS]
    assert "<svg" in picture.read_text()
    page = report([told])
    assert "polyline" in page and "per value and week" in page and "Safari" in page
    shown = fine("decode", "pages@1", "store.db", "--question", "browser", "--by", "day")
    assert "2027-01-06" in shown and "Safari" in shown
    by_week = ("decode", "pages@1", "store.db", "--question", "browser", "--by", "week")
    assert "2027-01-04 to 2027-01-11: no significant change of" in fine(*by_week)


@pytest.mark.slow
def test_association_by_week(tmp_path: Path) -> None:
    args = ("associate", "survey.toml", "store.db", "--question", "browser", "--question", "ads")
    picture = tmp_path / "s.svg"
    told = AnyResult.from_json(fine(*args, "--by", "week", "--json", "-o", str(picture)))
    assert "<svg" in picture.read_text()
    assert report([told]).count("Joint distribution of") == 2, "a section for each week"
    assert isinstance(told, Trend)
    assert told.periods == ("2027-01-04", "2027-01-11")
    first, second = told.parts
    assert isinstance(first, Joint) and isinstance(second, Joint)
    assert (first.reports, second.reports) == (2 * CLIENTS, CLIENTS)
    assert first.test().p_value < 1e-6, "a part keeps its test without its reports"
    assert "2027-01-11" in fine(*args, "--by", "week", "--since", "2027-01-12")


def test_a_period_that_cannot_be_analysed_is_named(here: Path) -> None:
    args = ("associate", "survey.toml", "store.db", "--question", "page", "--question", "ads")
    (here / "absent.txt").write_text("nobody holds this\n")
    shown = fine(
        *args, "--candidates", "page=absent.txt", "--by", "day", "--alpha", "1e-9", "--json"
    )
    told = AnyResult.from_json(shown)
    assert isinstance(told, Trend)
    assert len(told.skipped) == 3 and "none of the 1 candidates" in told.skipped["2027-01-05"]


# --- associate and discover ----------------------------------------------------------------------


def test_associate_prints_table_and_test() -> None:
    shown = fine(
        "associate", "survey.toml", "reports.parquet", "--question", "browser", "--question", "ads"
    )
    assert "browser \\ ads" in shown
    assert "are associated" in shown and "Cramér's V" in shown


def test_associate_three_questions_with_candidates(tmp_path: Path) -> None:
    output = tmp_path / "j.json"
    fine("associate", "survey.toml", "reports.parquet", "--question", "page", "--question",
         "browser", "--question", "ads", "--candidates", "page=pages.txt", "--top", "2",
         "-o", str(output))  # fmt: skip
    joint = AnyResult.from_json(output.read_text())
    assert isinstance(joint, Joint)
    assert joint.table.shape == (3, 2, 2)
    assert joint.labels[0][-1] == "(other)"


@pytest.mark.slow
def test_counts_of_days_add_up_to_those_of_the_store(tmp_path: Path) -> None:
    pair = ("--question", "browser", "--question", "ads")
    files = [str(tmp_path / name) for name in ("first.npz", "rest.npz", "both.npz")]
    for file, days in zip(files, (("--until", "2027-01-05"), ("--since", "2027-01-06")),
                          strict=False):  # fmt: skip
        fine("count", "survey.toml", "store.db", *pair, *days, "-o", file)
    said = json.loads(fine("count", "survey.toml", *files[:2], *pair, "-o", files[2], "--json"))
    assert said["reports"] == 3 * CLIENTS and said["bytes"] == Path(files[2]).stat().st_size
    wanted = fine("associate", "survey.toml", files[2], *pair, "--json")
    got = fine("associate", "survey.toml", *files[:2], *pair, "--json")
    assert json.loads(got)["table"] == json.loads(wanted)["table"]
    shown = fine("associate", "survey.toml", files[2], *pair)
    assert "from counts of their bits" in shown and "are associated" in shown


@pytest.mark.slow
def test_discover_finds_what_nobody_listed(tmp_path: Path) -> None:
    output = tmp_path / "w.json"
    shown = fine("discover", "survey.toml", "reports.parquet", "-o", str(output), "--stages")
    assert "look at every string" in shown
    found = AnyResult.from_json(output.read_text())
    assert isinstance(found, Discovery)
    assert set(found.strings) == set(WORDS)
    only = json.loads(
        fine("discover", "survey.toml", "reports.parquet", "--accept", "[a-d].*", "--json")
    )
    assert set(only["strings"]) == {"cat", "dog"}


# --- wrong input ---------------------------------------------------------------------------------

WRONG = {
    "no reports": (("decode", "survey.toml"), 2, "Missing argument 'REPORTS...'"),
    "no survey": (("decode", "none.toml", "reports.parquet"), 1, "no survey file none.toml"),
    "no survey in the store": (("decode", "other", "store.db"), 1, "there is no survey 'other' in"),
    "no such file": (("decode", "survey.toml", "none.parquet", "--question", "ads"), 1,
                     "there is no file or folder none.parquet"),
    "no such store": (("decode", "survey.toml", "none.db", "--question", "ads"), 1, "none.db"),
    "which question": (("decode", "survey.toml", "reports.parquet"), 2,
                       "choose one of the questions page, browser, ads, word"),
    "another question": (("decode", "survey.toml", "reports.parquet", "--question", "pagr"), 1,
                         "pagr"),
    "no candidates": (("decode", "survey.toml", "reports.parquet", "--question", "page"), 1,
                      "pass the candidates"),
    "candidates of a choice": (("decode", "survey.toml", "reports.parquet", "--question",
                                "browser", "--candidates", "pages.txt"), 1, "options are known"),
    "days of a file": (("decode", "survey.toml", "reports.parquet", "--question", "ads",
                        "--since", "2027-01-01"), 1, "need one store, which knows the day"),
    "trend of a file": (("discover", "survey.toml", "reports.parquet", "--by", "day"), 1,
                        "need one store, which knows the day"),
    "no day": (("decode", "survey.toml", "store.db", "--question", "ads", "--since", "May"), 2,
               "May"),
    "days without reports": (("decode", "survey.toml", "store.db", "--question", "ads", "--since",
                              "2030-01-01"), 1, "no reports of"),
    "one question": (("associate", "survey.toml", "reports.parquet", "--question", "ads"), 2,
                     "at least two questions"),
    "another question by day": (("associate", "survey.toml", "store.db", "--question", "pagr",
                                 "--question", "ads", "--by", "day"), 1, "no question 'pagr'"),
    "three at once": (("count", "survey.toml", "reports.parquet", "-o", "x.npz"), 1,
                      "name two different questions"),
    "counts as reports": (("associate", "survey.toml", "counts.npz", "--question", "ads",
                           "--question", "browser"), 1, "does not hold counts"),
    "candidates of what": (("associate", "survey.toml", "reports.parquet", "--question", "ads",
                            "--question", "browser", "--candidates", "pages.txt"), 2,
                           "--candidates QUESTION=FILE"),
    "not discoverable": (("discover", "survey.toml", "reports.parquet", "--question", "page"), 1,
                         "dictionary"),
    "a broken expression": (("discover", "survey.toml", "reports.parquet", "--accept", "("), 1,
                            "("),
    "reading of prefixes": (("discover", "survey.toml", "reports.parquet", "--reading", "paper"),
                            1, 'need protocol "ngrams"'),
    "alpha": (("discover", "survey.toml", "reports.parquet", "--alpha", "1"), 2, "alpha"),
    "ending": (("decode", "survey.toml", "reports.parquet", "-o", "x.xlsx"), 2,
               "expected a file name that ends in .csv"),
    "no folder": (("decode", "survey.toml", "reports.parquet", "-o", "none/x.csv"), 2,
                  "the folder none does not exist"),
    "not parquet": (("decode", "survey.toml", "broken.parquet", "--question", "ads"), 1,
                    "broken.parquet as a Parquet file"),
    "candidates not text": (("decode", "survey.toml", "reports.parquet", "--question", "page",
                             "--candidates", "broken.parquet"), 1, "is not UTF-8"),
    "no column value": (("decode", "survey.toml", "reports.parquet", "--question", "page",
                         "--candidates", "columns.csv"), 1, "expected a column 'value'"),
    "no result": (("decode", "survey.toml", "reports.parquet", "--question", "page",
                   "--candidates", "other.json"), 1, "not a result"),
    "empty list": (("decode", "survey.toml", "reports.parquet", "--question", "page",
                    "--candidates", "empty.txt"), 1, "is empty"),
    "weights": (("discover", "survey.toml", "reports.parquet", "--words", "weights.csv"), 1,
                "expected numbers in the column 'weight'"),
    "empty folder": (("decode", "survey.toml", "nothing", "--question", "ads"), 1,
                     "the folder nothing has no files of reports"),
}  # fmt: skip


@pytest.mark.parametrize("args, code, words", WRONG.values(), ids=WRONG.keys())
def test_wrong_input_is_explained(args: tuple[str, ...], code: int, words: str, here: Path) -> None:
    (here / "broken.parquet").write_bytes(b"\xff\xfenonsense")
    (here / "columns.csv").write_text("name,weight\na,1\n")
    (here / "weights.csv").write_text("value,weight\na,many\n")
    (here / "other.json").write_text("{}")
    (here / "empty.txt").write_text("")
    (here / "counts.npz").write_text("no counts")
    (here / "nothing").mkdir(exist_ok=True)
    got = run(*args)
    assert got.exit_code == code, got.output
    assert words in got.output
    assert got.exception is None or isinstance(got.exception, SystemExit)


def test_shares_for_people() -> None:
    assert [percent(x) for x in (1.0, 0.05, 0.00123, -0.002)] == [
        "100%",
        "5.00%",
        "0.123%",
        "-0.200%",
    ]
