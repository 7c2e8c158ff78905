"""A cluster gives what one machine gives, bit for bit, and workers may die."""

from __future__ import annotations

import gc
import json
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from datetime import date
from functools import partial
from pathlib import Path
from time import sleep
from typing import Any

import dask
import numpy as np
import pytest
from click.testing import CliRunner
from distributed import Client, LocalCluster

import deniable.store
from deniable import ReportBatch, associate, decode, discover, simulate
from deniable.analysis.source import Source
from deniable.columns import write
from deniable.columns.batch import to_bodies
from deniable.compute.cluster import CONNECTIONS, Cluster
from deniable.compute.executors import Threads, executor_of, threads
from deniable.errors import ClusterError, InputError, MissingPackage
from deniable.inference.association.independence import mutual_independence, score_test
from deniable.inference.joint.evidence import gather
from deniable.inference.joint.solver import maximise
from deniable.results import Joint
from deniable.store import Upload
from tests.surveys import make_survey

SURVEY = make_survey(
    """
[questions.page]
kind = "string"
epsilon = 4.0
[questions.dark]
kind = "boolean"
epsilon = 2.0
[questions.word]
kind = "string"
epsilon = 8.0
[questions.word.dictionary]
protocol = "ngrams"
gram = 2
max_length = 4
alphabet = "a-d"
""",
    name="habits",
)
PAGES = ["a.org", "b.org", "c.org", "d.org"]
DAY = date(2025, 3, 3)


@pytest.fixture(scope="module")
def client() -> Iterator[Any]:
    """A client of a scheduler with two workers on this machine, which is not the default one."""
    one = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": "127.0.0.1:0"}
    with LocalCluster(host="127.0.0.1", **one) as own, Client(own, set_as_default=False) as client:
        yield client
        for connection in CONNECTIONS.values():
            connection.close()


@pytest.fixture(scope="module")
def batch() -> ReportBatch:
    rng = np.random.default_rng(7)
    page = rng.choice(3, 24_000, p=[0.5, 0.3, 0.2])
    values = {
        "page": [PAGES[i] for i in page],
        "dark": (rng.random(len(page)) < 0.2 + 0.3 * page).tolist(),
        "word": [("abba", "dad")[i] for i in rng.integers(2, size=len(page))],
    }
    return simulate(SURVEY, values, rng=rng)


@pytest.fixture(scope="module")
def store(batch: ReportBatch, tmp_path_factory: pytest.TempPathFactory) -> str:
    """Segments, which every worker reads, and what is staged."""
    url = f"sqlite:///{tmp_path_factory.mktemp('cluster') / 'reports.db'}"
    with deniable.store.open(url, create=True) as opened:
        opened.add_survey(SURVEY)
        for start in range(0, len(batch), 4000):
            some, key = to_bodies(batch.select(slice(start, start + 4000))), os.urandom(16)
            opened.append([Upload(key, SURVEY.digest, 4000, some.tobytes(), DAY, key)])
            if start == 12_000:
                opened.compact(at_least=1000)
    return url


def tables(joint: Joint) -> list[Any]:
    assert joint.gap_nats <= 0.01
    return [
        joint.table, joint.covariance, joint.log_likelihood,
        joint.test().statistic, joint.test().p_value, joint.cramers_v().estimate,
    ]  # fmt: skip


def same(one: list[Any], other: list[Any]) -> None:
    """Bit for bit: what is made from counts."""
    for mine, its in zip(one, other, strict=True):
        np.testing.assert_array_equal(mine, its)


def near(one: list[Any], other: list[Any]) -> None:
    """To far less than the certified gap: what is fitted. A process that compiled a kernel orders
    its sums otherwise than one that loads it from the cache, which shows in the last bit of a
    pass; with warm caches all bits are equal."""
    for mine, its in zip(one, other, strict=True):
        np.testing.assert_allclose(mine, its, rtol=1e-5, atol=1e-7)


def both(verb: Callable[..., Any], client: Any) -> tuple[Any, Any]:
    return verb(executor=Threads(2)), verb(executor=client)


def test_a_cluster_keeps_maps_adds_and_lets_go(client: Any) -> None:
    cluster = executor_of(client)
    held = cluster.hold(partial(pow, 2), range(1, 12))
    squares = held.hold(np.multiply, range(11))
    assert list(squares.map(int)) == [i * 2 ** (i + 1) for i in range(11)]
    assert squares.sum(int) == sum(i * 2 ** (i + 1) for i in range(11))
    assert squares.gathered().results == tuple(i * 2 ** (i + 1) for i in range(11))
    assert list(cluster.map(partial(pow, 2), range(500))) == [2**i for i in range(500)]
    assert len(held) == len(squares) == 11
    kept = [future.key for future in squares._futures]
    assert {key for keys in client.has_what().values() for key in keys} >= set(kept)
    del squares, held
    gc.collect()
    for _ in range(100):
        if not {key for keys in client.has_what().values() for key in keys} & set(kept):
            break
        sleep(0.1)
    else:
        pytest.fail("workers still hold results that nobody wants")


