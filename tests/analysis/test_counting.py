"""Counts that replace reports: made in shards, added, kept in files, and refused where wrong."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from experiments.paper.trials import bloom, boolean, choice, survey_of

import deniable
from deniable import Survey, count
from deniable.analysis.categories import axes_of
from deniable.analysis.counting import PairLayout, read_counts
from deniable.analysis.source import Source
from deniable.analysis.tallying import count_all
from deniable.columns import ReportBatch, write
from deniable.compute.executors import threads
from deniable.errors import InputError
from deniable.inference.models.base import TableSettings
from deniable.results import Joint
from deniable.simulation import Population, contingency, simulate, zipf
from tests.surveys import survey_toml

TOML = survey_toml(
    """
[questions.page]
kind = "string"
epsilon = 5.0
hashes = 2
cohorts = 8
[questions.browser]
kind = "choice"
options = ["Firefox", "Safari", "Chromium"]
epsilon = 3.0
[questions.ads]
kind = "boolean"
epsilon = 3.0
[questions.word]
kind = "string"
mechanism = "localhash"
epsilon = 3.0
values = 19
families = 8
[questions.word.dictionary]
protocol = "prefixes"
max_length = 3
alphabet = "a-z"
[questions.token]
kind = "string"
epsilon = 5.0
[questions.token.dictionary]
protocol = "ngrams"
max_length = 4
alphabet = "a-z"
""",
    name="pages",
)
SURVEY = Survey.from_toml(TOML)
VALUES: dict[str, tuple[Any, ...]] = {
    "page": tuple(f"page{i}" for i in range(12)),
    "browser": ("Firefox", "Safari", "Chromium"),
    "ads": (True, False),
    "word": ("cat", "dog", "ox", "emu", "bee"),
    "token": ("abcd", "efgh", "ijkl", "mnop"),
}
LISTED = {"page": VALUES["page"], "word": VALUES["word"], "token": VALUES["token"]}


def crowd(clients: int, seed: int) -> tuple[ReportBatch, dict[str, list[Any]]]:
    """Everyone who has the first browser tends to have the first value of every question."""
    rng = np.random.default_rng(seed)
    drawn = {
        name: np.array(Population(values, zipf(len(values))).draw(clients, rng).codes)
        for name, values in VALUES.items()
    }
    tied = (drawn["browser"] == 0) & (rng.random(clients) < 0.5)
    answers = {
        name: [VALUES[name][i] for i in np.where(tied, 0, codes)] for name, codes in drawn.items()
    }
    return simulate(SURVEY, answers, rng=rng), answers


BATCH, ANSWERS = crowd(60_000, 5)
PAIRS = [
    ("page", "browser"), ("page", "ads"), ("word", "ads"), ("browser", "ads"), ("page", "word"),
    ("token", "browser"),
]  # fmt: skip


def associated(reports: Any, pair: tuple[str, str], **settings: Any) -> Joint:
    listed = {name: LISTED[name] for name in pair if name in LISTED}
    return deniable.associate(SURVEY, reports, list(pair), candidates=listed, top=3, **settings)


def from_counts(pair: tuple[str, str], **settings: Any) -> Joint:
    return associated(count(SURVEY, BATCH, pair), pair, **settings)


@pytest.mark.slow
@pytest.mark.parametrize("pair", PAIRS, ids="×".join)
def test_questions_of_every_kind(pair: tuple[str, str]) -> None:
    """Within six standard errors of the truth, and finding the association that there is."""
    joint = from_counts(pair)
    given = [[_said(v) for v in ANSWERS[name]] for name in pair]
    for i, x in enumerate(joint.labels[0]):
        for j, y in enumerate(joint.labels[1]):
            is_x, is_y = (_is(label, joint.labels[k], given[k]) for k, label in ((0, x), (1, y)))
            truth = float((is_x & is_y).mean())
            assert abs(joint.table[i, j] - truth) < 6 * joint.standard_error[i, j], (x, y)
    assert joint.table.sum() == pytest.approx(1) and joint.made_from == "counts"
    assert joint.test().p_value < 1e-6 and joint.cramers_v().low > 0
    assert "from counts of their bits" in str(joint) and np.isnan(joint.log_likelihood)


def _said(value: Any) -> str:
    return {True: "yes", False: "no"}.get(value, value) if isinstance(value, bool) else value


def _is(label: str, labels: tuple[str, ...], given: list[str]) -> np.ndarray:
    values = np.array(given)
    return ~np.isin(values, labels) if label == "(other)" else values == label


def test_two_booleans_are_estimated_as_by_the_likelihood() -> None:
    """A table of bits has as many moments as cells: both ways find the same, and its errors."""
    survey = survey_of(x=boolean(p=0.2, q=0.7), y=boolean(p=0.3, q=0.8))
    rng = np.random.default_rng(2)
    truth = contingency([[0.3, 0.2], [0.1, 0.4]], x=(True, False), y=(True, False))
    batch = simulate(survey, truth.draw(50_000, rng), rng=rng)
    counts = count(survey, batch, ["x", "y"])
    by_counts = deniable.associate(survey, counts, ["x", "y"])
    by_likelihood = deniable.associate(survey, batch, ["x", "y"], nats=1e-5)
    assert by_counts.table == pytest.approx(by_likelihood.table, abs=2e-5)
    assert by_counts.standard_error == pytest.approx(by_likelihood.standard_error, rel=1e-3)
    assert by_counts.test().statistic == pytest.approx(by_likelihood.test().statistic, rel=0.02)


@pytest.mark.slow
def test_categories_are_those_of_the_reports() -> None:
    """Marginals from counts choose what marginals from reports choose, Other and all."""
    for pair in PAIRS:
        mine, theirs = from_counts(pair), associated(BATCH, pair)
        assert mine.labels == theirs.labels
        for one, other in zip(mine.other, theirs.other, strict=True):  # shares differ by noise
            assert one.split(", about")[0] == other.split(", about")[0]


def test_a_local_hash_counts_as_its_reports_do() -> None:
    questions = [SURVEY.question("word"), SURVEY.question("ads")]
    counts = count(SURVEY, BATCH, ["word", "ads"])
    one_number = counts.pairs[:, :-1, -1].sum(axis=1)
    assert (one_number == counts.pairs[:, -1, -1]).all()
    of_reports = partial(count_all, Source(BATCH, SURVEY), threads())
    _, axes = axes_of(questions, LISTED, of_reports, TableSettings(top=3))
    listed = {"word": LISTED["word"]}
    joint = deniable.associate(SURVEY, counts, ["word", "ads"], candidates=listed, top=8)
    assert axes[0].labels == joint.labels[0], "all fitted categories are shown"


# --- adding, keeping ----------------------------------------------------------------------------


def test_counts_of_shards_add_up(tmp_path: Path) -> None:
    pair = ["page", "browser"]
    whole = count(SURVEY, BATCH, pair, executor="threads:2")
    parts = [count(SURVEY, BATCH.select(slice(i, None, 3)), pair) for i in range(3)]
    parts[2].save(tmp_path / "third.npz")
    write(tmp_path / "first.parquet", BATCH.select(slice(0, None, 3)))
    mixed = [tmp_path / "first.parquet", parts[1], str(tmp_path / "third.npz")]
    for counts in (parts[0] + parts[1] + parts[2], count(SURVEY, mixed, pair)):
        assert np.array_equal(counts.pairs, whole.pairs)
    assert whole.reports == len(BATCH)
    direct = associated(whole, ("page", "browser"))
    later = associated(mixed, ("page", "browser"))
    assert np.array_equal(direct.table, later.table)
    assert later.provenance is not None and later.provenance.reports == len(BATCH)
    assert Joint.from_json(later.to_json()).test() == direct.test()


def test_as_many_cohorts_as_there_can_be() -> None:
    """They are 2¹⁶, one more than a 16-bit integer can hold."""
    survey = survey_of(x=bloom(bits=8, cohorts=65_536), y=boolean(p=0.2, q=0.7))
    batch = simulate(survey, {"x": ["a"] * 50, "y": [True] * 50}, rng=np.random.default_rng(4))
    assert PairLayout(survey.questions).strata == (1, 1, 65_536)
    counts = count(survey, batch, ["x", "y"])
    assert np.array_equal(counts.pairs[:, -1, -1], np.bincount(batch.cohort, minlength=65_536))


def test_counts_of_other_surveys_and_questions_are_refused(tmp_path: Path) -> None:
    counts = count(SURVEY, BATCH, ["browser", "ads"])
    newer = Survey.from_toml(TOML.replace("version = 1", "version = 2"))
    with pytest.raises(InputError, match="expected counts of browser × ads"):
        count(newer, counts, ["browser", "ads"])
    with pytest.raises(InputError, match="expected counts of ads × browser"):
        count(SURVEY, counts, ["ads", "browser"])
    with pytest.raises(InputError, match="the survey and the order of questions must be the same"):
        counts + replace(counts, survey="00")
    with pytest.raises(InputError, match="two different questions"):
        count(SURVEY, BATCH, ["browser", "ads", "page"])
    with pytest.raises(InputError, match="these are no counts"):
        replace(counts, pairs=counts.pairs - counts.reports)
    with pytest.raises(InputError, match="these are no counts"):
        replace(
            counts, pairs=np.where(np.indices(counts.pairs.shape).any(axis=0), counts.pairs, 10**6)
        )
    with pytest.raises(InputError, match="expected integers"):
        replace(counts, pairs=counts.pairs / 2)
    with pytest.raises(InputError, match=r"must end in \.npz"):
        counts.save(tmp_path / "counts.csv")
    (tmp_path / "no.npz").write_bytes(b"nothing of the kind")
    with pytest.raises(InputError, match="does not hold counts"):
        read_counts(tmp_path / "no.npz")
    counts.save(tmp_path / "c.npz")
    with pytest.raises(InputError, match="is given twice"):
        associated([tmp_path / "c.npz", tmp_path / "c.npz"], ("browser", "ads"))


def test_what_counts_cannot_do_is_refused() -> None:
    joint = from_counts(("browser", "ads"))
    assert joint.mutual_independence() == joint.test()
    with pytest.raises(InputError, match="needs the reports"):
        joint.test("lrt")
    with pytest.raises(InputError, match="associate the reports themselves"):
        wide = bloom(bits=1024, cohorts=128)
        count(survey_of(x=wide, y=wide), BATCH, ["x", "y"])


def test_a_choice_that_some_left_out_has_no_answer_as_a_category() -> None:
    survey = survey_of(x=choice(("a", "b"), p=0.05, q=0.9), y=boolean(p=0.05, q=0.9))
    rng = np.random.default_rng(3)
    values = {"x": ["a"] * 4000 + [None] * 4000, "y": [True] * 4000 + [False] * 4000}
    batch = simulate(survey, values, rng=rng)
    joint = deniable.associate(survey, count(survey, batch, ["x", "y"]), ["x", "y"])
    assert joint.labels[0] == ("a", "b", "(no answer)")
    assert joint.cell("(no answer)", "no")["table"] == pytest.approx(0.5, abs=0.03)


@pytest.mark.parametrize("more", ["", 'mechanism = "localhash"\nvalues = 17\nfamilies = 2\n'])
def test_levels_that_do_not_tell_a_string_do_not_mislead(more: str) -> None:
    """Of six-letter strings only the last of three levels speaks; of short ones, all but the first.

    Read for its string, a prefix shared with others would add all of their clients to it.
    """
    head = TOML[: TOML.index("[questions.page]")]
    survey = Survey.from_toml(
        f'{head}[questions.word]\nkind = "string"\nepsilon = 4.0\n{more}'
        '[questions.word.dictionary]\nprotocol = "prefixes"\nmax_length = 6\nalphabet = "a-z"\n'
        "levels = [2, 4, 6]\n[questions.ads]\nkind = 'boolean'\nepsilon = 3.0\n"
    )
    rng = np.random.default_rng(7)
    words = ("abcdef", "abcdxy", "ab", "zzzzzz")
    codes = rng.choice(4, 60_000, p=[0.4, 0.3, 0.2, 0.1])
    ads = rng.random(60_000) < np.where(codes == 0, 0.7, 0.2)
    values = {"word": [words[i] for i in codes], "ads": ads.tolist()}
    batch = simulate(survey, values, rng=rng)
    counts = count(survey, batch, ["word", "ads"])
    joint = deniable.associate(
        survey, counts, ["word", "ads"], candidates={"word": words[:3]}, top=3
    )
    assert set(joint.labels[0][:3]) == set(words[:3])
    for i, word in enumerate(words[:3]):
        for said, chosen in (("yes", ads), ("no", ~ads)):
            cell = joint.cell(word, said)
            truth = float(((codes == i) & chosen).mean())
            assert abs(cell["table"] - truth) < 5 * cell["standard_error"], (word, said)


@pytest.mark.parametrize("other", [False, "product"])
def test_other_models_of_other(other: Any) -> None:
    joint = from_counts(("page", "browser"), other=other)
    assert joint.table.sum() == pytest.approx(1)
    if other == "product":
        kept = from_counts(("page", "browser"))
        assert joint.labels == kept.labels
        assert joint.table == pytest.approx(kept.table, abs=0.03)


def test_a_handful_of_reports_says_little() -> None:
    for few in (1, 2, 5):
        counts = count(SURVEY, BATCH.select(slice(0, few)), ["browser", "ads"])
        joint = associated(counts, ("browser", "ads"))
        assert joint.reports == few and (joint.high - joint.low).max() > 0.5
        assert 0 <= joint.test().p_value <= 1 and joint.cramers_v().high == 1
