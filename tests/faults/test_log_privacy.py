"""Secrets in every place of a request, also of malformed ones, appear in no line of the log."""

from __future__ import annotations

import json
import socket
import time
from contextlib import closing, suppress
from pathlib import Path

import pytest

from deniable.collector import keys
from deniable.collector.logs import EVENTS
from tests.faults.crowd import SURVEY, single
from tests.faults.server import Server

ADDRESS = "127.77.66.55"
KEY, OTHER_KEY = "5ec12e75ec12e75ec12e75ec12e75ec1", "0dd5ec12e70dd5ec12e70dd5ec12e70d"


def exchange(port: int, request: bytes) -> bytes:
    """Send bytes from an address of our own, and return the start of the answer."""
    with closing(socket.create_connection(("127.0.0.1", port), 10, (ADDRESS, 0))) as connection:
        connection.sendall(request)
        with suppress(OSError):
            return connection.recv(1 << 16)
    return b""


def request(first: str, body: bytes = b"", **headers: str) -> bytes:
    """Return a request; underscores in names of headers stand for hyphens."""
    headers = {"Host": "secret-host", "Connection": "close", **headers}
    lines = [f"{name.replace('_', '-')}: {text}" for name, text in headers.items()]
    if body:
        lines.append(f"Content-Length: {len(body)}")
    return "\r\n".join([f"{first} HTTP/1.1", *lines, "", ""]).encode("latin-1") + body


def requests(ingest: str, analyst: str) -> list[bytes]:
    """Return requests with secrets in every place; some are accepted, some are no HTTP at all."""
    octets = {"Content_Type": "application/octet-stream"}
    keyed = octets | {"Idempotency_Key": KEY}
    upload, bearer = "POST /v1/reports", {"Authorization": f"Bearer {analyst}"}
    order = {
        "verb": "decode", "survey": "faults", "questions": ["q"],
        "candidates": {"q": ["secret-candidate"]},
    }  # fmt: skip
    return [
        request(upload, single(1), **keyed, Cookie="secret-cookie"),
        request(f"{upload}?key={OTHER_KEY}&token={ingest}&key=secret-query", single(2), **octets),
        request(upload, b"secret-body", **keyed),
        request(upload, single(3), Idempotency_Key="secret-key", **octets),
        request(upload, single(3), Content_Type="secret/type"),
        request(upload, single(3), Content_Encoding="secret-encoding", **keyed),
        request(upload, single(3), Authorization="Bearer secret-token", **keyed),
        request("GET /secret-path?secret-query", User_Agent="secret-agent", X_Secret="secret"),
        request("GET /v1/surveys/secret-name", If_None_Match="secret-tag", Referer="secret"),
        request("POST /v1/jobs", json.dumps(order).encode(), **bearer),
        request("POST /v1/jobs", b'{"secret-field": 1}', **bearer),
        request("GET /v1/jobs/secret-job", **bearer),
        request("SECRETMETHOD /v1/reports"),
        request("GET /", X_Forwarded_For=f"{ADDRESS}, secret-forwarded", Via="1.1 secret-via"),
        b"secret-no-http\r\n\r\n",
        b"GET / SECRET/9.9\r\nsecret header\r\n\r\n",
        b"GET /\xff\xfesecret HTTP/1.1\r\nHost: secret\r\n\r\n",
        b"GET / HTTP/1.1\r\nsecret-header: " + b"secret" * 20_000 + b"\r\n\r\n",
        request(upload, Transfer_Encoding="chunked", **octets) + b"zz secret-chunk\r\n",
        request(upload, Content_Length="99", **octets) + b"secret-cut-short",
    ]


@pytest.mark.parametrize("form", ["text", "json"])
def test_no_secret_of_a_request_is_logged(form: str, tmp_path: Path) -> None:
    file = tmp_path / "keys.json"
    ingest, analyst = (keys.add(file, f"key-{role}", role) for role in ("ingest", "analyst"))
    flags = ("--log", "1", "--log-format", form, "--keys", str(file), "--body-time", "1")
    with Server(tmp_path, *flags) as server:
        answers = [exchange(server.port, sent) for sent in requests(ingest, analyst)]
        # A key file that is spoilt while the collector runs is logged, without what it holds.
        file.write_text('{"secret-file": ')
        time.sleep(1.1)
        exchange(server.port, requests(ingest, analyst)[9])
        server.stop()
    statuses = [answer.partition(b" ")[2][:3] for answer in answers]
    assert statuses[:2] == [b"202", b"202"], "secrets that are refused at once prove little"
    assert b"404" in statuses and b"400" in statuses and b"401" in statuses
    log = server.log.read_text().replace(str(tmp_path), "")  # where the key file is
    secrets = ["secret", "SECRET", ADDRESS, KEY, OTHER_KEY, ingest, analyst, SURVEY.digest.hex()]
    assert not [secret for secret in secrets if secret in log], log
    assert not [secret for secret in secrets if bytes(secret, "ascii").hex() in log]
    if form == "json":
        events = [json.loads(line)["event"] for line in log.splitlines()]
        assert events[0] == "listening" and events[-1] == "stopped"
        assert {"totals", "key-file-unreadable"} <= set(events) <= set(EVENTS)


def test_the_search_finds_what_is_there(tmp_path: Path) -> None:
    """A server that logs its requests is caught: the answers were read, and so was the log."""
    noisy = (
        "from deniable.collector.api import problems\n"
        "from deniable.collector.logs import log_event\n"
        "old = problems.Problem.__init__\n"
        "def loud(self, kind, detail, headers=None):\n"
        "    log_event('request-failed', detail)\n"
        "    old(self, kind, detail, headers)\n"
        "problems.Problem.__init__ = loud\n"
        "from deniable.cli import main; main()"
    )
    with Server(tmp_path, main=noisy) as server:
        exchange(server.port, request("GET /v1/surveys/secret-name"))
        server.stop()
    assert "secret-name" in server.log.read_text()