def test_errors_of_the_work_are_not_taken_for_deaths(client: Any) -> None:
    def missing(_: int) -> int:
        raise FileNotFoundError("reports.parquet")

    cluster = executor_of(client)
    with pytest.raises(FileNotFoundError, match="reports"):
        list(cluster.hold(missing, range(4)).map(abs))
    with pytest.raises(FileNotFoundError, match="reports"):
        list(cluster.map(missing, range(4)))


def test_decode(client: Any, batch: ReportBatch, store: str) -> None:
    for reports in (batch, store):
        here, there = both(partial(decode, SURVEY, reports, "page", PAGES), client)
        same([here.estimate, here.standard_error], [there.estimate, there.standard_error])
        assert there.reports == len(batch)


def test_associate(client: Any, batch: ReportBatch, store: str, tmp_path: Path) -> None:
    write(tmp_path / "reports.parquet", batch)
    for reports in (tmp_path / "reports.parquet", [batch, store]):
        stages: dict[str, float] = {}
        # One source for both: the order of staged reports is drawn anew for each.
        source = Source(reports, SURVEY).partitions
        given = [ReportBatch.concat([part.load() for part in source])]
        there = associate(
            SURVEY, given, ["page", "dark"], candidates={"page": PAGES}, executor=client,
            progress=stages.__setitem__,
        )  # fmt: skip
        here = associate(SURVEY, given, ["page", "dark"], candidates={"page": PAGES})
        near(tables(here), tables(there))
        assert stages["reading reports"] == 1
    assert "fitting the table" in stages


@pytest.mark.parametrize("reading", ["fused", "paper"])
def test_discover(client: Any, store: str, batch: ReportBatch, reading: str) -> None:
    here, there = both(partial(discover, SURVEY, batch, "word", reading=reading), client)
    assert here.strings == there.strings
    assert set(there.strings) == {"abba", "dad"}
    same([here.estimate, here.p_value], [there.estimate, there.p_value])


def rows(count: int, size: int) -> tuple[Any, Any]:
    rng = np.random.default_rng(3)
    value = rng.integers(size, size=count)
    pair = []
    for shown in (value, np.where(rng.random(count) < 0.4, value, rng.integers(size, size=count))):
        noisy = np.where(rng.random(count) < 0.6, shown, rng.integers(size, size=count))
        array = np.full((count, size), 0.25, np.float32)
        array[np.arange(count), noisy] = 1.0
        pair.append(array)
    return pair[0], pair[1]


