"""Measure durable uploads per second: python -m benchmarks.collector [--quick]

Load generator and server share the machine. Each figure is the best of three runs of a few seconds,
alternating with two servers for comparison: the same server with one commit per upload (`--group
1`), and a bare server on granian that reads the body and discards it. Processor time is that of all
threads of the server, and hardly depends on other programs.
"""

from __future__ import annotations

import argparse
import asyncio
import http.client
import os
import secrets
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from benchmarks.table import Row, Timing
from deniable import Survey, simulate
from deniable.collector import keys
from deniable.columns import to_wire
from deniable.survey import from_batch

SURVEY = Path(__file__).parents[1] / "examples" / "survey.toml"
CONNECTIONS = 64
BATCH_TARGET, SINGLE_TARGET = (1500, 100), (10_000, 50)
"""Uploads per second, and milliseconds of the 99th percentile."""
BARE = """
import asyncio, signal, sys
from granian.constants import HTTPModes, Interfaces
from granian.server.embed import Server
async def app(scope, receive, send):
    while (await receive()).get("more_body"):
        pass
    await send({"type": "http.response.start", "status": 202, "headers": []})
    await send({"type": "http.response.body", "body": b"{}"})
async def main():
    server = Server(app, port=int(sys.argv[1]), interface=Interfaces.ASGINL, http=HTTPModes.http1,
                    websockets=False, backpressure=4096, log_enabled=False)
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, server.stop)
    await server.serve()
asyncio.run(main())
"""
COLLECTOR = "from deniable.cli import main; main()"


LABELS = COLLECTOR_LABEL, ALONE_LABEL, BARE_LABEL = (
    "collector",
    "without group commit",
    "bare server",
)
Measured = tuple[float, float, float]
"""Uploads per second, 99th percentile of latency, and processor seconds per upload."""


class Sender(asyncio.Protocol):
    """One connection that always has one upload under way."""

    def __init__(self, load: Load) -> None:
        self.load = load

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Send the first upload."""
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        self._send()

    def _send(self) -> None:
        if time.perf_counter() > self.load.end:
            self.transport.close()
            self.load.finished()
            return
        head = self.load.head % secrets.token_hex(16).encode()
        self.start = time.perf_counter()
        self.transport.write(head + self.load.body)

    def data_received(self, data: bytes) -> None:
        """Record the latency of an upload and send the next."""
        # An answer is one segment on the loopback: short, and written at once.
        assert data.startswith(b"HTTP/1.1 202"), data
        self.load.seconds.append(time.perf_counter() - self.start)
        self._send()


class Load:
    """What all connections share."""

    def __init__(self, body: bytes, token: str, seconds: float) -> None:
        self.body = body
        self.head = (
            b"POST /v1/reports HTTP/1.1\r\nHost: x\r\nContent-Type: application/octet-stream\r\n"
            b"Authorization: Bearer %s\r\nIdempotency-Key: %%s\r\nContent-Length: %d\r\n\r\n"
            % (token.encode(), len(body))
        )
        self.end = time.perf_counter() + seconds
        self.seconds: list[float] = []
        self._open, self.done = CONNECTIONS, asyncio.get_running_loop().create_future()

    def finished(self) -> None:
        """Count one connection as finished."""
        self._open -= 1
        if not self._open:
            self.done.set_result(None)


async def load(port: int, body: bytes, token: str, seconds: float) -> tuple[float, float]:
    """Return uploads per second, and the 99th percentile of their latency in seconds."""
    shared = Load(body, token, seconds)
    loop = asyncio.get_running_loop()
    for _ in range(CONNECTIONS):
        await loop.create_connection(lambda: Sender(shared), "127.0.0.1", port)
    await shared.done
    ordered = sorted(shared.seconds)
    return len(ordered) / seconds, ordered[int(0.99 * len(ordered))]


def processor_time(pid: int) -> float:
    """Return the processor seconds that a process has used (Linux only)."""
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def measure(command: list[str], port: int, body: bytes, token: str, seconds: float) -> Measured:
    """Start, load and stop a server; return uploads per second, p99, processor s per upload."""
    process = subprocess.Popen(command, stderr=subprocess.DEVNULL)
    try:
        for _ in range(600):
            try:
                connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
                connection.request("GET", "/healthz")
                connection.getresponse()
                break
            except OSError:
                time.sleep(0.05)
        asyncio.run(load(port, body, token, min(1.0, seconds)))
        before = processor_time(process.pid)
        rate, p99 = asyncio.run(load(port, body, token, seconds))
        return rate, p99, (processor_time(process.pid) - before) / (rate * seconds)
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(30)


def free_port() -> int:
    """Return a free port."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def servers(folder: Path, store: str, port: int) -> dict[str, list[str]]:
    """Return the commands of the servers to compare."""
    serve = [
        sys.executable, "-c", COLLECTOR, "serve", str(SURVEY), "--store", store, "--port",
        str(port), "--compact", "0", "--log", "0", "--reserve", "0",
        "--keys", str(folder / "keys.json"),
    ]  # fmt: skip
    return {
        COLLECTOR_LABEL: serve,
        ALONE_LABEL: [*serve, "--group", "1"],
        BARE_LABEL: [sys.executable, "-c", BARE, str(port)],
    }


