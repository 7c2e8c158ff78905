"""A collector in a separate process, started with `deniable serve`."""

from __future__ import annotations

import http.client
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from types import TracebackType

from tests import gateway
from tests.faults.crowd import SURVEY

MAIN = "from deniable.cli import main; main()"
START_SECONDS = 60


def free_port() -> int:
    """Return a free port."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


class Server:
    """A collector that can be started repeatedly, and is killed at the end.

    It accepts batches with the gateway key of tests.
    """

    def __init__(
        self, folder: Path, *flags: str, store: str | None = None, main: str = MAIN,
        before: tuple[str, ...] = (),
    ) -> None:  # fmt: skip
        self.folder = folder
        self.url = store or f"sqlite:///{folder / 'reports.db'}"
        self.port = free_port()
        self.log = folder / "server.log"
        self.survey = folder / "survey.json"
        SURVEY.publish(self.survey)
        if "--keys" not in flags:
            flags = ("--keys", str(folder / "keys.json"), *flags)
        gateway.add_to(Path(flags[flags.index("--keys") + 1]))
        self.command = [
            *before, sys.executable, "-c", main, "serve", str(self.survey), "--store", self.url,
            "--port", str(self.port), "--compact", "0", *flags,
        ]  # fmt: skip
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> Server:
        """Start the collector, and wait until it is ready."""
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(self.command, stdout=log, stderr=log)
        deadline = time.monotonic() + START_SECONDS
        while not self.ready():
            if self.process.poll() is not None or time.monotonic() > deadline:
                raise AssertionError(f"the server did not start:\n{self.log.read_text()[-2000:]}")
            time.sleep(0.02)
        return self

    def ready(self) -> bool:
        """Return whether the collector accepts uploads."""
        try:
            return self.get("/readyz")[0] == 200
        except OSError:
            return False

    def get(self, path: str, headers: dict[str, str] | None = None) -> tuple[int, bytes]:
        """Send a GET request."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=10)
        try:
            connection.request("GET", path, headers=headers or {})
            answer = connection.getresponse()
            return answer.status, answer.read()
        finally:
            connection.close()

    @property
    def pid(self) -> int:
        assert self.process is not None
        return self.process.pid

    def memory(self) -> int:
        """Return the resident memory in bytes."""
        pages = int(Path(f"/proc/{self.pid}/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE")

    def kill(self) -> None:
        """Kill the process, as a power cut would, except that the system's buffers survive."""
        assert self.process is not None
        self.process.kill()
        self.process.wait()

    def stop(self, seconds: float = 30) -> float:
        """Stop the collector, which must exit cleanly; return the seconds this took."""
        assert self.process is not None
        start = time.monotonic()
        self.process.send_signal(signal.SIGTERM)
        code = self.process.wait(seconds)
        assert code == 0, f"exit code {code}:\n{self.log.read_text()[-2000:]}"
        return time.monotonic() - start

    def __enter__(self) -> Server:
        return self.start()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self.process is not None and self.process.poll() is None:
            self.kill()
