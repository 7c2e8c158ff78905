"""Two small HTTP servers on the loopback address: a site, and a collector that fails on demand.

The collector keeps the contract of `/v1` (one count for each key, whatever is sent again) and does
before each answer what its script says, so that tests can lose requests and answers.
"""

from __future__ import annotations

import json
import threading
import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, SimpleHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

from deniable.survey import Survey, from_bytes
from tests.browser.tools import ROOT

CORS = {
    "Access-Control-Allow-Origin": "*",
    "Access-Control-Allow-Headers": "content-type, idempotency-key, authorization",
    "Access-Control-Expose-Headers": "retry-after, etag",
}


@contextmanager
def serving(handler: type[BaseHTTPRequestHandler]) -> Iterator[str]:
    """The address of a server that runs until the end of the block."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


class Site(SimpleHTTPRequestHandler):
    """The repository's files, and an empty page at `/blank`."""

    # Whatever this machine's own tables say of them.
    extensions_map = {".js": "text/javascript", ".html": "text/html", "": "text/plain"}  # noqa: RUF012

    def __init__(self, *args: Any) -> None:
        super().__init__(*args, directory=str(ROOT))

    def do_GET(self) -> None:
        if self.path != "/blank":
            super().do_GET()
            return
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.end_headers()
        self.wfile.write(b"<!doctype html><title>blank</title>")

    def log_message(self, *args: Any) -> None:
        pass


@dataclass
class Collector:
    """What a collector got. Each step of `script` is done at one POST, then all are accepted:

    an int                    that status, with Retry-After: 600 where it is 429, 503 or 507
    "portal 404"              that status from a captive portal: with a page, not a problem
    "lose the request"        closed before anything is kept
    "lose the answer"         kept, and closed without a word
    "slow"                    kept, and answered a second later
    """

    surveys: dict[bytes, Survey]
    script: deque[int | str] = field(default_factory=deque)
    kept: dict[str, bytes] = field(default_factory=dict)
    seen: list[tuple[float, str, dict[str, str]]] = field(default_factory=list)
    """When, which key and which headers each POST had."""
    address: str = ""

    def wait_for(self, uploads: int, seconds: float = 30) -> None:
        """Until this many uploads are kept."""
        end = time.monotonic() + seconds
        while len(self.kept) < uploads and time.monotonic() < end:
            time.sleep(0.02)
        assert len(self.kept) >= uploads, f"{len(self.kept)} of {uploads} uploads came"

    def receive(self, key: str, headers: dict[str, str], body: bytes) -> int | str | None:
        """The status of the answer, or None for no answer."""
        self.seen.append((time.time(), key, headers))
        step = self.script.popleft() if self.script else 202
        if step == "lose the request":
            return None
        if str(step).startswith("portal") or (isinstance(step, int) and step != 202):
            return step
        if len(key) != 32 or headers.get("content-type") != "application/octet-stream":
            return 400
        from_bytes(body, self.surveys)  # one report, of a survey that is known, or an error
        if self.kept.setdefault(key, body) != body:
            return 409
        if step == "slow":
            time.sleep(1)
        return None if step == "lose the answer" else 202


@contextmanager
def collecting(*surveys: Survey) -> Iterator[Collector]:
    """A collector of these surveys, on an origin of its own."""
    collector = Collector({s.digest: s for s in surveys})

    class Handler(BaseHTTPRequestHandler):
        def do_OPTIONS(self) -> None:
            self.answer(204, b"")

        def do_GET(self) -> None:
            name = urlsplit(self.path).path.removeprefix("/v1/surveys/")
            found = [s for s in surveys if s.name == name]
            self.answer(200 if found else 404, found[0].canonical + b"\n" if found else b"")

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            headers = {name.lower(): value for name, value in self.headers.items()}
            query = parse_qs(urlsplit(self.path).query)
            key = headers.get("idempotency-key") or query.get("key", [""])[0]
            status = collector.receive(key, headers, body)
            if status is None:
                self.close_connection = True
                return
            with suppress(ConnectionError):  # the page may have ended
                number = int(str(status).removeprefix("portal"))
                kind = "application/json" if number < 400 else "application/problem+json"
                kind = "text/html" if isinstance(status, str) else kind
                self.answer(number, json.dumps({"accepted": 1}).encode(), kind)

        def answer(self, status: int, body: bytes, kind: str = "application/json") -> None:
            self.send_response(status)
            self.send_header("Content-Type", kind)
            for name, value in CORS.items():
                self.send_header(name, value)
            if status in (429, 503, 507):
                self.send_header("Retry-After", "600")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *args: Any) -> None:
            pass

    with serving(Handler) as collector.address:
        yield collector
