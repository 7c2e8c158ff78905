"""Keep room for new clients when slow ones hold nearly all connections.

The HTTP server limits the number of connections and gives each a time for its headers, but lets new
clients wait while slow ones use up their time. Therefore a quarter of the connections is kept free:
when more are open, the oldest are closed, except those whose request is being answered. An honest
client needs milliseconds. An attacker who holds connections has to open new ones all the time.

The server has no list of its connections, so they are found among the open files of this process.
This works where `OPEN_FILES` exists, on Linux and macOS.
"""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any, NamedTuple

FileKey = tuple[int, int]
"""Number and inode of an open file: a number is used again when its file is closed."""
OPEN_FILES = "/dev/fd"
FREE_SHARE = 0.25
"""Share of the connections that is kept free for new clients."""
MIN_AGE_SECONDS = 1.0
"""Connections that were first seen more recently are not closed."""


class OpenFile(NamedTuple):
    """An open file. first_seen : time; port : port of the client, or 0 if it is no connection."""

    first_seen: float
    port: int


class ConnectionEvictor:
    """Closes the oldest connections when too few are left.

    port : port of this server; limit : maximum number of open connections
    """

    def __init__(self, port: int, limit: int) -> None:
        self._port, self._most = port, limit - max(1, int(limit * FREE_SHARE))
        self._known: dict[FileKey, OpenFile] = {}
        self._answered: set[int] = set()
        """Ports of clients whose requests are being answered."""

    @contextmanager
    def answering(self, scope: Mapping[str, Any]) -> Iterator[None]:
        """Keep the connection of a request (an ASGI scope) open."""
        client = scope.get("client")
        port = int(client[1]) if client else 0
        self._answered.add(port)
        try:
            yield
        finally:
            self._answered.discard(port)

    def make_room(self) -> int:
        """Close the oldest connections if too few are left; return how many were closed."""
        files = _open_files()
        if len(files) <= self._most:
            self._known.clear()
            return 0
        now, known = time.monotonic(), self._known
        self._known = {
            file: known.get(file) or OpenFile(now, self._client_port(file[0]))
            for file in map(_identity, files)
        }
        clients = sorted((each, number) for (number, _), each in self._known.items() if each.port)
        old = [
            (number, each.port)
            for each, number in clients
            if now - each.first_seen >= MIN_AGE_SECONDS and each.port not in self._answered
        ]
        surplus = max(0, len(clients) - self._most)
        return sum(self._close(number, port) for number, port in old[:surplus])

    def _close(self, number: int, port: int) -> bool:
        """Close the connection of a client; return whether it was still open."""
        with suppress(OSError), _copy_of(number) as connection:
            if self._port_in(connection) == port:
                connection.shutdown(socket.SHUT_RDWR)  # the server sees its end, and closes it
                return True
        return False

    def _client_port(self, number: int) -> int:
        """Return the port of the client if an open file is a connection, and else 0."""
        with suppress(OSError), _copy_of(number) as connection:
            return self._port_in(connection)
        return 0

    def _port_in(self, connection: socket.socket) -> int:
        """Return the port of the client; 0, or OSError, if this is no connection of a client."""
        of_internet = connection.family in (socket.AF_INET, socket.AF_INET6)
        if not of_internet or connection.getsockname()[1] != self._port:
            return 0
        return int(connection.getpeername()[1])


def _open_files() -> list[int]:
    """Return the numbers of the open files; none where they cannot be listed."""
    try:
        return [int(name) for name in os.listdir(OPEN_FILES)]
    except OSError:  # pragma: no cover - Windows
        return []


def _identity(number: int) -> FileKey:
    """Return number and inode of an open file; inode 0 if it was closed in between."""
    try:
        return number, os.fstat(number).st_ino
    except OSError:
        return number, 0


def _copy_of(number: int) -> socket.socket:
    """Return another socket object for an open file, or raise OSError if it is no socket.

    The server may close the file, and open another one of this number; a copy stays the same.
    """
    copy = os.dup(number)
    try:
        return socket.socket(fileno=copy)
    except OSError:
        os.close(copy)
        raise
