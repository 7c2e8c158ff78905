"""Test keys: the content of the file, access, and quotas."""

from __future__ import annotations

import asyncio
import gzip
import hashlib
import json
import logging
import os
import stat
from pathlib import Path

import httpx
import pytest
from click.testing import CliRunner

from deniable.cli.app import app
from deniable.collector import keyring, keys
from deniable.collector.api.problems import Problem
from deniable.collector.app import Collector
from deniable.collector.keyring import Bucket, Keyring
from deniable.collector.server import describe_start
from deniable.errors import InputError
from tests.collecting import collect, upload
from tests.faults.crowd import SURVEY, batch, single


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "keys.json"


def test_the_file_holds_hashes_only(file: Path) -> None:
    token = keys.add(file, "ann", "analyst")
    other = keys.add(file, "web", "ingest", 1000)
    text = file.read_text()
    assert token not in text and token.split("_", 2)[2] not in text
    assert hashlib.sha256(token.encode()).hexdigest() in text
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert len(token.split("_", 2)[2]) == 43, "32 bytes"
    assert token != other
    assert [(k.name, k.role, k.quota) for k in keys.read(file)] == [
        ("ann", "analyst", 0), ("web", "ingest", 1000),
    ]  # fmt: skip


def test_tokens_are_found_and_others_are_not(file: Path) -> None:
    token = keys.add(file, "ann", "analyst")
    ring = Keyring(file)
    found = ring.find(token)
    assert found is not None and found.name == "ann"
    for wrong in (token[:-1], token + "x", token[:-1] + "\udce9", "", "dn_", keys.id_of(token)):
        assert ring.find(wrong) is None
    assert Keyring(None).find(token) is None


def test_a_change_is_noticed_without_a_restart(
    file: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(keyring, "RELOAD_SECONDS", 0.0)
    first = keys.add(file, "old", "ingest", 5)
    ring = Keyring(file)
    ring.bucket(ring.authorise(first, "ingest")).take(5)
    second = keys.add(file, "new", "ingest")
    assert ring.find(second) is not None
    with pytest.raises(Problem, match="5 reports per hour"):
        ring.bucket(ring.authorise(first, "ingest")).check()
    keys.remove(file, "old")
    assert ring.find(first) is None
    file.write_text("spoilt by hand")
    assert ring.find(second) is not None, "the keys read before stay in force"
    os.unlink(file)
    assert ring.find(second) is not None
    assert f"cannot read the key file {file}: it is not a valid key file" in caplog.text
    assert f"cannot read the key file {file}: No such file or directory" in caplog.text


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("{", "key file .* is not JSON"),
        ("[]", "not a key file"),
        ('{"format": "x", "keys": []}', "expected format"),
        ('{"format": "deniable-keys/1", "keys": [{"id": "x"}]}', "not a key file"),
    ],
)
def test_a_damaged_file_stops_the_start(content: str, says: str, file: Path) -> None:
    file.write_text(content)
    with pytest.raises(InputError, match=says):
        Keyring(file)


def test_a_missing_file_stops_the_start(file: Path) -> None:
    with pytest.raises(InputError, match="deniable keys add"):
        Keyring(file)


def test_mistakes_are_refused(file: Path) -> None:
    keys.add(file, "ann", "analyst")
    with pytest.raises(InputError, match="already"):
        keys.add(file, "ann", "ingest")
    with pytest.raises(InputError, match="role"):
        keys.add(file, "bob", "admin")
    with pytest.raises(InputError, match="printable"):
        keys.add(file, "a\nb", "ingest")
    with pytest.raises(InputError, match="only a gateway key allows several reports"):
        keys.add(file, "web", "ingest", max_batch=2)
    with pytest.raises(InputError, match="a quota limits uploads"):
        keys.add(file, "eva", "analyst", quota=5)
    with pytest.raises(InputError, match="would never fit the quota of 50 per hour"):
        keys.add(file, "relay", "gateway", quota=50, max_batch=51)
    with pytest.raises(InputError, match="no key 'cyd'"):
        keys.remove(file, "cyd")


