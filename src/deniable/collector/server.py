"""Listening: granian inside this process, one event loop, no access log.

granian closes connections that are slow with their headers or idle, and caps their number; slow
bodies are the collector's own matter (`body.BodyLimits`).
"""

from __future__ import annotations

import asyncio
import logging
import signal
import sys

from granian.constants import HTTPModes, Interfaces
from granian.http import HTTP1Settings
from granian.log import LogLevels
from granian.server.embed import Server

from deniable.collector.app import Collector
from deniable.collector.settings import Settings

BUFFER = 1 << 16
"""Bytes that a connection may hold before they are asked for; headers must fit."""
FILES = 256
"""Files open besides connections, at the most."""
MARGIN = 2.0
"""Seconds after `stop_time` at which connections that have not ended are left behind."""

log = logging.getLogger("deniable.collector")


def run(settings: Settings) -> None:
    """Serve until SIGTERM or SIGINT, then finish what was accepted."""
    # No time stands in a line: that would be the precise time of somebody's upload.
    logging.basicConfig(stream=sys.stderr, format="%(levelname)s %(message)s")
    log.setLevel(logging.INFO)
    _allow_files(settings.connections + FILES)
    asyncio.run(serve(settings))


def _allow_files(count: int) -> None:
    """Raise our own limit of open files, since every connection is one."""
    try:
        import resource
    except ModuleNotFoundError:  # pragma: no cover - Windows
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = count if hard == resource.RLIM_INFINITY else min(count, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    if wanted < count:
        log.warning("at most %d files may be open, %d are wanted: raise `ulimit -n`", hard, count)


async def serve(settings: Settings) -> None:
    """The whole life of a collector."""
    async with Collector(settings) as app:
        limits = HTTP1Settings(
            header_read_timeout=int(settings.header_time * 1000), max_buffer_size=BUFFER
        )
        server = Server(
            app,
            address=settings.host,
            port=settings.port,
            interface=Interfaces.ASGINL,
            http=HTTPModes.http1,
            http1_settings=limits,
            websockets=False,
            backlog=1024,
            backpressure=settings.connections,
            log_level=LogLevels.error,
            log_access=False,
        )
        stopping = asyncio.Event()
        for which in (signal.SIGTERM, signal.SIGINT):
            asyncio.get_running_loop().add_signal_handler(which, stopping.set)
        serving = asyncio.create_task(server.serve())
        log.info("listening on http://%s:%d", settings.host, settings.port)
        await asyncio.wait(
            [serving, waiting := asyncio.create_task(stopping.wait())],
            return_when=asyncio.FIRST_COMPLETED,
        )
        waiting.cancel()
        app.stop_soon()
        server.stop()  # type: ignore[no-untyped-call]
        await asyncio.wait([serving], timeout=settings.stop_time + MARGIN)
    log.info("stopped: %s", app.metrics.line())
    if serving.done():
        serving.result()