def test_shuffles_and_strata(client: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Reports are shuffled within pieces."""
    monkeypatch.setattr("deniable.inference.association.independence.MAX_GATHERED", 0)
    monkeypatch.setattr(
        "deniable.inference.association.independence.MIN_REPORTS_PER_FREEDOM", 1 << 30
    )
    found = []
    for executor in (Threads(2), client):
        evidence = gather([rows(9000, 4)], (4, 4), executor=executor)
        evidence = evidence.stratified(np.arange(9000) % 3)
        test = score_test(evidence, shuffles=19)
        assert test.reference == "shuffles"
        found.append([test.statistic, test.p_value])
    near(*found)


def test_three_variables(client: Any) -> None:
    """Likelihood ratios of several variables at once."""
    found = []
    for executor in (Threads(2), client):
        (x, y), (z, _) = rows(9000, 4), rows(9000, 2)
        evidence = gather([(x, y, z)], (4, 4, 2), executor=executor)
        mutual = mutual_independence(evidence)
        found.append([mutual.statistic, mutual.p_value])
    near(*found)


@pytest.mark.parametrize("stage", ["reading reports", "fitting the table"])
def test_a_worker_killed_in_the_middle_changes_nothing(
    client: Any, batch: ReportBatch, stage: str
) -> None:
    """SIGKILL while the reports are read, or between two passes: the same table."""
    killed: list[int] = []

    def kill(told: str, _: float) -> None:
        if told == stage and not killed:
            killed.append(next(iter(client.run(os.getpid).values())))
            os.kill(killed[0], signal.SIGKILL)

    ask = partial(associate, SURVEY, batch, ["page", "dark"], candidates={"page": PAGES})
    here, there = ask(), ask(executor=client, progress=kill)
    assert killed
    near(tables(here), tables(there))


def test_a_worker_killed_within_a_pass_changes_nothing(client: Any) -> None:
    pair = rows(20_000, 6)
    whole = gather([pair], (6, 6))
    there = gather([pair], (6, 6), executor=client)
    table = np.full((6, 6), 1 / 36)
    before = there.evaluate(table)
    holding = client.has_what()  # a worker that has just started may hold nothing
    address = max(holding, key=lambda worker: len(holding[worker]))
    held = there.rows.hold(partial(_dying, client.run(os.getpid)[address]))
    assert len(list(held.map(_count))) == len(held)
    assert address not in client.nthreads()
    here_pass, there_pass = whole.evaluate(table), there.evaluate(table)
    near([here_pass.gradient], [there_pass.gradient])
    near([before.gradient], [there_pass.gradient])
    fits = [maximise(evidence).log_likelihood for evidence in (there, whole)]
    assert fits[0] == pytest.approx(fits[1], abs=0.01)


def _dying(victim: int, piece: Any) -> Any:
    if os.getpid() == victim:
        os.kill(victim, signal.SIGKILL)
    return piece


def _count(piece: Any) -> int:
    return int(piece.count)


def test_the_command_takes_a_scheduler(client: Any, batch: ReportBatch, tmp_path: Path) -> None:
    from deniable.cli.app import app

    (tmp_path / "survey.json").write_bytes(SURVEY.canonical)
    write(tmp_path / "reports.parquet", batch)
    (tmp_path / "pages.txt").write_text("\n".join(PAGES))
    scheduler = client.scheduler.address.removeprefix("tcp://")
    printed = []
    for executor in ("threads:1", f"dask://{scheduler}"):
        result = CliRunner().invoke(app, [
            "associate", str(tmp_path / "survey.json"), str(tmp_path / "reports.parquet"),
            "--question", "page", "--question", "dark", "--json",
            "--candidates", f"page={tmp_path / 'pages.txt'}", "--executor", executor,
        ])  # fmt: skip
        assert result.exit_code == 0, result.output
        printed.append(json.loads(result.stdout))
    here, there = printed
    assert here.keys() == there.keys() and here["labels"] == there["labels"]
    near([here["table"], here["standard_error"]], [there["table"], there["standard_error"]])


def self_signed(folder: Path, name: str) -> dict[str, str]:
    """Make a key and a certificate as docs/how-to/cluster.md does."""
    files = {"key": str(folder / f"{name}.key"), "cert": str(folder / f"{name}.pem")}
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "rsa:3072", "-nodes", "-days", "2", "-subj",
         f"/CN={name}", "-keyout", files["key"], "-out", files["cert"]],
        check=True, capture_output=True,
    )  # fmt: skip
    return files


@pytest.mark.skipif(shutil.which("openssl") is None, reason="makes certificates by openssl")
def test_certificates_keep_strangers_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Who has no certificate, or one that the scheduler does not trust, is turned away."""
    monkeypatch.setattr("deniable.compute.cluster.NO_WORKER_SECONDS", 0.1)
    own, stranger = (self_signed(tmp_path, name) for name in ("cluster", "stranger"))
    command = [
        sys.executable, "-m", "distributed.cli.dask_scheduler", "--no-dashboard",
        "--protocol", "tls", "--host", "127.0.0.1", "--port", "0",
        "--tls-ca-file", own["cert"], "--tls-cert", own["cert"], "--tls-key", own["key"],
    ]  # fmt: skip
    scheduler = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    assert scheduler.stderr is not None
    try:
        said = (re.search(r"tls://\S+:\d+", line) for line in scheduler.stderr)
        address = next(found[0] for found in said if found)
        wrong, tls = "cannot connect to a Dask scheduler", "distributed.comm.tls"
        nobody = {"key": None, "cert": None}
        for client, expected in ((own, "has had no workers"), (nobody, wrong), (stranger, wrong)):
            files = {f"{tls}.client.{name}": file for name, file in client.items()}
            with (
                dask.config.set({f"{tls}.ca-file": own["cert"], **files}),
                pytest.raises(ClusterError, match=expected),
            ):
                executor_of(address)
            if client is own:
                CONNECTIONS.pop(address).close()
                monkeypatch.setattr("deniable.compute.cluster.CONNECT_SECONDS", 1.0)
        with pytest.raises(ClusterError, match=wrong):
            executor_of(address.replace("tls://", "dask://"))
    finally:
        scheduler.kill()
        scheduler.communicate()


def test_what_is_wrong_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    assert executor_of(None) is executor_of("threads") is threads()
    for wrong in ("thread", "threads:0", "threads:x", "dask", "dask:", "dask://", "", 7):
        with pytest.raises(InputError):
            executor_of(wrong)
    monkeypatch.setattr("deniable.compute.cluster.CONNECT_SECONDS", 0.3)
    with pytest.raises(
        ClusterError, match=r"cannot connect to a Dask scheduler at dask://127\.0\.0\.1:1"
    ):
        executor_of("dask://127.0.0.1:1")
    monkeypatch.setitem(sys.modules, "distributed", None)
    monkeypatch.delitem(sys.modules, "deniable.compute.cluster")
    with pytest.raises(MissingPackage, match=r"pip install 'deniable\[cluster\]'"):
        executor_of("dask://127.0.0.1:1")


def test_workers_are_there_and_have_the_same_version(
    client: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("deniable.compute.cluster.__version__", "0.0.1")
    with pytest.raises(ClusterError, match="install the same version"):
        Cluster(client)
    monkeypatch.setattr("deniable.compute.cluster.NO_WORKER_SECONDS", 0.1)
    empty = LocalCluster(n_workers=0, host="127.0.0.1", dashboard_address="127.0.0.1:0")
    with empty, Client(empty) as alone, pytest.raises(ClusterError, match="no workers"):
        Cluster(alone)