def single_report() -> bytes:
    """Return the bytes of one report."""
    return bytes(from_batch(thousand_reports(), Survey.load(SURVEY))[0])


def thousand_reports() -> bytes:
    """Return the bytes of a batch."""
    survey = Survey.load(SURVEY)
    nothing = {q.name: [None] * 1000 for q in survey.questions}
    return to_wire(simulate(survey, nothing, rng=np.random.default_rng(1)))


def best_rates(
    body: bytes, labels: Sequence[str], seconds: float, runs: int, store: str = ""
) -> dict[str, Measured]:
    """Return the best of some runs of these servers, which alternate."""
    best: dict[str, Measured] = {}
    for _ in range(runs):
        with tempfile.TemporaryDirectory() as name:
            where = store or f"sqlite:///{name}/reports.db"
            token = keys.add(Path(name) / "keys.json", "load", "gateway", quota=0)
            port = free_port()
            commands = servers(Path(name), where, port)
            for label in labels:
                got = measure(commands[label], port, body, token, seconds)
                best[label] = max(best.get(label, got), got)
    return best


def rows() -> Iterator[Row]:
    """Yield the time between durable uploads of one report, and that of the bare server."""
    best = best_rates(single_report(), (COLLECTOR_LABEL, BARE_LABEL), 5.0, 3)
    (rate, p99, used), (bare, _, bare_used) = best[COLLECTOR_LABEL], best[BARE_LABEL]
    name = f"durable upload of one report: {rate:,.0f}/s, p99 {1000 * p99:.0f} ms"
    limit = f"{Timing(1 / bare, bare_used)}: discarding it"
    yield Row(name, Timing(1 / rate, used), f"100 µs, p99 {SINGLE_TARGET[1]} ms", "", limit)


def main() -> None:
    """Print uploads per second, latency and processor time of each server."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--store", help="PostgreSQL URL; SQLite in a temporary folder otherwise")
    options = parser.parse_args()
    seconds, runs = (2.0, 1) if options.quick else (5.0, 3)
    batch, single = thousand_reports(), single_report()
    print(f"load average {os.getloadavg()[0]:.1f} on {os.cpu_count()} processors")
    cases = (("1,000 reports", batch, BATCH_TARGET), ("one report", single, SINGLE_TARGET))
    for what, body, (target, p99_target) in cases:
        best = best_rates(body, LABELS, seconds, runs, options.store or "")
        rate, p99, used = best[COLLECTOR_LABEL]
        alone, bare = best[ALONE_LABEL][0], best[BARE_LABEL][0]
        print(
            f"uploads of {what} ({len(body):,} bytes): {rate:,.0f}/s, p99 {1000 * p99:.0f} ms "
            f"(targets {target:,}/s, {p99_target} ms), {1e6 * used:.0f} µs of processor time; "
            f"{rate / alone:.1f} × without group commit "
            f"({alone:,.0f}/s); {rate / bare:.2f} of a bare server ({bare:,.0f}/s)"
        )


if __name__ == "__main__":
    main()
