"""Test that markers in every part of a request, and true answers, appear in no file or log.

Random bytes of reports contain a marker of 4 bytes by chance with probability below 10⁻⁴ here. All
other markers are longer.
"""

from __future__ import annotations

import http.client
import re
import secrets
import socket
import sqlite3
import struct
import time
from contextlib import closing
from pathlib import Path

from deniable import store
from deniable.client import Client, new_secret
from deniable.survey import to_batch
from tests import gateway
from tests.faults.server import Server
from tests.surveys import make_survey

SURVEY = make_survey(
    """
[questions.word]
kind = "string"
epsilon = 3.0
[questions.colour]
kind = "choice"
options = ["red", "blue"]
epsilon = 1.0
""",
    name="private",
)
ADDRESS = "127.77.66.55"
MARKERS = [
    "marker-agent", "marker-referrer", "marker-header", "marker-cookie", "marker-query",
    "marker-path", "marker-forwarded", "marker-name", "marker-token", "marker-body", ADDRESS,
]  # fmt: skip
WORDS = [f"marker-word-{i}" for i in range(40)]
CLOCK = re.compile(rb"\d\d:\d\d:\d\d|\d{4}-\d\d-\d\dT")


def send(port: int, path: str, body: bytes, headers: dict[str, str]) -> int:
    """Send the request from its own loopback address."""
    connection = http.client.HTTPConnection(
        "127.0.0.1", port, timeout=30, source_address=(ADDRESS, 0)
    )
    with closing(connection):
        connection.request("POST", path, body, headers)
        answer = connection.getresponse()
        answer.read()
        return answer.status


def everything(folder: Path) -> dict[str, bytes]:
    """Return the names and content of all files."""
    return {str(p): str(p.name).encode() + p.read_bytes() for p in folder.rglob("*") if p.is_file()}


def test_nothing_of_a_request_is_kept(tmp_path: Path) -> None:
    secret, keys = new_secret(), [secrets.token_hex(16) for _ in WORDS]
    reports = [
        [Client(SURVEY, secret=secret).answer({"word": word, "colour": "red"}) for _ in range(3)]
        for word in WORDS
    ]
    headers = {
        "Content-Type": "application/octet-stream", "User-Agent": "marker-agent",
        "Referer": "https://marker-referrer/", "X-Marker-Header": "marker-header",
        "Cookie": "id=marker-cookie", "X-Forwarded-For": f"{ADDRESS}, marker-forwarded",
    }  # fmt: skip
    server = Server(tmp_path, "--log", "1", "--compact", "1", "--at-least", "50")
    SURVEY.publish(server.survey)
    start = time.time()
    with server:
        for key, batch in zip(keys, reports, strict=True):
            sent = headers | gateway.HEADERS | {"Idempotency-Key": key}
            path = "/v1/reports?key=marker-query"  # the header takes precedence
            assert send(server.port, path, to_batch(batch), sent) == 202
        for path, body, extra in (
            ("/marker-path", b"", {}),
            ("/v1/surveys/marker-name", b"", {}),
            ("/v1/reports", b"marker-body", {"Idempotency-Key": "marker-query"}),
            ("/v1/reports", b"marker-body", {"Authorization": "Bearer marker-token"}),
            ("/v1/reports", b"marker-body", {"Content-Encoding": "marker-header"}),
        ):
            send(server.port, path, body, headers | extra)
        with store.open(server.url) as kept:
            while not list(tmp_path.rglob("*.parquet")):
                time.sleep(0.2)
            assert sum(kept.days(SURVEY).values()) == 3 * len(WORDS)
        _search(everything(tmp_path), keys, secret)
        server.stop()
    found = everything(tmp_path)
    _search(found, keys, secret)
    assert not CLOCK.search(found[str(server.log)]), "a time stands in the log"
    assert b"uploads by HTTP status" in found[str(server.log)]
    _no_times(tmp_path / "reports.db", start)


def _search(found: dict[str, bytes], keys: list[str], secret: bytes) -> None:
    unwanted = [text.encode() for text in (*MARKERS, *WORDS, *keys, gateway.TOKEN)]
    unwanted += [bytes.fromhex(key) for key in keys]
    unwanted += [socket.inet_aton(ADDRESS), socket.inet_aton(ADDRESS)[::-1], secret]
    for name, data in found.items():
        for marker in unwanted:
            assert marker not in data, f"{marker!r} stands in {name}"


def _no_times(database: Path, start: float) -> None:
    """No number in any table is a time of today, in any usual unit or type."""
    with closing(sqlite3.connect(database)) as db:
        tables = [
            name for (name,) in db.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")
        ]
        for table in tables:
            for row in db.execute(f"SELECT * FROM {table}"):
                for cell in row:
                    if isinstance(cell, int | float):
                        for unit in (1, 1e3, 1e6, 1e9):
                            assert abs(cell / unit - start) > 86400, (table, cell)
                    elif isinstance(cell, str):
                        assert not CLOCK.search(cell.encode()), (table, cell)


def test_the_search_finds_what_is_there(tmp_path: Path) -> None:
    (tmp_path / "log").write_bytes(b"GET / " + struct.pack("4B", *map(int, ADDRESS.split("."))))
    try:
        _search(everything(tmp_path), [], b"x" * 32)
    except AssertionError:
        return
    raise AssertionError("an address was not found")
