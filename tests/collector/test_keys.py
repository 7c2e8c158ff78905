"""Test keys: the content of the file, access, and quotas."""

from __future__ import annotations

import hashlib
import json
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
from deniable.errors import InputError
from tests.collecting import collect, upload
from tests.faults.crowd import batch, single


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


def test_a_change_is_noticed_without_a_restart(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
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
    bucket.take(100)  # overdraws by 90
    with pytest.raises(Problem) as refused:
        bucket.check()
    assert refused.value.headers["retry-after"] == "91"
    now += 91.1
    bucket.check()
    now += 10**6
    bucket.take(3600)
    with pytest.raises(Problem):
        bucket.check()
    Bucket(0).take(10**9)


def test_quotas_count_what_is_stored(file: Path, tmp_path: Path) -> None:
    token = keys.add(file, "web", "ingest", 100)

    async def scenario(collector: Collector, client: httpx.AsyncClient) -> None:
        bearer = f"Bearer {token}"
        for key in ("a" * 32, "a" * 32, "b" * 32):
            assert (
                await upload(client, batch(0, 50), key, authorization=bearer)
            ).status_code == 202
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
    assert "ann" in listed and "9 reports per hour" in listed and token not in listed
    assert run("remove", "ann", "--keys", str(file)) == "Removed the key ann."
    assert [k["name"] for k in json.loads(run("list", "--keys", str(file), "--json"))["keys"]] == [
        "web"
    ]
    wrong = CliRunner().invoke(app, ["keys", "remove", "ann", "--keys", str(file)])
    assert (wrong.exit_code, "no key 'ann'" in wrong.output) == (1, True)
