"""Simulation: the scalar client's own reports, bit for bit, and populations as they are named."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path
from typing import Any

import numpy as np
import pandas
import polars
import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

import deniable
from deniable.cli.app import app
from deniable.client import Client
from deniable.columns import ReportBatch, read
from deniable.errors import InputError, LossyAnswerWarning
from deniable.simulation import (
    Coded,
    Crowd,
    Population,
    contingency,
    correlated,
    exponential,
    from_csv,
    from_spec,
    geometric,
    power,
    random_strings,
    simulate,
    simulate_days,
    simulate_stream,
    step,
    table_from_csv,
    uniform,
    zipf,
)
from deniable.simulation import crowd as crowd_module
from deniable.simulation.clear_fields import _of_random_secrets
from deniable.simulation.number_parts import TrueNumbers, noise_numbers
from deniable.survey import Survey
from tests.replayed import replayed_client
from tests.single_reports import single_reports
from tests.surveys import ANY_SURVEY, EDITOR_AND_PAGE, make_survey
from tests.vectors import make

SURVEYS = {s.name: s for s in make.surveys()}
WORDS = ["", "a", "abc", "example.com", "Ünïcødé ☃", "\ud800", "a" * 300, None]


def secrets_of(n: int) -> np.ndarray[Any, np.dtype[np.uint8]]:
    raw = b"".join(hashlib.sha256(b"secret %d" % i).digest() for i in range(n))
    return np.frombuffer(raw, np.uint8).reshape(n, 32)


@pytest.mark.parametrize(
    "survey",
    # Subsets are drawn by another algorithm; tests/statistical/test_subset.py compares shares.
    [s for s in SURVEYS.values() if s.name != "subset"],
    ids=lambda s: s.name,
)
def test_equals_the_real_client_on_the_same_secrets_and_random_words(survey: Survey) -> None:
    n = 64
    secrets = secrets_of(n)
    answers = [make.answers(survey, WORDS[i % len(WORDS)], i) for i in range(n)]
    coded = {q.name: Coded.of([a[q.name] for a in answers]) for q in survey.questions}
    crowd = Crowd(survey, {name: c.levels for name, c in coded.items()})
    codes = {name: c.codes for name, c in coded.items()}
    kept = crowd.permanent(codes, rng=np.random.default_rng(0), secrets=secrets)

    def words(size: int, client: int) -> bytes:
        return make.stretch(f"client {client}", size)

    def fresh(state: Any) -> Any:
        m = state.mechanism
        rand = [words(used[i] + m.rand_size, i)[used[i] :] for i in range(n)]
        for i in range(n):
            used[i] += m.rand_size
        if isinstance(state, TrueNumbers):
            uniform = np.array([int.from_bytes(own, "little") for own in rand], np.uint32)
            rows = noise_numbers(m, state.numbers, uniform).tolist()
        else:
            rows = [
                m.fresh(int.from_bytes(row.tobytes(), "little"), own)
                for row, own in zip(state.bits, rand, strict=True)
            ]
        joined = b"".join(row.to_bytes(m.size, "little") for row in rows)
        return np.frombuffer(joined, np.uint8).reshape(n, m.size)

    used = [0] * n
    bits = tuple(tuple(fresh(part) for part in parts) for parts in kept.parts)
    simulated = single_reports(ReportBatch(survey, kept.cohort, kept.clear, bits, "simulated"))
    for i in range(n):
        client = replayed_client(
            survey, secret=secrets[i].tobytes(), entropy=lambda size, i=i: words(size, i)
        )
        assert client.answer(answers[i]) == simulated[i], answers[i]


STRING = make_survey(
    """
