"""Serve the collector over HTTP, in this process and one event loop, without an access log.

The HTTP server, granian, closes idle connections and those with slow headers, and limits their
number. The collector limits the time for bodies (`body.BodyLimits`).
"""

from __future__ import annotations

import asyncio
import errno
import gc
import logging
import signal
import socket
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from deniable.collector.logs import log_event, start_logging
from deniable.collector.settings import Settings
from deniable.errors import InputError
from deniable.extras import needs_packages
from deniable.observers import amplified

with needs_packages("the collector", extra="collector"):
    from granian.constants import HTTPModes, Interfaces
    from granian.http import HTTP1Settings
    from granian.log import LogLevels
    from granian.server.embed import Server

    from deniable.collector.app import Collector
    from deniable.collector.keys import INGEST

    if sys.platform != "win32":
        import uvloop

MAX_BUFFER_BYTES = 1 << 16
"""Largest read buffer of a connection; the headers of a request must fit."""
MAX_CONNECTIONS, MAX_FILES = 4096, 8192
"""Largest number of open connections, beyond which new ones wait, and of open files."""
STOP_MARGIN_SECONDS = 2.0
"""Seconds beyond `stop_time` until connections that are still open are abandoned."""
GC_THRESHOLD = 20_000
"""Number of new objects after which the garbage collector runs; Python's default is far smaller."""
BIND_ERRORS = {
    errno.EADDRINUSE: "the port is in use; stop the other program or choose another --port",
    errno.EACCES: "ports below 1024 need special rights; choose a larger --port",
    errno.EADDRNOTAVAIL: "this machine does not have that address; choose another --host",
}
"""Why an address cannot be used, by error number."""
GRANIAN_LOG = {
    "formatters": {},
    "handlers": {},
    "loggers": {"_granian": {"handlers": [], "propagate": True}},
}
"""Sends messages of the server to our log, which keeps nothing of them that may quote a request."""


def run(settings: Settings) -> None:
    """Serve until SIGTERM or SIGINT, then commit all accepted uploads."""
    start_logging(settings.log_format)
    with reserve_address(settings.host, settings.port):
        _raise_file_limit()
        run_loop = asyncio.run if sys.platform == "win32" else uvloop.run
        run_loop(serve(settings))


@contextmanager
def reserve_address(host: str, port: int) -> Iterator[None]:
    """Keep other collectors from using an address; raise InputError if it cannot be used.

    Granian's sockets can share an address, and two collectors that start at the same moment both
    find it free. On Linux they compete for a name that, like the address, belongs to the network.
    """
    with ExitStack() as reserved:
        try:
            found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
            family, address = found[0][0], found[0][4]
            if sys.platform == "linux":
                guard = reserved.enter_context(socket.socket(socket.AF_UNIX))
                guard.bind(f"\0deniable-collector-{address[0]}-{port}")
            with socket.socket(family, socket.SOCK_STREAM) as probe:
                probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                probe.bind(address)
        except OSError as error:
            reason = BIND_ERRORS.get(error.errno or 0, f"{error.strerror}; check --host and --port")
            raise InputError(f"cannot listen on {host} port {port}: {reason}") from None
        yield


def _raise_file_limit() -> None:
    """Raise this process's limit of open files, because every connection is a file."""
    try:
        import resource
    except ModuleNotFoundError:  # pragma: no cover - Windows
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if 0 <= soft < MAX_FILES:
        limit = MAX_FILES if hard == resource.RLIM_INFINITY else min(MAX_FILES, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (limit, hard))


def _freeze_startup_objects() -> None:
    """Exclude everything that exists now from garbage collection, and collect less often.

    Modules and classes stay until the end. Looking at all of them again and again takes a large
    part of the time that uploads need.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(GC_THRESHOLD)


def describe_start(app: Collector) -> None:
    """Log what operators should know about the settings and the surveys."""
    settings, ended = app.settings, app.ended_surveys()
    if settings.batch_warning:
        log_event("small-batches", settings.batch_warning, logging.WARNING)
    if not settings.require_key and (names := app.keyring.with_quota(INGEST)):
        message = f"the quota of {', '.join(names)} has no effect, because uploads need no key: "
        log_event("idle-quota", f"{message}set --require-key", logging.WARNING)
    for survey in app.catalogue.all():
        name = f"{survey.name} v{survey.version}"
        if survey in ended:
            message = f"survey {name} ended on {survey.expires}: its reports are refused"
            log_event("survey-ended", message, logging.WARNING, survey=name)
        if survey.testing:
            message = f"survey {name} is FOR TESTING: its reports are test data, and "
            message += "the reports of real clients are refused"
            log_event("testing-survey", message, logging.WARNING, survey=name)
        if survey.collect == "once":
            batch = amplified(survey, settings.at_least + 1)
            message = f"survey {name}: analysts see shuffled batches only; {batch}"
            log_event("batch-privacy", message, survey=name)


async def serve(settings: Settings) -> None:
    """Start a collector, serve requests until a signal arrives, and stop it."""
    async with Collector(settings) as app:
        _freeze_startup_objects()
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
            backpressure=MAX_CONNECTIONS,
            log_level=LogLevels.error,
            log_dictconfig=GRANIAN_LOG,
            log_access=False,
        )
        where = f"http://{settings.host}:{settings.port}"
        server.on_startup(
            lambda: log_event(
                "listening", f"listening on {where}", host=settings.host, port=settings.port
            )
        )
        stopping = asyncio.Event()
        for stop_signal in (signal.SIGTERM, signal.SIGINT):
            asyncio.get_running_loop().add_signal_handler(stop_signal, stopping.set)
        serving = asyncio.create_task(server.serve())
        await asyncio.sleep(0)  # the server starts, and logs that it listens
        await asyncio.to_thread(describe_start, app)
        await asyncio.wait(
            [serving, waiting := asyncio.create_task(stopping.wait())],
            return_when=asyncio.FIRST_COMPLETED,
        )
        waiting.cancel()
        app.begin_shutdown()
        server.stop()  # type: ignore[no-untyped-call]
        await asyncio.wait([serving], timeout=settings.stop_time + STOP_MARGIN_SECONDS)
    app.metrics.log_totals("stopped", "stopped: ")
    if serving.done():
        serving.result()  # raises the exception of the server, if there is one
