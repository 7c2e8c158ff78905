"""Test that the oldest connections are closed when few are left, and only those."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from deniable.collector import connections
from deniable.collector.connections import ConnectionEvictor

LIMIT = 8  # of which 2 are kept free


class Clients:
    """Connections of clients to a server in this process."""

    def __init__(self, open_until: ExitStack, family: socket.AddressFamily) -> None:
        host = "::1" if family == socket.AF_INET6 else "127.0.0.1"
        self._server = socket.create_server((host, 0), family=family)
        open_until.enter_context(self._server)
        self._open_until = open_until
        self.port = self._server.getsockname()[1]

    def connect(self, count: int) -> list[socket.socket]:
        made = []
        for _ in range(count):
            client = socket.create_connection(self._server.getsockname()[:2])
            made.append(self._open_until.enter_context(client))
            self._open_until.enter_context(self._server.accept()[0])
        return made


@pytest.fixture(params=[socket.AF_INET, socket.AF_INET6])
def clients(request: pytest.FixtureRequest) -> Iterator[Clients]:
    with ExitStack() as open_until:
        yield Clients(open_until, request.param)


def closed(client: socket.socket) -> bool:
    client.setblocking(False)
    try:
        return client.recv(1) == b""
    except BlockingIOError:
        return False


def test_the_oldest_make_room(clients: Clients, monkeypatch: pytest.MonkeyPatch) -> None:
    now = 1000.0
    monkeypatch.setattr(connections.time, "monotonic", lambda: now)
    evictor = ConnectionEvictor(clients.port, LIMIT)
    old = clients.connect(4)
    assert evictor.make_room() == 0
    now += 0.6
    young = clients.connect(4)
    assert evictor.make_room() == 0, "nobody is old"
    now += 0.6
    busy = {"client": ("ignored", str(old[0].getsockname()[1]))}
    with evictor.answering(busy):
        assert evictor.make_room() == 2
    assert [closed(client) for client in (old[0], *young)] == [False] * 5
    assert sum(map(closed, old[1:])) == 2
    files = len(os.listdir(connections.OPEN_FILES))
    evictor.make_room()
    assert len(os.listdir(connections.OPEN_FILES)) == files, "a copy of a file was left open"


def test_only_the_connections_of_clients_are_closed(
    clients: Clients, monkeypatch: pytest.MonkeyPatch
) -> None:
    """This process is itself a client of another server, for instance of a database."""
    now = 1000.0
    monkeypatch.setattr(connections.time, "monotonic", lambda: now)
    database = clients.connect(10)
    evictor = ConnectionEvictor(clients.port + 1, LIMIT)
    for _ in range(3):
        assert evictor.make_room() == 0
        now += 5
    assert not any(map(closed, database))


def test_a_file_number_that_is_used_again_is_a_new_connection(
    clients: Clients, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = 1000.0
    monkeypatch.setattr(connections.time, "monotonic", lambda: now)
    evictor = ConnectionEvictor(clients.port, LIMIT)
    with ExitStack() as gone:
        clients._open_until, kept = gone, clients._open_until
        clients.connect(LIMIT)
        evictor.make_room()
    clients._open_until = kept
    young = clients.connect(LIMIT)
    now += 5
    assert evictor.make_room() == 0
    assert not any(map(closed, young))