[questions.word]
kind = "string"
bits = 40
hashes = 2
cohorts = 3
p = 0.2
q = 0.7
f = 0.4
""",
    name="stats",
    collect="repeatedly",
)


def deviations(batch: Any, value: bytes) -> float:
    """Largest standardised difference of set and clear bits from q* and p*, by cohort and bit."""
    column = batch.column("word")
    worst = 0.0
    for cohort in range(3):
        rows = np.unpackbits(column.bits[column.cohort == cohort], axis=1, bitorder="little")
        true = column.mechanism.true_bits(value, cohort)
        for bit in range(40):
            noise = column.mechanism.noise
            p = float(noise.q_star if true >> bit & 1 else noise.p_star)
            sd = (p * (1 - p) / len(rows)) ** 0.5
            worst = max(worst, abs(rows[:, bit].mean() - p) / sd)
    return worst


def test_bits_come_out_at_p_star_and_q_star() -> None:
    """120 bits, 5.5 standard deviations: false alarm below 1e-5. The wrong value must be caught."""
    batch = simulate(STRING, ["w"] * 60_000, rng=np.random.default_rng(5))
    assert deviations(batch, b"w") < 5.5
    assert deviations(batch, b"x") > 20


def test_a_mechanism_without_a_simulator_is_simulated_by_its_own_encoder(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """120 bits, 5.5 standard deviations: false alarm below 1e-5. The wrong value must be caught."""
    monkeypatch.setattr(crowd_module, "SIMULATORS", {})
    batch = simulate(STRING, ["w"] * 6_000, rng=np.random.default_rng(5))
    assert deviations(batch, b"w") < 5.5
    assert deviations(batch, b"x") > 7
    # With secrets, permanent noise is the clients' own: a bit is kept with probability q or 1 − p.
    secrets = secrets_of(300)
    days = list(
        simulate_days(STRING, ["w"] * 300, 60, rng=np.random.default_rng(6), secrets=secrets)
    )
    mechanism = STRING.questions[0].protocol.mechanisms[0]
    mean = np.mean([np.unpackbits(d.bits[0][0], axis=1, bitorder="little") for d in days], axis=0)
    for i in range(300):
        client = Client(STRING, secret=secrets[i].tobytes(), limits=ANY_SURVEY)
        true = mechanism.true_bits(b"w", client.cohort)
        kept = mechanism.permanent(true, client.cohort, secrets[i].tobytes())
        expected = np.array([0.7 if kept >> b & 1 else 0.2 for b in range(40)])
        # 12,000 means of 60 bits against 6.2 standard deviations of a Bernoulli(1/2).
        assert np.abs(mean[i] - expected).max() < 6.2 * 0.5 / 60**0.5


@pytest.mark.parametrize("protocol", ["grams", "levels"])
def test_a_protocol_without_a_bulk_draw_draws_for_each_client(protocol: str) -> None:
    survey = SURVEYS["vectors"]
    drawn = _of_random_secrets(
        survey.questions[1 if protocol == "grams" else 2].protocol, 5000, np.random.default_rng(7)
    )
    if protocol == "grams":
        _, counts = np.unique(drawn, axis=0, return_counts=True)
        assert len(counts) == 10 and abs(counts / 500 - 1).max() < 0.22  # 5 sd
    else:
        shares = np.bincount(drawn[:, 0]) / 5000
        assert shares == pytest.approx([1 / 7, 2 / 7, 3 / 7, 1 / 7], abs=0.035)


def test_permanent_noise_is_kept_over_days() -> None:
    rng = np.random.default_rng(6)
    days = list(simulate_days(STRING, ["w"] * 30_000, 2, rng=rng))
    assert (days[0].cohort == days[1].cohort).all()
    bits = [np.unpackbits(d.column("word").bits, axis=1, bitorder="little") for d in days]
    assert (bits[0] != bits[1]).any()
    clear = np.array(
        [
            b
            for b in range(40)
            if not any(
                STRING.questions[0].protocol.mechanisms[0].true_bits(b"w", c) >> b & 1
                for c in range(3)
            )
        ]
    )
    both = (bits[0][:, clear] & bits[1][:, clear]).mean()
    phi, p, q = 0.2, 0.2, 0.7
    kept, independent = phi * q**2 + (1 - phi) * p**2, (phi * q + (1 - phi) * p) ** 2
    sd = (kept / bits[0][:, clear].size) ** 0.5
    assert abs(both - kept) < 5 * sd
    assert abs(both - independent) > 20 * sd, "the broken twin that draws it anew is told apart"


def test_clear_fields_are_uniform_without_secrets() -> None:
    survey = SURVEYS["vectors"]
    batch = simulate(survey, {"grams": ["a"] * 50_000}, rng=np.random.default_rng(7))
    pairs, counts = np.unique(batch.clear[1], axis=0, return_counts=True)
    assert len(pairs) == 10
    assert abs(counts / 5000 - 1).max() < 0.07  # 5 sd
    levels = np.bincount(batch.clear[2][:, 0]) / 50_000
    assert levels == pytest.approx([1 / 7, 2 / 7, 3 / 7, 1 / 7], abs=0.011)
    assert (np.bincount(batch.cohort) > 0).all()


def test_seeds_repeat_and_threads_do_not_matter(monkeypatch: pytest.MonkeyPatch) -> None:
    def once() -> Any:
        return simulate(STRING, ["w"] * 20_000, rng=np.random.default_rng(9))

    first = once()
    assert once() == first
    monkeypatch.setattr("deniable.kernels.chunks.thread_count", lambda threads: 1)
    monkeypatch.setattr("deniable.kernels.noise.noisy_rows.thread_count", lambda threads: 1)
    assert once() == first
    assert simulate(STRING, ["w"] * 20_000, rng=np.random.default_rng(10)) != first


def test_questions_left_out_are_not_answered() -> None:
    survey = SURVEYS["urls"]
    batch = simulate(survey, {"ads": [True] * 5000}, rng=np.random.default_rng(1))
    rate = np.unpackbits(batch.column("url").bits, axis=1).mean()
    assert rate == pytest.approx(0.25, abs=0.005)


def test_stream_equals_its_parts_in_bounded_pieces() -> None:
    rng = np.random.default_rng(2)
    population = Population(("a", "b"), uniform(2))
    batches = list(
        simulate_stream(
            STRING, lambda n, rng: {"word": population.draw(n, rng)}, 1000, rng=rng, rows=300
        )
    )
    assert [len(b) for b in batches] == [300, 300, 300, 100]


@pytest.mark.parametrize(
    ("values", "says"),
    [
        ({"word": ["a"], "wrod": ["b"]}, "no question 'wrod'"),
        ({"word": [1]}, "must be a string or None"),
        ({}, "got none"),
    ],
)
def test_wrong_answers_are_refused(values: Any, says: str) -> None:
    with pytest.raises(InputError, match=says):
        simulate(STRING, values, rng=np.random.default_rng(0))


@pytest.mark.parametrize("secrets", [np.zeros((2, 16), np.uint8), np.zeros((2, 32), np.int64)])
def test_secrets_of_another_size_or_type_are_refused(secrets: Any) -> None:
    with pytest.raises(InputError, match=r"secrets must be uint8\[N, 32\]"):
        simulate(STRING, ["w", None], rng=np.random.default_rng(1), secrets=secrets)


def test_more_wrong_answers() -> None:
    two = SURVEYS["urls"]
    rng = np.random.default_rng(0)
    with pytest.raises(InputError, match="give a mapping with the answers to url"):
        simulate(two, ["a"], rng=rng)
    with pytest.raises(InputError, match="one answer per client"):
        simulate(two, {"url": ["a"], "ads": [True, False]}, rng=rng)
    with pytest.raises(InputError, match="codes must be from -1 to 0"):
        Coded(("a",), np.array([1], np.int32))


@given(st.lists(st.sampled_from(["a", "b", None, "c"]), max_size=50))
def test_coding_comes_back(values: list[str | None]) -> None:
    for given_as in (values, tuple(values), np.array(values, object)):
        coded = Coded.of(given_as)
        assert [None if c < 0 else coded.levels[c] for c in coded.codes] == values


def test_frames_are_columns_too() -> None:
    import pyarrow as pa

    assert Coded.of(pa.array(["a", None, "a"])).codes.tolist() == [0, -1, 0]
    assert Coded.of(np.array([True, False])).levels == (True, False)
    assert Coded.of([float("nan"), "x"]).codes.tolist() == [-1, 0]


# --- populations ------------------------------------------------------------------------------


def test_shapes() -> None:
    assert zipf(3) == pytest.approx(np.array([6, 3, 2]) / 11)
    # The paper's Table I: margins 19.0, 15.6, 12.7, 10.2, 8.4 per cent.
    assert 100 * power()[:5] == pytest.approx([19.0, 15.6, 12.7, 10.2, 8.4], abs=0.15)
    assert geometric(3, 0.5) == pytest.approx(np.array([4, 2, 1]) / 7)
    assert step().sum() == pytest.approx(1)
    assert step()[[0, 4, 8]] == pytest.approx([0.12, 0.06, 0.28 / 92])
    assert exponential(2, 1.0)[0] == pytest.approx(1 / (1 + np.exp(-1)))
    assert power(floor=0.001).min() == pytest.approx(0.001 / 1.1)


def test_draws_follow_the_weights() -> None:
    population = Population(tuple("abcd"), zipf(4))
    counts = np.bincount(population.draw(100_000, np.random.default_rng(3)).codes) / 1e5
    assert counts == pytest.approx(zipf(4), abs=0.008)
    assert population.share("a") == pytest.approx(12 / 25)
    assert population.share("z") == 0


@given(st.floats(0, 1), st.integers(2, 6), st.integers(2, 6))
def test_correlated_tables_keep_their_margins(strength: float, m: int, n: int) -> None:
    x, y, z = zipf(m), geometric(n), uniform(2)
    table = correlated(x, y, strength=strength)
    assert table.sum(1) == pytest.approx(x)
    assert table.sum(0) == pytest.approx(y)
    triple = correlated(x, y, z, strength=strength)
    assert triple.sum((1, 2)) == pytest.approx(x)
    assert triple.sum((0, 1)) == pytest.approx(z)


def test_joint_populations() -> None:
    joint = contingency([[3, 1], [0, 4]], x=["a", "b"], y=[True, False])
    drawn = joint.draw(80_000, np.random.default_rng(4))
    cells = np.bincount(drawn["x"].codes * 2 + drawn["y"].codes, minlength=4) / 80_000
    assert cells == pytest.approx([3 / 8, 1 / 8, 0, 4 / 8], abs=0.01)
    assert joint.margin("y").weights == pytest.approx([3 / 8, 5 / 8])


def test_random_strings_differ() -> None:
    found = random_strings(676, 2, np.random.default_rng(1))
    assert len(set(found)) == 676
    with pytest.raises(InputError, match="only 676 different strings"):
        random_strings(677, 2, np.random.default_rng(1))


@pytest.mark.parametrize(
    "bad",
    [
        lambda: Population(("a",), np.array([-1.0])),
        lambda: Population((), np.array([])),
        lambda: Population(("a",), np.array([1.0, 2.0])),
        lambda: contingency([[1, 2]], x=["a"], y=["b"]),
        lambda: contingency([[0, 0]], x=["a"], y=["b", "c"]),
        lambda: correlated(uniform(2), strength=0.5),
        lambda: step(8),
        lambda: from_spec("zpif:n=3", np.random.default_rng(0)),
        lambda: from_spec("zipf:n", np.random.default_rng(0)),
        lambda: from_spec("zipf:m=3", np.random.default_rng(0)),
    ],
)
def test_impossible_populations_are_refused(bad: Any) -> None:
    with pytest.raises(InputError):
        bad()


def test_populations_from_files(tmp_path: Path) -> None:
    path = tmp_path / "p.csv"
    path.write_text('value,weight\r\na,3\r\n"b, c",1\r\n\'=x,1\r\n')
    population = from_csv(path)
    assert population.values == ("a", "b, c", "=x")
    assert population.weights == pytest.approx([0.6, 0.2, 0.2])
    path.write_text("value,weight\na,x\n")
    with pytest.raises(InputError, match="line 2: expected a number"):
        from_csv(path)
    path.write_text("value;weight\na;1\n")
    with pytest.raises(InputError, match="header value,weight"):
        from_csv(path)
    path.write_text(",yes,no\na,1,2\nb,3,4\n")
    table = table_from_csv(path, "x", "y")
    assert table.values == {"x": ("a", "b"), "y": ("yes", "no")}
    assert table.table == pytest.approx(np.array([[1, 2], [3, 4]]) / 10)


# --- the command ---------------------------------------------------------------------------------


def run(*args: str) -> Any:
    return CliRunner().invoke(app, ["simulate", *args])


def test_command_with_values(tmp_path: Path) -> None:
    values = tmp_path / "v.csv"
    values.write_text("browser,ads,url\nFirefox,yes,example.com\n,0,\nSafari,,x\n")
    out = tmp_path / "r.parquet"
    got = run(str(make.HERE / "survey-once.toml"), "--values", str(values), "-o", str(out))
    assert got.exit_code == 0, got.output
    assert "3 reports" in got.output
    assert len(read(out)) == 3


def test_command_with_populations(tmp_path: Path) -> None:
    table = tmp_path / "t.csv"
    table.write_text(",yes,no\nFirefox,3,1\nSafari,1,5\n")
    args = [
        str(make.HERE / "survey-once.toml"), "--population", "url=zipf:n=20,length=8",
        "--table", f"browser,ads={table}", "--clients", "1000", "--seed", "1",
    ]  # fmt: skip
    files = [tmp_path / "a.parquet", tmp_path / "b.parquet"]
    for file in files:
        assert run(*args, "-o", str(file), "--json").exit_code == 0
    assert read(files[0]) == read(files[1]), "a seed repeats exactly"
    assert len(read(files[0])) == 1000


@pytest.mark.parametrize(
    ("args", "says", "code"),
    [
        ([], "give either --values", 2),
        (["--population", "zipf", "--clients", "5"], "name the question of population", 2),
        (["--population", "url=zipf"], "needs --clients", 2),
        (["--population", "url=zipff", "--clients", "5"], "expected a .csv file or a shape", 1),
        (["--table", "a,b", "--clients", "5"], "expected --table", 2),
        (["--population", "none=zipf", "--clients", "5"], "no question 'none'", 1),
    ],
)
def test_command_called_wrongly(args: list[str], says: str, code: int, tmp_path: Path) -> None:
    out = tmp_path / "r.parquet"
    got = run(str(make.HERE / "survey-once.toml"), *args, "-o", str(out))
    assert got.exit_code == code, got.output
    assert says in got.output
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "is empty"),
        ("nope\nx\n", "no question 'nope'"),
        (
            "ads,uri,browser\n",
            "no question 'uri'; its questions are url, browser, ads. Did you mean",
        ),
        ("ads,url,url\nyes,a,b\n", "occurs twice"),
        (
            "ads,url\nyes,a\n",
            "no column for question 'browser'; its columns are ads, url: if nobody",
        ),
        ("ads,url,browser\nmaybe,a,\n", "line 2: expected yes, no"),
        ("ads,url,browser\nyes\n", "line 2: expected 3 cells"),
    ],
)
def test_command_with_bad_values(text: str, says: str, tmp_path: Path) -> None:
    got, out = simulated_values(text, tmp_path)
    assert got.exit_code == 1
    assert says in got.output
    assert not out.exists()


def simulated_values(text: str, folder: Path, *options: str) -> tuple[Any, Path]:
    """Simulate the answers of a CSV file; return the outcome, and the file of reports."""
    values, out = folder / "v.csv", folder / "r.dn"
    values.write_text(text)
    survey = str(make.HERE / "survey-once.toml")
    return run(survey, "--values", str(values), "-o", str(out), *options), out


def test_command_with_a_question_that_nobody_answers(tmp_path: Path) -> None:
    got, out = simulated_values("ads,url\nyes,a\n", tmp_path, "--unanswered", "browser")
    assert got.exit_code == 0 and out.exists()
    got, _ = simulated_values("ads,url\nyes,a\n", tmp_path, "--unanswered", "url")
    assert got.exit_code == 1 and "has a column for question 'url'" in got.output
    got, _ = simulated_values("ads,url\nyes,a\n", tmp_path, "--unanswered", "bowser")
    assert got.exit_code == 1 and 'Did you mean "browser"?' in got.output


@pytest.mark.filterwarnings("always::deniable.errors.LossyAnswerWarning")
def test_command_warns_of_answers_that_are_lost(tmp_path: Path) -> None:
    text = "ads,url,browser\nyes,a,firefox\nno,b,Netscape\n,,Netscape\n"
    got, out = simulated_values(text, tmp_path)
    assert got.exit_code == 0 and out.exists()
    assert "warning: question 'browser': answers that are not options count as no" in got.output
    assert "(3 answers, such as 'firefox', 'Netscape')" in got.output
    assert 'Did you mean "Firefox"?' in got.output
    out.unlink()
    got, out = simulated_values(text, tmp_path, "--strict")
    assert got.exit_code == 1 and not out.exists()
    assert "error: question 'browser'" in got.output
    fine, _ = simulated_values("ads,url,browser\nyes,a,Firefox\n", tmp_path, "--strict")
    assert fine.exit_code == 0 and "warning" not in fine.output


# --- answers that are lost --------------------------------------------------------------------

LOSSY = make_survey(
    EDITOR_AND_PAGE
    + """
