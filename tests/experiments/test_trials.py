"""Trials and records: truth by labels, distances, coverage, and written data."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from experiments.paper.records import Record
from experiments.paper.trials import (
    TrialTable,
    TrialTables,
    bloom,
    boolean,
    choice,
    coverage,
    generators,
    hellinger,
    pair,
    survey_of,
    truth_of,
)
from experiments.text_tables import show, text_table

import deniable
from deniable.errors import InputError
from deniable.simulation import contingency, play_store, zipf

CROWD = contingency([[4, 1], [3, 0], [1, 1]], x=["a", "b", "c"], paid=[False, True])


@dataclass
class Found:
    """The fields of a joint result that a trial uses."""

    labels: tuple[tuple[str, ...], ...]
    table: np.ndarray
    low: np.ndarray
    high: np.ndarray
    standard_error: np.ndarray


def found_of(labels: tuple[tuple[str, ...], ...], table: np.ndarray, error: float) -> Found:
    return Found(labels, table, table - 2 * error, table + 2 * error, np.full(table.shape, error))


def test_generators_do_not_depend_on_the_number_of_trials() -> None:
    few = [rng.random() for rng in generators(5, 2)]
    many = [rng.random() for rng in generators(5, 4)]
    assert few == many[:2]
    assert len(set(many)) == 4


def test_truth_follows_the_labels_and_adds_up_unlabelled_values() -> None:
    truth = truth_of(CROWD, (("c", "a", "(other)"), ("yes", "no")))
    np.testing.assert_allclose(truth * 10, [[1, 1], [1, 4], [0, 3]])
    # Without a label for the rest it is left out, not spread.
    np.testing.assert_allclose(truth_of(CROWD, (("b",), ("no", "yes"))) * 10, [[3, 0]])


def test_truth_refuses_two_unknown_labels() -> None:
    with pytest.raises(InputError, match="one label for everything else"):
        truth_of(CROWD, (("a", "nobody", "(other)"), ("yes", "no")))
    with pytest.raises(InputError, match="2 questions, got 1"):
        truth_of(CROWD, (("a",),))


def test_trial_tables_have_the_order_of_the_population() -> None:
    labels = (("c", "a", "(other)"), ("yes", "no"))
    found = found_of(labels, truth_of(CROWD, labels) + 0.01, 0.02)
    table = TrialTable.of(CROWD, found)
    np.testing.assert_allclose(table.truth * 10, [[4, 1], [1, 1], [3, 0]])
    np.testing.assert_allclose(table.estimate - table.truth, 0.01)
    assert table[:-1].truth.shape == (2, 2)


def test_bias_errors_and_coverage_of_trials() -> None:
    labels = (("a", "(other)"), ("no", "yes"))
    truth = truth_of(CROWD, labels)
    trials = [
        TrialTable.of(CROWD, found_of(labels, truth + shift, 0.1))
        for shift in (-0.1, 0.1, 0.3, 0.1)
    ]
    tally = TrialTables.stacked(trials)
    np.testing.assert_allclose(tally.bias(), 0.1)
    np.testing.assert_allclose(tally.bias_error(), np.std([-0.1, 0.1, 0.3, 0.1], ddof=1) / 2)
    np.testing.assert_allclose(tally.absolute(), [0.4, 0.4, 1.2, 0.4])
    np.testing.assert_allclose(tally.largest(), [0.1, 0.1, 0.3, 0.1])
    # Truths .4 .1 / .4 .1: two cells of three standard errors; one shift of four is too far.
    assert tally.hits() == (6, 8)
    assert coverage(trials, least=0.0) == (0.75, 16)


def test_tables_of_different_shapes_are_stacked_separately() -> None:
    wide, small = (("a", "(other)"), ("no", "yes")), (("(other)",), ("no", "yes"))
    trials = [
        TrialTable.of(CROWD, found_of(x, truth_of(CROWD, x), 0.1)) for x in (small, wide, wide)
    ]
    with pytest.raises(InputError, match="one shape"):
        TrialTables.stacked(trials)
    assert [t.truth.shape for t in TrialTables.by_shape(trials)] == [(2, 4), (1, 2)]
    assert coverage(trials) == (1.0, 5)
    assert coverage([])[1] == 0
    assert np.isnan(TrialTables.stacked(trials[:1]).bias_error()).all()


@pytest.mark.parametrize(
    ("found", "distance"),
    [
        ({"a": 0.64, "b": 0.36}, 0.0),
        ({}, 1.0),
        # Mass of a string that does not exist counts like mass that is missing.
        ({"a": 0.64}, np.sqrt((0.36 + 0.36) / 2)),
        ({"a": 0.64, "z": 0.36}, np.sqrt((0.36 + 0.36) / 2)),
        # Below 0 is 0; a sum above 1 is scaled down.
        ({"a": 0.64, "b": -0.2}, np.sqrt((0.36 + 0.36) / 2)),
        ({"a": 1.28, "b": 0.72}, 0.0),
    ],
)
def test_hellinger(found: dict[str, float], distance: float) -> None:
    assert hellinger({"a": 0.64, "b": 0.36}, found) == pytest.approx(distance, abs=1e-12)


def test_surveys_of_trials_have_the_papers_parameters() -> None:
    survey = survey_of(x=bloom(), y=choice(["a", 'quote " and \\'], f=0.5), z=boolean())
    loss = [survey.question(q).loss.per_report for q in "xyz"]
    np.testing.assert_allclose(loss[0], 4.3944, atol=1e-4)
    np.testing.assert_allclose(loss[2], np.log(3), atol=1e-6)
    assert survey.cohorts == 64


def test_pairs_draw_their_own_strings_only_when_asked() -> None:
    assert pair(zipf(3), zipf(2)).values["y"] == ("y000", "y001")
    first, second = (pair(zipf(30), zipf(2), rng=rng).values["x"] for rng in generators(1, 2))
    assert len(set(first)) == 30
    assert first != second


def test_play_store_counts() -> None:
    crowd = play_store()
    assert len(crowd.values["category"]) == 30
    counts = crowd.table * 9488
    np.testing.assert_allclose(counts, counts.round(), atol=1e-9)
    medical = crowd.values["category"].index("MEDICAL")
    np.testing.assert_allclose(counts[medical], [312, 83])


def test_a_record_is_written_with_seed_and_parameters(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    record = Record("trial", 7, {"reports": 10})
    show(record, "rows", [{"name": "x", "share": 0.25, "count": 12345}])
    record.keep("points", [{"xy": np.array([1.0, 2.0]), "n": np.int64(3), "none": np.nan}])
    path = record.write(tmp_path / "new")
    data = json.loads(path.read_text())
    assert (data["seed"], data["version"]) == (7, deniable.__version__)
    assert data["parameters"] == {"reports": 10}
    assert data["points"] == [{"xy": [1.0, 2.0], "n": 3, "none": None}]
    assert "x      0.25  12,345" in capsys.readouterr().out


def test_tables_of_text_show_small_numbers_and_nothing() -> None:
    assert text_table([]) == "(nothing)"
    lines = text_table([{"p": 3e-9, "v": float("nan")}, {"p": 12.3456, "v": 0.0}]).splitlines()
    assert lines[1].split() == ["3.0e-09", "nan"]
    assert lines[2].split() == ["12.35", "0"]
