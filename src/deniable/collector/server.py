"""Serve the collector over HTTP, in this process and one event loop, without an access log.

The HTTP server, granian, closes idle connections and those with slow headers, and limits their
number. The collector limits the time for bodies (`body.BodyLimits`).
"""

from __future__ import annotations

import asyncio
import errno
import logging
import signal
import socket
import sys
from collections.abc import Iterable

from deniable.collector.settings import Settings
from deniable.errors import InputError
from deniable.extras import needs_packages
from deniable.observers import amplified
from deniable.survey import Survey

with needs_packages("the collector", extra="collector"):
    from granian.constants import HTTPModes, Interfaces
    from granian.http import HTTP1Settings
    from granian.log import LogLevels
    from granian.server.embed import Server

    from deniable.collector.app import Collector

MAX_BUFFER_BYTES = 1 << 16
"""Largest read buffer of a connection; the headers of a request must fit."""
MAX_OTHER_FILES = 256
"""Largest number of open files other than connections."""
STOP_MARGIN_SECONDS = 2.0
"""Seconds beyond `stop_time` until connections that are still open are abandoned."""

log = logging.getLogger("deniable.collector")


def run(settings: Settings) -> None:
    """Serve until SIGTERM or SIGINT, then commit all accepted uploads."""
    # Log lines have no time: it would be the precise time of a client's upload.
    logging.basicConfig(stream=sys.stderr, format="%(levelname)s %(message)s")
    log.setLevel(logging.INFO)
    check_address(settings.host, settings.port)
    _raise_file_limit(settings.connections + MAX_OTHER_FILES)
    asyncio.run(serve(settings))


def check_address(host: str, port: int) -> None:
    """Raise InputError unless this process can listen at an address.

    Without this check granian would share a port with another collector, and each of them would
    get some of the uploads.
    """
    if not 0 <= port < 1 << 16:
        raise InputError(f"port must lie between 0 and 65535, not {port}")
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        with socket.socket(found[0][0], socket.SOCK_STREAM) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(found[0][4])
    except OSError as error:
        reasons = {
            errno.EADDRINUSE: "the port is in use; stop the other program or choose another --port",
            errno.EACCES: "ports below 1024 need special rights; choose a larger --port",
            errno.EADDRNOTAVAIL: "this machine does not have that address; choose another --host",
        }
        reason = reasons.get(error.errno or 0, f"{error.strerror}; check --host and --port")
        raise InputError(f"cannot listen on {host} port {port}: {reason}") from None


def _raise_file_limit(count: int) -> None:
    """Raise this process's limit of open files, because every connection is a file."""
    try:
        import resource
    except ModuleNotFoundError:  # pragma: no cover - Windows
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = count if hard == resource.RLIM_INFINITY else min(count, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    if wanted < count:
        log.warning("%d files may be open, but %d are needed: raise `ulimit -n`", hard, count)


def batch_privacy(surveys: Iterable[Survey], settings: Settings) -> list[str]:
    """Say what the smallest batch gives against analysts, one sentence per survey."""
    return [
        f"survey {survey.name} v{survey.version}: analysts see shuffled batches only; "
        f"{amplified(survey, settings.at_least + 1)}"
        for survey in surveys
    ]


async def serve(settings: Settings) -> None:
    """Start a collector, serve requests until a signal arrives, and stop it."""
    async with Collector(settings) as app:
        limits = HTTP1Settings(
            header_read_timeout=int(settings.header_time * 1000), max_buffer_size=MAX_BUFFER_BYTES
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
        for stop_signal in (signal.SIGTERM, signal.SIGINT):
            asyncio.get_running_loop().add_signal_handler(stop_signal, stopping.set)
        serving = asyncio.create_task(server.serve())
        log.info("listening on http://%s:%d", settings.host, settings.port)
        if settings.batch_warning:
            log.warning(settings.batch_warning)
        for line in await asyncio.to_thread(batch_privacy, app.catalogue.all(), settings):
            log.info(line)
        for survey in app.catalogue.all():
            if survey.testing:
                log.warning(
                    "survey %s v%d is FOR TESTING: its reports are test data, and "
                    "the reports of real clients are refused",
                    survey.name,
                    survey.version,
                )
        await asyncio.wait(
            [serving, waiting := asyncio.create_task(stopping.wait())],
            return_when=asyncio.FIRST_COMPLETED,
        )
        waiting.cancel()
        app.begin_shutdown()
        server.stop()  # type: ignore[no-untyped-call]
        await asyncio.wait([serving], timeout=settings.stop_time + STOP_MARGIN_SECONDS)
    log.info("stopped: %s", app.metrics.log_line())
    if serving.done():
        serving.result()  # raises the exception of the server, if there is one