[questions.word]
kind = "string"
epsilon = 2
[questions.dark]
kind = "boolean"
epsilon = 1
"""
)


def test_a_simulation_warns_of_answers_that_are_lost_or_refuses_them() -> None:
    rng = np.random.default_rng(1)
    values = {
        "editor": ["vim", "nano", None, "nano", "Vim"],
        "page": ["abcd", "abcde", "ab.c", "", None],
        "word": ["abcdefgh" * 99, "\ud800", "Ü", "", None],
        "dark": [True, False, None, True, True],
    }
    with pytest.warns(LossyAnswerWarning) as caught:
        batch = simulate(LOSSY, values, rng=rng)
    assert len(batch) == 5 and caught[0].filename == __file__
    assert str(caught[0].message).splitlines() == [
        "question 'editor': answers that are not options count as no answer (3 answers, such as "
        "'nano', 'Vim'). The options are vim, emacs.",
        "question 'page': strings of more than 4 characters are cut (1 answer, such as 'abcde').",
        "question 'page': characters outside the alphabet are reported as one unknown symbol (1 "
        "answer, such as 'ab.c').",
    ]
    for name in ("editor", "page"):
        with pytest.raises(InputError, match=f"question '{name}'"):
            simulate(LOSSY, {name: values[name]}, rng=rng, strict=True)
        with pytest.raises(InputError, match=f"question '{name}'"):
            next(simulate_days(LOSSY, {name: values[name]}, 2, rng=rng, strict=True))
    simulate(LOSSY, {"word": values["word"], "dark": values["dark"]}, rng=rng, strict=True)


def test_a_stream_warns_once_of_the_answers_that_were_drawn() -> None:
    levels, never = ("vim", "nano", "ed"), 2

    def draw(n: int, rng: np.random.Generator) -> dict[str, Coded]:
        return {"editor": Coded(levels, rng.integers(0, never, n, dtype=np.int32))}

    stream = simulate_stream(LOSSY, draw, 1000, rng=np.random.default_rng(1), rows=100)
    with pytest.warns(LossyAnswerWarning) as caught:
        assert sum(map(len, stream)) == 1000
    (one,) = caught
    assert "answers, such as 'nano')" in str(one.message) and "'ed'" not in str(one.message)
    (count,) = re.findall(r"\((\d+) answers", str(one.message))
    assert int(count) == pytest.approx(500, abs=100)  # 6 sd
    stream = simulate_stream(LOSSY, draw, 1000, rng=np.random.default_rng(1), strict=True)
    with pytest.raises(InputError, match="'nano'"):
        next(stream)


@pytest.mark.parametrize("column", ["vim", b"vim", {"vim": 3}, {"vim"}, 5, None, True])
def test_a_column_is_a_sequence(column: Any) -> None:
    with pytest.raises(InputError, match=r"question 'editor': .* one answer per client"):
        simulate(LOSSY, {"editor": column}, rng=np.random.default_rng(1))


@pytest.mark.parametrize("answer", ["yes", 1, 0, 1.0, [], {}])
def test_a_boolean_question_takes_booleans(answer: Any) -> None:
    with pytest.raises(InputError, match="boolean"):
        simulate(LOSSY, {"dark": [answer]}, rng=np.random.default_rng(1))


def test_columns_of_numpy_and_pandas_keep_their_booleans_and_gaps() -> None:
    for column in (
        [np.True_, np.False_, None],
        np.array([True, False, None]),
        pandas.Series([True, False, None], dtype="boolean"),
        pandas.Series([True, False, None]),
    ):
        coded = Coded.of(column)
        assert coded.levels == (True, False) and all(type(x) is bool for x in coded.levels)
        assert coded.codes.tolist() == [0, 1, -1]


def test_unknown_questions_of_a_simulation_get_a_hint() -> None:
    with pytest.raises(InputError, match='Did you mean "editor"'):
        simulate(LOSSY, {"editors": ["vim"]}, rng=np.random.default_rng(1))


def test_top_level_names() -> None:
    assert deniable.simulate is simulate
    assert all(hasattr(deniable, name) for name in deniable.__all__)
    with pytest.raises(AttributeError, match="no attribute 'nope'"):
        deniable.nope  # noqa: B018


def test_frames_are_answers() -> None:
    survey = Survey.load(Path(__file__).parents[2] / "examples" / "survey.toml")
    answers = {"homepage": ["a.com", "b.org", None], "browser": ["Firefox", "Safari", "another"],
               "ad_blocker": [True, False, True]}  # fmt: skip
    made = [
        simulate(survey, values, rng=np.random.default_rng(1))
        for values in (answers, pandas.DataFrame(answers), polars.DataFrame(answers))
    ]
    for other in made[1:]:
        assert np.array_equal(other.bits[1][0], made[0].bits[1][0])
        assert np.array_equal(other.bits[0][0], made[0].bits[0][0])
