"""nginx with deploy/nginx.conf: slow clients and floods of connections stay outside."""

from __future__ import annotations

import asyncio
import os
import shutil
import ssl
import subprocess
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from tests.certificates import make_certificate
from tests.deploy.files import DEPLOY
from tests.faults.crowd import single
from tests.faults.server import Server, free_port
from tests.faults.traffic import CONNECTION_LOST, request, response

pytestmark = pytest.mark.slow
ATTACKER, CLIENT = "127.0.0.1", "127.0.0.2"
"""Addresses of senders; nginx limits each of them."""
CONNECTIONS_PER_ADDRESS = 20
TIMEOUT = 5.0
"""`client_header_timeout` and `client_body_timeout`, in seconds."""
MARGIN = 15.0
"""Seconds by which a busy machine may be late."""
TRUST = ssl._create_unverified_context()


@contextmanager
def proxy(folder: Path, collector: int) -> Iterator[int]:
    """Run nginx before a collector's port, with paths of our own; yield its port."""
    program = shutil.which("nginx")
    if program is None:
        missing = "nginx is not installed: bash .ci/setup"
        (pytest.fail if os.environ.get("CI") else pytest.skip)(missing)
    make_certificate(folder)
    port, text = free_port(), (DEPLOY / "nginx.conf").read_text()
    for old, new in (
        ("/tmp/", f"{folder}/"),
        ("listen 443 ", f"listen 127.0.0.1:{port} "),
        ("http://collector:8080", f"http://127.0.0.1:{collector}"),
        ("/etc/nginx/tls/", f"{folder}/"),
    ):
        assert old in text
        text = text.replace(old, new)
    (folder / "nginx.conf").write_text(text)
    command = [program, "-e", "stderr", "-c", folder / "nginx.conf", "-g", "daemon off; user root;"]
    process = subprocess.Popen(command)
    try:
        deadline = time.monotonic() + 30
        while not asyncio.run(listens(port)):
            assert process.poll() is None and time.monotonic() < deadline, "nginx did not start"
            time.sleep(0.05)
        yield port
    finally:
        process.terminate()
        process.wait(30)


async def listens(port: int) -> bool:
    """Return whether a connection to the proxy can be made."""
    with suppress(OSError):
        _, writer = await connect(port, CLIENT)
        writer.transport.abort()
        return True
    return False


async def connect(port: int, address: str) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    return await asyncio.open_connection(
        "127.0.0.1", port, ssl=TRUST, local_addr=(address, 0), limit=1 << 20
    )


async def answer(port: int, address: str, data: bytes) -> int:
    """Send a request; return the status of the answer, or 0 if the connection was closed."""
    reader, writer = await connect(port, address)
    try:
        writer.write(data)
        return (await response(reader))[0]
    except CONNECTION_LOST:
        return 0
    finally:
        writer.transport.abort()


async def send_slowly(port: int, data: bytes) -> int:
    """Send the start of an upload, then a byte per second; return the status, or 0."""
    reader, writer = await connect(port, ATTACKER)
    writer.write(data[:-30])
    ended = asyncio.create_task(response(reader))
    try:
        for byte in data[-30:-10]:
            done, _ = await asyncio.wait([ended], timeout=1)
            if done:
                return ended.result()[0]
            writer.write(bytes([byte]))
        return (await ended)[0]
    except CONNECTION_LOST:
        return 0
    finally:
        ended.cancel()
        writer.transport.abort()


def upload(number: int) -> bytes:
    return request(single(number), f"{number:032x}")


def gauges(server: Server) -> dict[str, float]:
    """Return the collector's metrics without labels."""
    families = text_string_to_metric_families(server.get("/metrics")[1].decode())
    return {sample.name: sample.value for family in families for sample in family.samples}


async def clients_are_served(port: int, first: int) -> float:
    """Send uploads of others one after another; return the longest wait in seconds."""
    longest = 0.0
    for number in range(first, first + 10):
        start = time.monotonic()
        assert await answer(port, CLIENT, upload(number)) == 202
        longest = max(longest, time.monotonic() - start)
    return longest


def test_slow_bodies_never_reach_the_collector(tmp_path: Path) -> None:
    """An address holds 20 of them at most, silent ones end in time, and nobody else waits."""
    with Server(tmp_path) as server, proxy(tmp_path, server.port) as port:
        idle = gauges(server)["process_open_fds"]

        async def run() -> tuple[Counter[int], Counter[int]]:
            slow = [asyncio.create_task(send_slowly(port, upload(n))) for n in range(60)]
            await asyncio.sleep(3)
            refused = Counter(task.result() for task in slow if task.done())
            silent = [asyncio.create_task(answer(port, CLIENT, upload(1)[:-9])) for _ in range(15)]
            assert await clients_are_served(port, 1000) < TIMEOUT
            seen = gauges(server)
            assert seen["deniable_held_bytes"] == 0
            assert seen["process_open_fds"] < idle + 10, "the collector has slow connections"
            ended = Counter(await asyncio.wait_for(asyncio.gather(*silent), TIMEOUT + MARGIN))
            for task in slow:
                task.cancel()
            await asyncio.gather(*slow, return_exceptions=True)
            return refused, ended

        refused, ended = asyncio.run(run())
    assert refused == {503: 60 - CONNECTIONS_PER_ADDRESS}
    assert ended == {0: 15}, "a silent connection was answered"


def test_many_connections_keep_nobody_waiting(tmp_path: Path) -> None:
    """Connections with slow headers are counted by no limit, and end after a few seconds."""
    with Server(tmp_path) as server, proxy(tmp_path, server.port) as port:
        idle = gauges(server)["process_open_fds"]

        async def run() -> None:
            start = upload(1)[:40]
            many = [asyncio.create_task(answer(port, ATTACKER, start)) for _ in range(400)]
            await asyncio.sleep(1)
            assert await clients_are_served(port, 1000) < TIMEOUT
            assert gauges(server)["process_open_fds"] < idle + 10
            ended = await asyncio.wait_for(asyncio.gather(*many), TIMEOUT + MARGIN)
            assert set(ended) == {0}, "a request without its headers was answered"
            assert await answer(port, ATTACKER, upload(1)) == 202

        asyncio.run(run())


def test_an_address_sends_at_a_limited_rate_and_reaches_uploads_only(tmp_path: Path) -> None:
    with Server(tmp_path) as server, proxy(tmp_path, server.port) as port:

        async def run() -> None:
            assert await answer(port, CLIENT, b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n") == 404
            seen = Counter[int]()
            for first in range(0, 240, 15):
                each = (answer(port, ATTACKER, upload(first + n)) for n in range(15))
                seen.update(await asyncio.gather(*each))
            assert seen[202] >= 100 and seen[429] > 0 and seen.keys() == {202, 429}
            assert await clients_are_served(port, 1000) < TIMEOUT

        asyncio.run(run())