def test_a_quota_refills(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 1000.0
    monkeypatch.setattr(keyring.time, "monotonic", lambda: now)
    bucket = Bucket(3600)
    bucket.take(3600)
    with pytest.raises(Problem) as refused:
        bucket.take(1)
    assert refused.value.headers["retry-after"] == "1"
    now += 10
    with pytest.raises(Problem) as refused:
        bucket.take(100)  # ten are left
    assert (refused.value.status, refused.value.headers["retry-after"]) == (429, "90")
    bucket.take(10)
    now += 91.1
    bucket.take(90)
    now += 10**6
    bucket.take(3600)
    with pytest.raises(Problem) as refused:
        bucket.take(3600)
    assert refused.value.headers["retry-after"] == "3600", "never longer than an hour"
    bucket.refund(3600)
    bucket.refund(3600)
    bucket.take(3600)
    with pytest.raises(Problem):
        bucket.check()
    Bucket(0).take(10**9)


def test_quotas_count_what_is_stored(file: Path, tmp_path: Path) -> None:
    token = keys.add(file, "web", "ingest", 2)

    async def scenario(collector: Collector, client: httpx.AsyncClient) -> None:
        bearer = f"Bearer {token}"
        for number, key in ((1, "a" * 32), (1, "a" * 32), (2, "b" * 32)):
            got = await upload(client, single(number), key, authorization=bearer)
            assert got.status_code == 202
        assert (await upload(client, b"", authorization=bearer)).status_code == 429
        got = await upload(client, single(9), authorization=bearer)
        assert got.status_code == 429
        assert 1 <= int(got.headers["retry-after"]) <= 3600
        query = await client.post(
            f"/v1/reports?key={'c' * 32}&token={token}", content=single(9),
            headers={"content-type": "application/octet-stream"},
        )  # fmt: skip
        assert query.status_code == 429

    collect(tmp_path, scenario, keys=str(file), require_key=True)


@pytest.mark.parametrize("require_key", [False, True])
def test_a_quota_that_binds_nobody_is_mentioned(
    require_key: bool, file: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    keys.add(file, "web", "ingest", 1)
    keys.add(file, "unlimited", "ingest")

    async def scenario(collector: Collector, client: httpx.AsyncClient) -> None:
        with caplog.at_level(logging.WARNING, "deniable.collector"):
            describe_start(collector)
        statuses = [(await upload(client, single(i))).status_code for i in range(2)]
        assert statuses == ([401, 401] if require_key else [202, 202])

    collect(tmp_path, scenario, keys=str(file), require_key=require_key)
    assert ("the quota of web has no effect" in caplog.text) == (not require_key)


def test_a_gateway_key_has_its_limits(file: Path, tmp_path: Path) -> None:
    """Uploads that arrive together cannot overdraw the quota, and none is accepted in part."""
    token = keys.add(file, "relay", "gateway", quota=100, max_batch=40)

    async def scenario(collector: Collector, client: httpx.AsyncClient) -> None:
        async def send(first: int, reports: int) -> httpx.Response:
            return await upload(client, batch(first, reports), authorization=f"Bearer {token}")

        got = await send(0, 41)
        assert (got.status_code, got.json()["type"]) == (413, "urn:deniable:problem:too-large")
        assert "may send 40 reports per upload, and this upload has 41" in got.json()["detail"]
        together = await asyncio.gather(*(send(100 * i, 30) for i in range(8)))
        assert sorted(got.status_code for got in together) == [202] * 3 + [429] * 5
        for got in together:
            if got.status_code == 429:  # 10 are left, 20 more come in 720 s
                assert 600 < int(got.headers["retry-after"]) <= 720
        assert (await send(900, 10)).status_code == 202
        assert collector.store.waiting(SURVEY) == 100

    collect(tmp_path, scenario, keys=str(file))


@pytest.mark.parametrize(
    ("role", "status", "says"),
    [
        (None, 401, "a batch of 1000 reports needs a gateway key, and this request has no key"),
        ("ingest", 403, "a batch of 1000 reports needs a gateway key, and this request has an"),
        ("analyst", 403, "needs a key of role ingest or gateway; this key has role analyst"),
    ],
)
def test_nobody_outvotes_a_crowd_with_one_request(
    role: str | None, status: int, says: str, file: Path, tmp_path: Path
) -> None:
    """A small compressed body may hold thousands of reports; one request adds one at most."""
    headers = {"authorization": f"Bearer {keys.add(file, 'x', role)}"} if role else {}

    async def scenario(collector: Collector, client: httpx.AsyncClient) -> None:
        body = gzip.compress(batch(0, 1000))
        got = await upload(client, body, content_encoding="gzip", **headers)
        assert got.status_code == status, got.text
        assert says in got.json()["detail"]
        assert collector.store.waiting(SURVEY) == 0

    collect(tmp_path, scenario, keys=str(file))


def test_keys_written_before_gateways_are_read(file: Path) -> None:
    """Their role is ingest or analyst, and they send one report per upload."""
    old = {"id": "0" * 8, "name": "web", "role": "ingest", "sha256": "0" * 64, "quota": 7}
    file.write_text(json.dumps({"format": "deniable-keys/1", "keys": [old]}))
    (key,) = keys.read(file)
    assert (key.role, key.quota, key.max_batch) == ("ingest", 7, 1)


def run(*args: str) -> str:
    result = CliRunner().invoke(app, ["keys", *args])
    assert result.exit_code == 0, result.output
    return result.output.strip()


def test_the_command(file: Path) -> None:
    token = run("add", "ann", "--role", "analyst", "--keys", str(file))
    assert Keyring(file).authorise(token, "analyst").name == "ann"
    made = json.loads(
        run("add", "web", "--role", "ingest", "--quota", "9", "--keys", str(file), "--json")
    )
    assert Keyring(file).authorise(made["token"], "ingest").quota == 9
    listed = run("list", "--keys", str(file))
    assert "ann" in listed and "9 reports per hour, 1 per upload" in listed and token not in listed
    for name, limits, shown in (
        ("relay", (), "1,000,000 reports per hour, 10,000 per upload"),
        ("small", ("--quota", "500"), "500 reports per hour, 500 per upload"),
        ("large", ("--quota", "0", "--max-batch", "7"), "no limit per hour, 7 per upload"),
    ):
        added = ("add", name, "--role", "gateway", *limits, "--keys", str(file), "--json")
        made = json.loads(run(*added))
        key = Keyring(file).authorise(made["token"], "gateway")
        assert (made["quota"], made["max_batch"]) == (key.quota, key.max_batch)
        assert shown in run("list", "--keys", str(file))
        run("remove", name, "--keys", str(file))
    assert run("remove", "ann", "--keys", str(file)) == "Removed the key ann."
    assert [k["name"] for k in json.loads(run("list", "--keys", str(file), "--json"))["keys"]] == [
        "web"
    ]
    wrong = CliRunner().invoke(app, ["keys", "remove", "ann", "--keys", str(file)])
    assert (wrong.exit_code, "no key 'ann'" in wrong.output) == (1, True)
